//! The gRPC form round-trips, and every reason has one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at once")]

use crate::{Effect, Fault, Reason, reason_from_str, reason_str};

#[test]
fn every_reason_round_trips_with_its_metadata() {
    let mut seen = 0;
    for number in 1..200 {
        let Ok(reason) = Reason::try_from(number) else { continue };
        seen += 1;
        assert_eq!(reason_from_str(reason_str(reason)), reason);
        let fault =
            Fault::new(reason, "say what to do").with("id", "x").retryable(true).effect(Effect::Unknown);
        let back = Fault::from_status(&fault.to_status());
        assert_eq!(back.reason(), reason);
        assert_eq!(back.message(), "say what to do");
        assert!(back.is_retryable());
        assert_eq!(back.effect_known(), Effect::Unknown);
        assert_eq!(back.metadata().get("id").unwrap(), "x");
    }
    assert!(seen > 50, "the enum was walked");
}

#[test]
fn the_cause_never_reaches_the_caller() {
    let status = Fault::internal("password=hunter2").to_status();
    assert!(!format!("{status:?}").contains("hunter2"));
}

#[test]
fn a_foreign_outage_is_unavailable_and_retryable() {
    let fault = Fault::from_status(&tonic::Status::unavailable("connect error"));
    assert_eq!(fault.reason(), Reason::Unavailable);
    assert!(fault.is_retryable());
}

#[test]
fn every_reason_stands_in_the_reference() {
    let page = include_str!("../../../docs/reference/errors.md");
    for number in 1..200 {
        let Ok(reason) = Reason::try_from(number) else { continue };
        let code = format!("{:?}", Fault::new(reason, "").to_status().code());
        let row = page.lines().find(|l| l.starts_with(&format!("| `{}` |", reason_str(reason))));
        let row =
            row.unwrap_or_else(|| panic!("write `{}` into docs/reference/errors.md", reason_str(reason)));
        assert!(row.to_lowercase().replace('_', "").contains(&code.to_lowercase()), "{row} is not {code}");
    }
}
