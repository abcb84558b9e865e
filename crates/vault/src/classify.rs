//! What a status means. Must not keep the body: two fixed phrases are looked for and the text is dropped.

use crate::Kind;

/// Which meaning statuses have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Ordinary calls.
    Ordinary,
    /// `sys/health`, where a status is the state of the server.
    Health,
}

/// `None` for success.
pub(crate) fn classify(meaning: Meaning, status: u16, body: &[u8]) -> Option<Kind> {
    let says = |phrase: &[u8]| body.windows(phrase.len()).any(|part| part.eq_ignore_ascii_case(phrase));
    Some(match (meaning, status) {
        (_, 200..=299) => return None,
        (Meaning::Health, 429 | 472 | 473) => Kind::Standby,
        (Meaning::Health, 503) => Kind::Sealed,
        (_, 501) => Kind::Uninitialized,
        // A standby that does not forward sends the client to the active server; we go where configured.
        (_, 300..=399) => Kind::Standby,
        (_, 401 | 403) => Kind::Refused,
        (_, 404) => Kind::NotFound,
        (_, 412) => Kind::ServerError,
        (_, 429) => Kind::RateLimited,
        (_, 400..=499) => Kind::BadRequest,
        (_, 503) if says(b"is sealed") => Kind::Sealed,
        (_, 500 | 503) if says(b"active cluster node not found") || says(b"standby") => Kind::Standby,
        (_, 500..=599) => Kind::ServerError,
        _ => Kind::Malformed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_one_meaning() {
        let sealed = br#"{"errors":["Vault is sealed"]}"#.as_slice();
        let lost = br#"{"errors":["local node not active but active cluster node not found"]}"#.as_slice();
        for (meaning, status, body, kind) in [
            (Meaning::Ordinary, 200, b"".as_slice(), None),
            (Meaning::Ordinary, 204, b"", None),
            (Meaning::Health, 200, b"", None),
            (Meaning::Health, 429, b"", Some(Kind::Standby)),
            (Meaning::Health, 473, b"", Some(Kind::Standby)),
            (Meaning::Health, 501, b"", Some(Kind::Uninitialized)),
            (Meaning::Health, 503, b"", Some(Kind::Sealed)),
            (Meaning::Ordinary, 307, b"", Some(Kind::Standby)),
            (Meaning::Ordinary, 400, b"", Some(Kind::BadRequest)),
            (Meaning::Ordinary, 403, b"", Some(Kind::Refused)),
            (Meaning::Ordinary, 404, b"", Some(Kind::NotFound)),
            (Meaning::Ordinary, 405, b"", Some(Kind::BadRequest)),
            (Meaning::Ordinary, 429, b"", Some(Kind::RateLimited)),
            (Meaning::Ordinary, 500, b"", Some(Kind::ServerError)),
            (Meaning::Ordinary, 500, lost, Some(Kind::Standby)),
            (Meaning::Ordinary, 502, b"", Some(Kind::ServerError)),
            (Meaning::Ordinary, 503, b"", Some(Kind::ServerError)),
            (Meaning::Ordinary, 503, sealed, Some(Kind::Sealed)),
            (Meaning::Ordinary, 101, b"", Some(Kind::Malformed)),
            (Meaning::Ordinary, 999, b"", Some(Kind::Malformed)),
        ] {
            assert_eq!(classify(meaning, status, body), kind, "{meaning:?} {status}");
        }
    }
}
