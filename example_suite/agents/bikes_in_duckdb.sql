-- The bike rental of ../sql/bikes.sql after a move to DuckDB: dates, booleans and prices have types of their own.

CREATE TABLE station (
    station_id INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    district   TEXT NOT NULL,
    docks      INTEGER NOT NULL
);
CREATE TABLE bike (
    bike_id     INTEGER PRIMARY KEY,
    model       TEXT NOT NULL,
    is_electric BOOLEAN NOT NULL,
    bought_on   DATE NOT NULL,
    station_id  INTEGER REFERENCES station (station_id)    -- NULL: in the workshop or on the road
);
CREATE TABLE rider (
    rider_id  INTEGER PRIMARY KEY,
    plan      TEXT,                                        -- NULL: pays trip by trip
    joined_on DATE NOT NULL
);
CREATE TABLE trip (
    trip_id          INTEGER PRIMARY KEY,
    bike_id          INTEGER NOT NULL REFERENCES bike (bike_id),
    rider_id         INTEGER NOT NULL REFERENCES rider (rider_id),
    start_station_id INTEGER NOT NULL REFERENCES station (station_id),
    end_station_id   INTEGER NOT NULL REFERENCES station (station_id),
    started_on       DATE NOT NULL,
    minutes          INTEGER NOT NULL,
    price            DECIMAL(6, 2) NOT NULL
);
CREATE TABLE repair (
    repair_id   INTEGER PRIMARY KEY,
    bike_id     INTEGER NOT NULL REFERENCES bike (bike_id),
    repaired_on DATE NOT NULL,
    part        TEXT NOT NULL,
    cost        DECIMAL(6, 2) NOT NULL
);

INSERT INTO station VALUES
    (1, 'Harbour Gate', 'Old Town', 12),
    (2, 'Market Square', 'Old Town', 20),
    (3, 'Mill Bridge', 'Riverside', 8),
    (4, 'Botanic Garden', 'Riverside', 12),
    (5, 'North Campus', 'University', 24),
    (6, 'Water Tower', 'Hillside', 6);

INSERT INTO bike VALUES
    (1, 'Swift', 0, '2022-03-01', 1),
    (2, 'Swift', 0, '2022-03-01', 2),
    (3, 'Swift', 0, '2022-05-12', 2),
    (4, 'Cargo', 0, '2022-05-12', 5),
    (5, 'Cargo', 1, '2023-02-20', NULL),
    (6, 'Volt', 1, '2023-02-20', 5),
    (7, 'Volt', 1, '2023-02-20', 5),
    (8, 'Volt', 1, '2023-07-04', 3),
    (9, 'Swift', 0, '2023-07-04', 4),
    (10, 'Volt', 1, '2024-04-15', NULL),
    (11, 'Swift', 0, '2024-04-15', 1),
    (12, 'Cargo', 1, '2024-04-15', 2);

INSERT INTO rider VALUES
    (1, 'yearly', '2022-03-05'),
    (2, 'monthly', '2022-06-18'),
    (3, NULL, '2022-09-01'),
    (4, 'yearly', '2023-01-10'),
    (5, 'student', '2023-03-22'),
    (6, 'student', '2023-10-02'),
    (7, 'monthly', '2023-10-09'),
    (8, NULL, '2024-02-14'),
    (9, 'yearly', '2024-05-30');

INSERT INTO trip VALUES
    (1, 1, 1, 1, 2, '2024-05-01', 9, 0.00),
    (2, 6, 2, 5, 1, '2024-05-01', 26, 2.60),
    (3, 2, 3, 2, 4, '2024-05-01', 18, 3.60),
    (4, 8, 4, 3, 5, '2024-05-02', 21, 0.00),
    (5, 9, 5, 4, 5, '2024-05-02', 14, 0.70),
    (6, 7, 6, 5, 2, '2024-05-02', 26, 1.30),
    (7, 3, 1, 2, 1, '2024-05-03', 8, 0.00),
    (8, 12, 7, 2, 6, '2024-05-03', 45, 4.50),
    (9, 11, 8, 1, 3, '2024-05-03', 17, 3.40),
    (10, 4, 5, 5, 4, '2024-05-04', 14, 0.70),
    (11, 1, 9, 2, 2, '2024-05-04', 60, 0.00),
    (12, 6, 4, 1, 5, '2024-05-04', 24, 0.00),
    (13, 8, 2, 5, 3, '2024-05-05', 19, 1.90),
    (14, 2, 3, 4, 1, '2024-05-05', 31, 6.20),
    (15, 7, 6, 2, 5, '2024-05-05', 22, 1.10),
    (16, 11, 1, 3, 1, '2024-05-06', 16, 0.00),
    (17, 3, 5, 1, 5, '2024-05-06', 28, 1.40),
    (18, 9, 7, 5, 4, '2024-05-06', 15, 1.50),
    (19, 12, 9, 3, 2, '2024-05-07', 33, 0.00),
    (20, 6, 8, 5, 2, '2024-05-07', 27, 5.40),
    (21, 4, 2, 4, 5, '2024-05-07', 16, 1.60),
    (22, 1, 1, 2, 1, '2024-05-08', 9, 0.00),
    (23, 8, 6, 3, 5, '2024-05-08', 23, 1.15),
    (24, 7, 4, 5, 5, '2024-05-08', 45, 0.00);

INSERT INTO repair VALUES
    (1, 2, '2023-04-11', 'chain', 18.50),
    (2, 4, '2023-06-02', 'brake', 42.00),
    (3, 6, '2023-09-19', 'battery', 310.00),
    (4, 1, '2024-01-08', 'tyre', 24.90),
    (5, 5, '2024-02-26', 'battery', 310.00),
    (6, 2, '2024-03-03', 'brake', 42.00),
    (7, 8, '2024-03-15', 'tyre', 24.90),
    (8, 10, '2024-05-06', 'motor', 189.00),
    (9, 4, '2024-05-06', 'chain', 18.50),
    (10, 5, '2024-05-07', 'light', 12.30);
