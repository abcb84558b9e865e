CREATE TABLE orders (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer text NOT NULL,
    item     text NOT NULL,
    total    numeric(10, 2) NOT NULL
);
INSERT INTO orders (customer, item, total)
VALUES ('117', 'Lamp', 41.00), ('117', 'Tiger poster', 9.50), ('118', 'Canal map', 12.25);
-- What every user of one action may do. Users are members: a GRANT to each on the table itself would have
-- those that are made and ended at the same moment write the same row of the catalog, and fail.
CREATE ROLE orders_reader NOLOGIN;
GRANT SELECT ON orders TO orders_reader;
