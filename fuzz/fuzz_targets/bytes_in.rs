//! Bytes in, a frozen action or header or NOT_CANONICAL out: never a panic; what is accepted encodes
//! to the same bytes, and what is not is not accepted by another door either.
#![no_main]

use exequatur_canonical::display::{action_text, is_hidden, plan_text, warnings_for_action, warnings_for_plan};
use exequatur_canonical::{ErrorCode, freeze_plan, freeze_value_action, verify_action, verify_plan};
use libfuzzer_sys::fuzz_target;

fn safe(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)));
}

fuzz_target!(|data: &[u8]| {
    match verify_action(data) {
        Ok(frozen) => {
            assert_eq!(frozen.bytes(), data);
            assert_eq!(freeze_value_action(frozen.action().clone()).as_ref(), Ok(&frozen));
            safe(&action_text(&frozen));
            assert!(warnings_for_action(&frozen, None).len() <= 101);
        }
        Err(error) => assert_eq!(error.code, ErrorCode::NotCanonical),
    }
    match verify_plan(data) {
        Ok(frozen) => {
            assert_eq!(frozen.bytes(), data);
            assert_eq!(freeze_plan(frozen.header().clone()).as_ref(), Ok(&frozen));
            safe(&plan_text(&frozen));
            assert!(warnings_for_plan(&frozen).len() <= 101);
            assert_eq!(frozen.words().split('-').count(), 6);
        }
        Err(error) => assert_eq!(error.code, ErrorCode::NotCanonical),
    }
});
