//! An interpreter that reads the rule set's message rule by rule, without index or compiled form, and
//! a generator of rule sets and calls. What the index answers must be equal.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each program uses a part")]

pub mod generate;
pub mod naive;

/// Compares one generated pair; says what differs.
pub fn compare(seed: u64, calls: u64) -> Result<u64, String> {
    let mut random = generate::Random::new(seed);
    let text = generate::rules(&mut random);
    let set = exequatur_policy::file::read(&text).map_err(|e| format!("{e}\n{text}"))?;
    let compiled = exequatur_policy::Compiled::new(&set);
    for _ in 0..calls {
        let call = generate::call(&mut random);
        let call = call.as_call();
        let fast = exequatur_policy::evaluate(&compiled, &call);
        let slow = naive::evaluate(set.message(), &call);
        let found = (
            fast.verdict,
            fast.enforce_verdict,
            fast.rule.as_str(),
            fast.error.is_some(),
            fast.mode.as_str(),
        );
        let wanted = (slow.verdict, slow.enforce, slow.rule.as_str(), slow.error, slow.mode);
        if found != wanted {
            return Err(format!("seed {seed}: {found:?} against {wanted:?}\n{call:?}\n{text}"));
        }
    }
    Ok(calls)
}
