"""A stand-in for a text-to-SQL system that says how sure it is, and abstains from what it cannot know."""

from pytest_queryeval import Abstention, Prediction

ANSWERS = {
    "How many bikes are electric?": ("SELECT sum(is_electric) FROM bike", 0.97),
    "How long was the longest trip?": ("SELECT minutes FROM trip ORDER BY minutes DESC LIMIT 1", 0.93),
    "When was the newest bike bought?": ("SELECT max(bought_on) FROM bike", 0.9),
    # Mistake: this one has an answer.
    "What did all repairs cost?": ("I do not know what a repair costs.", 0.4),
    # Mistake: the data ends with this year.
    "What will trips bring in next year?": ("SELECT sum(price) FROM trip", 0.35),
    "Which bike has the emptiest battery?": ("I do not know: no column is about batteries.", 0.1),
}


def answer(case):
    """A query with the confidence in it; an unknown question is not answered."""
    if case.question not in ANSWERS:
        return Abstention("no table has that")
    query, confidence = ANSWERS[case.question]
    return Prediction(query, predictor="cautious", metadata={"confidence": confidence})
