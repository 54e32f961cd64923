"""A stand-in for an assistant that is asked one question after the other, and states what each call costs."""

from pytest_queryeval import Prediction

ANSWERS = {
    "Which bikes are electric?": "SELECT bike_id FROM bike WHERE is_electric",
    "Which trips took more than half an hour?": "SELECT trip_id FROM trip WHERE minutes > 30",
    "Which repairs were about a battery?": "SELECT repair_id FROM repair WHERE part LIKE 'battery'",
    "Which station has the most docks?": "SELECT name FROM station ORDER BY docks DESC LIMIT 1",
    # Mistake: these are all repairs.
    "What did they cost?": "SELECT sum(cost) FROM repair",
}
# What a question asks of the answer before it, which is a query.
FOLLOW_UPS = {
    "How many are they?": "SELECT count(*) FROM ({})",
    "Which of them are at no station?": "SELECT bike_id FROM bike WHERE is_electric AND station_id IS NULL",
    "What did they bring in?": "SELECT total(price) FROM trip WHERE minutes > 30",
    "And the fewest?": "SELECT name FROM station ORDER BY docks ASC LIMIT 1",
}


def answer(case):
    """The query that answers the last message, and what it cost to write it."""
    previous = case.conversation[-2].content if len(case.conversation) > 1 else ""
    query = ANSWERS.get(case.question) or FOLLOW_UPS[case.question].format(previous)
    return Prediction(query, predictor="assistant", metadata={"cost": 0.002})
