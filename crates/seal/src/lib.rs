//! Sealing a secret to the connector and opening it there (RFC 9180).
