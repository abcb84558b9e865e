//! Rules: the ordered rule set, compiled once and evaluated without clock or I/O.
