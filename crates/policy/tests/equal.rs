//! The index answers what a walk over all rules answers, and rules keep their laws.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::string_slice,
    reason = "tests may stop at once"
)]

mod support;

use exequatur_policy::{Compiled, evaluate, file};
use support::generate::{Random, call, rule, rules};

#[test]
fn the_index_is_equal_to_the_naive_interpreter() {
    let mut pairs = 0;
    for seed in 0..1500 {
        pairs += support::compare(seed, 20).unwrap();
    }
    assert_eq!(pairs, 30_000);
}

#[test]
fn a_deny_in_front_never_allows_more() {
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let text = rules(&mut random);
        let front = loop {
            let rule = rule(&mut random);
            if rule.contains("action: deny") {
                break rule;
            }
        };
        let more = text.replace("rules:\n", &format!("rules:\n{front}"));
        let (a, b) = (Compiled::new(&file::read(&text).unwrap()), Compiled::new(&file::read(&more).unwrap()));
        for _ in 0..20 {
            let call = call(&mut random);
            let call = call.as_call();
            assert!(evaluate(&b, &call).verdict >= evaluate(&a, &call).verdict, "{call:?}\n{more}");
        }
    }
}

#[test]
fn a_label_on_an_input_never_allows_more() {
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let compiled = Compiled::new(&file::read(&rules(&mut random)).unwrap());
        for _ in 0..20 {
            let mut call = call(&mut random);
            let Some(inputs) = &call.inputs else { continue };
            let more = [inputs.clone(), vec!["tainted".to_owned()]].concat();
            let before = evaluate(&compiled, &call.as_call()).verdict;
            call.inputs = Some(more);
            assert!(evaluate(&compiled, &call.as_call()).verdict >= before, "seed {seed}: {call:?}");
        }
    }
}

#[test]
fn the_order_of_unrelated_rules_does_not_matter() {
    // Rules of tools that no call has in common.
    let own = ["a", "b", "c", "d", "e"];
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut lines: Vec<String> = own
            .iter()
            .map(|tool| {
                let line = rule(&mut random);
                let rest = &line[line.find(", action").unwrap()..];
                format!("  - {{id: {tool}, tool: '{tool}.*'{rest}")
            })
            .collect();
        let before = Compiled::new(&file::read(&format!("rules:\n{}", lines.concat())).unwrap());
        let turn = 1 + random.below(4) as usize;
        lines.rotate_left(turn);
        let after = Compiled::new(&file::read(&format!("rules:\n{}", lines.concat())).unwrap());
        for _ in 0..20 {
            let mut call = call(&mut random);
            call.tool = format!("{}.x", random.pick(&own));
            assert_eq!(evaluate(&before, &call.as_call()), evaluate(&after, &call.as_call()));
        }
    }
}
