//! What holds for every action, header and number.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "tests may stop at once"
)]

mod common;

use common::*;
use exequatur_canonical::*;
use proptest::prelude::*;

// `PROPTEST_CASES` asks for more cases than the default of 256.
proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frozen_actions_verify_to_themselves(action in action()) {
        let frozen = freeze_value_action(action.clone()).unwrap();
        prop_assert_eq!(frozen.action(), &action);
        prop_assert_eq!(verify_action(frozen.bytes()).unwrap(), frozen);
    }

    #[test]
    fn frozen_headers_verify_to_themselves(header in header()) {
        let frozen = freeze_plan(header.clone()).unwrap();
        prop_assert_eq!(frozen.header(), &header);
        prop_assert_eq!(verify_plan(frozen.bytes()).unwrap(), frozen);
    }

    #[test]
    fn the_order_of_members_does_not_matter(arguments in json_arguments(), seed in any::<u64>()) {
        let mut state = seed;
        let mut shuffled = |n: usize| {
            let mut order: Vec<usize> = (0..n).collect();
            for at in (1..n).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                order.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
            }
            order
        };
        let permuted = object_to_json(&arguments, &mut shuffled);
        let sorted = object_to_json(&arguments, &mut |n| (0..n).collect());
        let first = freeze_action("demo.echo", permuted.as_bytes(), "", None).unwrap();
        prop_assert_eq!(&first.action().arguments, &arguments);
        let second = freeze_action("demo.echo", sorted.as_bytes(), "", None).unwrap();
        prop_assert_eq!(&first, &second);
        let again = freeze_value_action(first.action().clone()).unwrap();
        prop_assert_eq!(first, again);
    }

    #[test]
    fn the_effect_digest_leaves_out_the_rationale_and_nothing_else(a in action(), b in action()) {
        let reworded = Action { rationale: b.rationale.clone(), ..a.clone() };
        let (fa, fr, fb) = (freeze_value_action(a.clone()).unwrap(), freeze_value_action(reworded.clone()).unwrap(), freeze_value_action(b.clone()).unwrap());
        prop_assert_eq!(fa.effect_digest(), fr.effect_digest());
        prop_assert_eq!(fa.digest() == fr.digest(), a == reworded);
        let same_effect = Action { rationale: String::new(), ..a } == Action { rationale: String::new(), ..b };
        prop_assert_eq!(fa.effect_digest() == fb.effect_digest(), same_effect);
    }

    #[test]
    fn a_changed_byte_is_another_action_or_none(action in action(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let frozen = freeze_value_action(action).unwrap();
        let mut bytes = frozen.bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        match verify_action(&bytes) {
            Ok(other) => {
                prop_assert_ne!(other.digest(), frozen.digest());
                prop_assert_ne!(other.action(), frozen.action());
                prop_assert_eq!(other.bytes(), &bytes);
            }
            Err(error) => prop_assert_eq!(error.code, ErrorCode::NotCanonical),
        }
    }

    #[test]
    fn a_cut_or_a_tail_is_not_canonical(action in action(), cut in any::<prop::sample::Index>(), tail in any::<u8>()) {
        let frozen = freeze_value_action(action).unwrap();
        let bytes = frozen.bytes();
        // A whole last field may be absent by right; then it is another action.
        if let Ok(other) = verify_action(&bytes[..cut.index(bytes.len())]) {
            prop_assert_ne!(other.digest(), frozen.digest());
        }
        let long = [bytes, &[tail]].concat();
        prop_assert!(verify_action(&long).is_err());
    }

    #[test]
    fn every_double_is_read_back_from_its_shortest_text(bits in any::<u64>()) {
        let n = f64::from_bits(bits);
        prop_assume!(n.is_finite() && n != 0.0);
        for text in [format!("{n:?}"), format!("{n:e}")] {
            let text = if text.contains(['.', 'e']) { text } else { format!("{text}.0") };
            prop_assert_eq!(read_value(text.as_bytes()).unwrap(), Value::Double(n), "{}", text);
        }
    }

    #[test]
    fn a_double_is_exact_or_refused(text in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?") {
        // The oracle: the shortest text of the nearest double, both sides as digits and power of ten.
        let normal = |text: &str| {
            let text = text.trim_start_matches('-');
            let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
            let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let all = format!("{whole}{part}");
            let head = all.trim_start_matches('0');
            let power: i64 = power.parse::<i64>().unwrap() + i64::try_from(whole.len()).unwrap() - i64::try_from(all.len() - head.len()).unwrap();
            (head.trim_end_matches('0').to_owned(), power)
        };
        let is_double = text.contains(['.', 'e', 'E']);
        match read_value(text.as_bytes()) {
            Ok(Value::Double(n)) => {
                prop_assert!(is_double);
                prop_assert_eq!(n.to_bits(), text.parse::<f64>().unwrap().to_bits());
                if n != 0.0 {
                    prop_assert_eq!(normal(&format!("{n:e}")), normal(&text));
                }
            }
            Ok(Value::Int(n)) => prop_assert_eq!(n.to_string(), text),
            Ok(Value::Uint(n)) => prop_assert_eq!(n.to_string(), text),
            Ok(other) => prop_assert!(false, "{:?}", other),
            Err(error) => {
                let nearest = text.parse::<f64>().unwrap();
                match error.code {
                    ErrorCode::NegativeZero => prop_assert!(normal(&text).0.is_empty() && text.starts_with('-')),
                    ErrorCode::NumberOutOfRange if is_double => prop_assert!(nearest.is_infinite()),
                    ErrorCode::NumberOutOfRange => prop_assert!(text.parse::<i64>().is_err() && text.parse::<u64>().is_err()),
                    ErrorCode::NumberNotExact => {
                        let shortest = normal(&format!("{nearest:e}"));
                        prop_assert!(is_double && shortest != normal(&text));
                    }
                    other => prop_assert!(false, "{other}"),
                }
            }
        }
    }

    #[test]
    fn what_is_read_is_json_to_others_too(text in "[\\[\\]{}:,\"\\\\ualnrtfse0-9.+-]{0,12}|\\PC{0,12}") {
        if read_value(text.as_bytes()).is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
        }
    }
}
