//! Development certificates, zone keys and the signed trust bundle on disk. Never linked by a zone.
