"""A stand-in for a text-to-SQL system: it knows the questions of this suite by heart, and makes mistakes on purpose.

A real one would send `case.question`, `case.evidence` and `case.schema`, the CREATE TABLE statements, to a model. Put
your call in `answer`: it is given what belongs to the question, never the gold, and returns the query's text.
"""

ANSWERS = {
    "How many stations are there?": "SELECT count(*) FROM station",
    # Right, though the columns are swapped: `columns: any` is the default.
    "How many bikes are there of each model?": "SELECT count(*), model FROM bike GROUP BY model",
    # Right, though it is computed in another way: numbers are equal within a tolerance.
    "What share of the bikes is electric?": "SELECT sum(is_electric) * 1.0 / count(*) FROM bike",
    # Right by the second of two golds: it also tells how many docks.
    "Which district has the most docks?": """
        SELECT district, sum(docks) FROM station GROUP BY district ORDER BY sum(docks) DESC LIMIT 1""",
    "How many riders are on each plan?": "SELECT plan, count(*) FROM rider GROUP BY plan",
    "Which stations have no bike right now?": """
        SELECT name FROM station WHERE station_id NOT IN (SELECT station_id FROM bike WHERE station_id IS NOT NULL)""",
    "Which bikes were bought before 2020?": "SELECT bike_id FROM bike WHERE bought_on < '2020'",
    # Any riders with a plan are right: the case has no gold.
    "Which riders could we ask about their plan? Name a few, with the plan.": """
        SELECT rider_id, plan FROM rider WHERE plan IS NOT NULL ORDER BY joined_on LIMIT 3""",
    # Right, though it returns another trip than gold: two trips of 45 minutes tie for the second place.
    "What are the two longest trips?": "SELECT trip_id FROM trip ORDER BY minutes DESC, trip_id DESC LIMIT 2",
    # Right, though days with equally many trips stand in another order than in gold.
    "List the days, those with the most trips first.": """
        SELECT started_on, count(*) AS trips FROM trip GROUP BY started_on ORDER BY trips DESC, started_on DESC""",
    # Mistake: the inner join drops the station where no trip started.
    "How many trips started at each station?": """
        SELECT s.name, count(*) FROM station s JOIN trip t ON t.start_station_id = s.station_id GROUP BY s.name""",
    "How many trips by riders on a plan were free?": """
        SELECT count(*) FROM trip JOIN rider USING (rider_id) WHERE plan IS NOT NULL AND price = 0""",
    # Right only as a set of rows: the question does not ask for an order, but gold has one.
    "Which riders have taken an electric bike?": """
        SELECT DISTINCT rider_id FROM trip JOIN bike USING (bike_id) WHERE is_electric ORDER BY rider_id DESC""",
    # Mistake: riders without a plan are left out.
    "What does each plan bring in?": """
        SELECT plan, sum(price) FROM trip JOIN rider USING (rider_id) WHERE plan IS NOT NULL GROUP BY plan""",
}
# Needs the definition that comes as evidence with the question.
ROUND_TRIPS = "SELECT count(*) FROM trip WHERE start_station_id = end_station_id"


def answer(case):
    """The query for a case; an unknown question gets an empty answer, which counts as a failed prediction."""
    if "starts and ends at the same station" in case.evidence:
        return ROUND_TRIPS
    return ANSWERS.get(case.question, "")
