//! Rules as people write them: YAML in, rule set bytes out. A typing error is refused with its
//! line and the nearest word; nothing is guessed. Knows no tenant.

use exequatur_canonical::{Value, read_arguments};
use exequatur_proto::action::v1 as action;
use exequatur_proto::policy::v1 as proto;
pub use exequatur_yaml::FileError;
use exequatur_yaml::{Kind, Node};
use prost::Message as _;

use crate::glob::Glob;
use crate::{DEFAULT_EXPIRES, DEFAULT_WINDOW, PolicyError, RuleSet, Verdict, argument, check};

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
    let document = exequatur_yaml::read(text)?;
    let mut top = document.map()?;
    // Both forms are taken: the set itself, and the set under `broker:`.
    let set = match top.take("broker") {
        Some(inner) => {
            top.done()?;
            rule_set(inner)?
        }
        None => rule_set(&document)?,
    };
    RuleSet::verify(&set.encode_to_vec()).map_err(|error| {
        // Everything that has a line was checked on the way; the rest concerns the whole file.
        let message = match error {
            PolicyError::Invalid { path, why } => format!("{path}: {why}"),
            other => other.to_string(),
        };
        document.error(message)
    })
}

fn rule_set(node: &Node) -> Result<proto::RuleSet, FileError> {
    let mut map = node.map()?;
    let mode = match map.take("mode") {
        Some(mode) => mode.word(&[("enforce", proto::Mode::Enforce), ("observe", proto::Mode::Observe)])?,
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
        let rule = rule(node, at + 1)?;
        if !ids.insert(rule.id.clone()) {
            return Err(node.error(format!("another rule has the id `{}`", rule.id)));
        }
        rules.push(rule);
    }
    Ok(proto::RuleSet {
        mode: mode.into(),
        default_verdict: default.to_proto().into(),
        rules,
        observe_irreversible,
    })
}

fn rule(node: &Node, number: usize) -> Result<proto::Rule, FileError> {
    let mut map = node.map()?;
    let tool = map.need("tool")?;
    let glob = tool.text()?;
    check::tool(glob)
        .map_err(ToOwned::to_owned)
        .and_then(|()| Glob::compile(glob).map(|_| ()))
        .map_err(|why| tool.error(why))?;
    let id = match map.take("id") {
        Some(id) => {
            check::rule_id(id.text()?).map_err(|why| id.error(why))?;
            id.text()?.to_owned()
        }
        None => format!("rule-{number}"),
    };
    let verdict = map.need("action")?.word(VERDICTS)?;
    let args_match = match map.take("args_match") {
        Some(conditions) => args_match(conditions)?,
        None => Vec::new(),
    };
    let reason = match map.take("reason") {
        Some(reason) if check::plain_line(reason.text()?, 512) => reason.text()?.to_owned(),
        Some(reason) => {
            return Err(reason.error("must be one line of at most 512 bytes without hidden characters"));
        }
        None => String::new(),
    };
    let (mut expires_s, mut never_expires) = (DEFAULT_EXPIRES.as_secs(), false);
    let mut window_s = DEFAULT_WINDOW.as_secs();
    for key in ["expires", "window"] {
        let Some(value) = map.take(key) else { continue };
        if verdict != Verdict::RequireHuman {
            return Err(value.error(format!("`{key}` has a meaning only with `action: require_human`")));
        }
        match (key, &value.kind) {
            ("expires", Kind::Text(word)) if word == "never" => (expires_s, never_expires) = (0, true),
            ("expires", _) => expires_s = duration(value, check::MAX_EXPIRES_S)?,
            _ => window_s = duration(value, check::MAX_WINDOW_S)?,
        }
    }
    map.done()?;
    Ok(proto::Rule {
        id,
        tool: glob.to_owned(),
        args_match,
        verdict: verdict.to_proto().into(),
        reason,
        expires_s,
        never_expires,
        window_s,
    })
}

fn args_match(node: &Node) -> Result<Vec<proto::ArgumentMatch>, FileError> {
    let map = node.map()?;
    if map.entries().is_empty() {
        return Err(node.error("`args_match` is empty; leave it out to match any arguments"));
    }
    map.entries()
        .iter()
        .map(|(place, path, value)| {
            argument::path(path).map_err(|why| place.error(why))?;
            let any_of = match &value.kind {
                Kind::List(items) if items.is_empty() => {
                    return Err(value.error("the list is empty, so nothing could match"));
                }
                Kind::List(items) => items.iter().map(pattern).collect::<Result<_, _>>()?,
                _ => vec![pattern(value)?],
            };
            Ok(proto::ArgumentMatch { path: path.clone(), any_of })
        })
        .collect()
}

fn pattern(node: &Node) -> Result<proto::Pattern, FileError> {
    use proto::pattern::Pattern;
    let pattern = match &node.kind {
        Kind::Text(text) if Glob::is_glob(text) => {
            Glob::compile(text).map_err(|why| node.error(why))?;
            Pattern::Glob(text.clone())
        }
        Kind::Text(text) => scalar(action::value::Kind::StringValue(text.clone())),
        Kind::Bool(value) => scalar(action::value::Kind::BoolValue(*value)),
        Kind::Null => scalar(action::value::Kind::NullValue(0)),
        Kind::Number(text) => number(node, text)?,
        Kind::List(_) | Kind::Map(_) => return Err(node.error("must be a scalar or text with `*`")),
    };
    Ok(proto::Pattern { pattern: Some(pattern) })
}

fn scalar(kind: action::value::Kind) -> proto::pattern::Pattern {
    proto::pattern::Pattern::Scalar(action::Value { kind: Some(kind) })
}

/// Numbers have the type that the same text has in an agent's JSON.
fn number(node: &Node, text: &str) -> Result<proto::pattern::Pattern, FileError> {
    let object = read_arguments(format!("{{\"v\":{text}}}").as_bytes())
        .map_err(|e| node.error(format!("the number cannot be an argument ({})", e.code)))?;
    match object.get("v") {
        Some(Value::Int(n)) => Ok(scalar(action::value::Kind::IntValue(*n))),
        Some(Value::Uint(n)) => Ok(scalar(action::value::Kind::UintValue(*n))),
        Some(Value::Double(n)) => Ok(scalar(action::value::Kind::DoubleValue(*n))),
        _ => Err(node.error("must be a number")),
    }
}

/// `90s`, `15m`, `24h`, `7d`.
fn duration(node: &Node, max: u64) -> Result<u64, FileError> {
    let wrong = || node.error("must be a whole number and one of s, m, h, d, such as `15m` or `24h`");
    let Kind::Text(text) = &node.kind else { return Err(wrong()) };
    let unit = match text.chars().next_back() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        _ => return Err(wrong()),
    };
    let digits = text.trim_end_matches(['s', 'm', 'h', 'd']);
    if digits.len() + 1 != text.len() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
    if !(1..=max).contains(&seconds) {
        return Err(node.error(format!("must be 1 second to {} days", max / 86_400)));
    }
    Ok(seconds)
}
