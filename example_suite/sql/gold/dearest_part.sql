SELECT part FROM repair GROUP BY part ORDER BY avg(cost) DESC LIMIT 1
