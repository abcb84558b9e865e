//! JSON text in, frozen bytes or a typed error out: never a panic; what is accepted is JSON to an
//! independent reader, verifies to itself, and freezes to the same bytes whatever the members' order.
#![no_main]

use exequatur_canonical::display::{action_text, is_hidden, warnings_for_action};
use exequatur_canonical::{freeze_action, freeze_value_action, jsonl, verify_action};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let line = jsonl::digest(data);
    assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());

    let frozen = match freeze_action("demo.echo", data, "why", None) {
        Ok(frozen) => frozen,
        Err(error) => {
            assert!(error.to_string().chars().all(|c| !is_hidden(c)));
            return;
        }
    };
    // The other reader keeps the last of two equal names and sorts; there are none, so nothing is lost.
    let other: serde_json::Value = serde_json::from_slice(data).expect("accepted, but no JSON");
    let again = serde_json::to_vec(&other).expect("JSON");
    if let Ok(again) = freeze_action("demo.echo", &again, "why", None) {
        assert_eq!(again.bytes(), frozen.bytes());
    }
    assert_eq!(verify_action(frozen.bytes()).as_ref(), Ok(&frozen));
    assert_eq!(freeze_value_action(frozen.action().clone()).as_ref(), Ok(&frozen));
    let text = action_text(&frozen);
    assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)));
    assert!(warnings_for_action(&frozen, Some(&[])).len() <= 101);
});
