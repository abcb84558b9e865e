use super::*;

fn opened() -> Opened {
    let secret = exequatur_seal::Secret::new(b"s".to_vec());
    Opened { lease: "database/creds/t--c/1".to_owned(), ..Opened::plain(secret) }
}

fn purpose(run: Option<&str>, until: i64) -> Purpose {
    Purpose {
        tenant: "t".to_owned(),
        credential: "c".to_owned(),
        version: 1,
        run: run.map(ToOwned::to_owned),
        until: UnixMillis(until),
    }
}

fn names(offers: &[Offer]) -> Vec<&str> {
    offers.iter().map(|offer| offer.lease.as_str()).collect()
}

#[test]
fn only_what_fits_is_offered() {
    let held = Held::default();
    held.keep("of-r", purpose(Some("r"), 100), &opened());
    held.keep("of-all", purpose(None, 90), &opened());
    let offers = |tenant, credential, run, by| held.offers(tenant, credential, run, UnixMillis(by));
    assert_eq!(names(&offers("t", "c", "r", 50)), ["of-r", "of-all"], "the longest lived first");
    assert_eq!(names(&offers("t", "c", "s", 50)), ["of-all"]);
    assert_eq!(names(&offers("t", "c", "r", 100)), ["of-r"]);
    assert!(offers("u", "c", "r", 50).is_empty() && offers("t", "d", "r", 50).is_empty());
    assert!(offers("t", "c", "r", 101).is_empty());
}

#[test]
fn a_closed_secret_is_given_back_once_nobody_uses_it() {
    let held = Held::default();
    let first = held.keep("l", purpose(Some("r"), 100), &opened());
    held.close(|purpose| purpose.run.as_deref() == Some("s"));
    assert!(held.has("l"));
    let second = held.offers("t", "c", "r", UnixMillis(0));
    held.close(|purpose| purpose.run.as_deref() == Some("r"));
    assert!(held.has("l") && held.offers("t", "c", "r", UnixMillis(0)).is_empty());
    assert!(held.closed().is_empty(), "two attempts use it");
    drop(first);
    assert!(held.closed().is_empty(), "one attempt uses it");
    drop(second);
    let closed = held.closed();
    assert_eq!((closed[0].lease.as_str(), closed[0].vault_lease.as_str()), ("l", "database/creds/t--c/1"));
    assert!(!held.has("l") && held.closed().is_empty(), "once");
}

#[test]
fn what_an_attempt_used_is_closed_and_nothing_else() {
    let held = Held::default();
    let used = held.keep("used", purpose(None, 100), &opened());
    held.keep("other", purpose(None, 100), &opened());
    held.close_used(&[used]);
    assert_eq!(names(&held.offers("t", "c", "r", UnixMillis(0))), ["other"]);
    assert_eq!(held.closed().len(), 1);
}
