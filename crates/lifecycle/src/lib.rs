//! States and the one transition table of actions, items, journal rows, plans and runs. Pure data; knows no service and no clock.
