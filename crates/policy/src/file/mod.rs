//! Rules as people write them: YAML in, rule set bytes out. A typing error is refused with its
//! line and the nearest word; nothing is guessed. Knows no tenant.

mod condition;
mod rule;
mod units;

use exequatur_proto::policy::v1 as proto;
pub use exequatur_yaml::FileError;
use exequatur_yaml::{Kind, Node, Place};
use prost::Message as _;

use crate::{PolicyError, RuleSet, Verdict};

/// A rule set and where each of its rules begins in the file.
#[derive(Debug)]
pub struct Located {
    /// The rule set.
    pub set: RuleSet,
    /// One place a rule, in order.
    pub places: Vec<Place>,
}

const MODES: &[(&str, proto::Mode)] = &[("enforce", proto::Mode::Enforce), ("observe", proto::Mode::Observe)];

const VERDICTS: &[(&str, Verdict)] = &[
    ("auto_approve", Verdict::AutoApprove),
    ("require_human", Verdict::RequireHuman),
    ("deny", Verdict::Deny),
];

/// Reads a rule file.
///
/// # Errors
/// The first thing that is wrong, with its line. One bad rule refuses all.
pub fn read(text: &str) -> Result<RuleSet, FileError> {
    read_located(text).map(|located| located.set)
}

/// Reads a rule file and keeps where its rules stand.
///
/// # Errors
/// As [`read`].
pub fn read_located(text: &str) -> Result<Located, FileError> {
    let document = exequatur_yaml::read(text)?;
    let mut top = document.map()?;
    // Both forms are taken: the set itself, and the set under `broker:`.
    let (set, places) = match top.take("broker") {
        Some(inner) => {
            top.done()?;
            rule_set(inner)?
        }
        None => rule_set(&document)?,
    };
    let set = RuleSet::verify(&set.encode_to_vec()).map_err(|error| {
        // Everything that has a line was checked on the way; the rest concerns the whole file.
        let message = match error {
            PolicyError::Invalid { path, why } => format!("{path}: {why}"),
            other => other.to_string(),
        };
        document.error(message)
    })?;
    Ok(Located { set, places })
}

fn rule_set(node: &Node) -> Result<(proto::RuleSet, Vec<Place>), FileError> {
    let mut map = node.map()?;
    let mode = match map.take("mode") {
        Some(mode) => mode.word(MODES)?,
        None => proto::Mode::Enforce,
    };
    let default = match map.take("default") {
        Some(word) => {
            let verdict = word.word(VERDICTS)?;
            if verdict == Verdict::AutoApprove {
                return Err(word.error(
                    "the default is `deny` or `require_human`: what no rule names is never approved",
                ));
            }
            verdict
        }
        None => Verdict::Deny,
    };
    let observe_irreversible = map.take("observe_irreversible").map_or(Ok(false), Node::bool)?;
    let list = map.need("rules")?;
    map.done()?;
    let nodes = list.list()?;
    if nodes.is_empty() {
        return Err(list
            .error("the list of rules is empty; to deny everything write `- {tool: \"*\", action: deny}`"));
    }
    let mut rules: Vec<proto::Rule> = Vec::with_capacity(nodes.len());
    let mut ids = std::collections::BTreeSet::new();
    for (at, node) in nodes.iter().enumerate() {
        let rule = rule::read(node, at + 1)?;
        if !ids.insert(rule.id.clone()) {
            return Err(node.error(format!("another rule has the id `{}`", rule.id)));
        }
        rules.push(rule);
    }
    let set = proto::RuleSet {
        mode: mode.into(),
        default_verdict: default.to_proto().into(),
        rules,
        observe_irreversible,
    };
    Ok((set, nodes.iter().map(|node| node.place).collect()))
}

/// The items of a list that is not empty, or the one node.
fn either(node: &Node) -> Result<&[Node], FileError> {
    match &node.kind {
        Kind::List(items) if items.is_empty() => Err(node.error("the list is empty, so nothing could match")),
        Kind::List(items) => Ok(items),
        _ => Ok(std::slice::from_ref(node)),
    }
}
