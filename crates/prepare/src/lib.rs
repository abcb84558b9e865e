//! The prepared request: a pure function of definition bytes and action bytes. No I/O, no clock, no secret.
