-- A tiny library. In place of this script, a suite can name a database file or the URL of a server.
CREATE TABLE book (book_id INTEGER PRIMARY KEY, title TEXT NOT NULL, author TEXT NOT NULL, year INTEGER);
INSERT INTO book VALUES
  (1, 'Middlemarch', 'George Eliot', 1871),
  (2, 'Silas Marner', 'George Eliot', 1861),
  (3, 'Orlando', 'Virginia Woolf', 1928),
  (4, 'Nachtzug', 'Ada Lang', NULL);

CREATE TABLE loan (loan_id INTEGER PRIMARY KEY, book_id INTEGER NOT NULL REFERENCES book (book_id), member TEXT NOT NULL);
INSERT INTO loan VALUES (1, 1, 'Kim'), (2, 3, 'Kim'), (3, 1, 'Noor'), (4, 2, 'Noor');
