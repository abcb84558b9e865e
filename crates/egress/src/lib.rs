//! The one way out to providers: guarded addresses, own TCP and TLS stream, HTTP/1.1 and SMTP, redaction. Knows no journal.
