-- A made-up orchard: 10 trees, 16 harvests.

CREATE TABLE tree (
    tree_id INTEGER PRIMARY KEY,
    kind    TEXT NOT NULL,
    plot    TEXT NOT NULL,
    planted INTEGER NOT NULL          -- year
);
CREATE TABLE harvest (
    harvest_id INTEGER PRIMARY KEY,
    tree_id    INTEGER NOT NULL REFERENCES tree (tree_id),
    crew       TEXT NOT NULL,
    kilos      REAL NOT NULL
);

INSERT INTO tree VALUES
    (1, 'apple', 'north', 1998),
    (2, 'apple', 'north', 2006),
    (3, 'apple', 'brook', 2016),
    (4, 'apple', 'brook', 2021),
    (5, 'pear', 'north', 2003),
    (6, 'pear', 'brook', 2012),
    (7, 'pear', 'hill', 2019),
    (8, 'cherry', 'hill', 2009),
    (9, 'cherry', 'hill', 2015),
    (10, 'plum', 'brook', 2018);

INSERT INTO harvest VALUES
    (1, 8, 'red', 12.5),
    (2, 9, 'red', 9.0),
    (3, 8, 'blue', 7.5),
    (4, 9, 'green', 6.5),
    (5, 10, 'blue', 18.0),
    (6, 10, 'blue', 14.5),
    (7, 5, 'green', 41.0),
    (8, 6, 'green', 36.5),
    (9, 5, 'white', 28.0),
    (10, 1, 'white', 64.0),
    (11, 1, 'blue', 52.5),
    (12, 2, 'red', 48.0),
    (13, 2, 'red', 39.5),
    (14, 3, 'green', 22.0),
    (15, 3, 'white', 27.5),
    (16, 7, 'white', 11.0);
