//! How a zone is assembled: configuration, telemetry, layers (access, deadline, limits), server, drain. Knows no zone.
