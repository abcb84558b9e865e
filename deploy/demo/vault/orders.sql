CREATE TABLE orders (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer text NOT NULL,
    item     text NOT NULL,
    total    numeric(10, 2) NOT NULL
);
INSERT INTO orders (customer, item, total)
VALUES ('117', 'Lamp', 41.00), ('117', 'Tiger poster', 9.50), ('118', 'Canal map', 12.25);
