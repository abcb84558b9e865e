//! Tests over whole rule files.

mod attacks;
mod files;
mod page;
mod planted;
mod rules;

use exequatur_canonical::{Object, read_arguments};

use crate::{Call, Compiled, Evaluation, Verdict, file};

pub(crate) fn args(text: &str) -> Object {
    read_arguments(text.as_bytes()).unwrap()
}

pub(crate) fn evaluate(rules: &Compiled, tool: &str, arguments: &Object, irreversible: bool) -> Evaluation {
    crate::evaluate(rules, &Call { reversible: !irreversible, ..Call::new(tool, arguments) })
}

/// Evaluates an irreversible action.
pub(crate) fn ask(rules: &str, tool: &str, arguments: &str) -> Evaluation {
    let set = file::read(rules).unwrap();
    evaluate(&Compiled::new(&set), tool, &args(arguments), true)
}

pub(crate) fn says(rules: &str, tool: &str, arguments: &str) -> Verdict {
    ask(rules, tool, arguments).verdict
}
