//! A zone's append-only log: entries signed and chained in the caller's transaction, bodies, heads, outbox.
