//! SQLite through sqlx: opening, migrations, one writer, and the mapping of database errors. Knows no table of any zone.
