//! Every rule that a rule set must keep.

use exequatur_canonical::display::escape;
use exequatur_proto::action::v1::{Value, value::Kind};
use exequatur_proto::definition::v1::Risk;
use exequatur_proto::policy::v1 as proto;

use crate::compiled::CompiledRule;
use crate::evaluate::DEFAULT_RULE;
use crate::{PolicyError, Verdict};

/// Most rules of a set.
const MAX_RULES: usize = 10_000;
/// Most values of a condition.
const MAX_VALUES: usize = 1000;
/// Longest wait for a person, seconds; waiting without end has its own word.
pub(crate) const MAX_EXPIRES_S: u64 = 366 * 86_400;
/// Longest window that a yes opens, seconds.
pub(crate) const MAX_WINDOW_S: u64 = 7 * 86_400;

fn ensure(holds: bool, path: &str, why: impl Into<String>) -> Result<(), PolicyError> {
    if holds { Ok(()) } else { Err(PolicyError::Invalid { path: path.to_owned(), why: why.into() }) }
}

pub(crate) fn rule_set(set: &proto::RuleSet) -> Result<(), PolicyError> {
    ensure(
        !matches!(proto::Mode::try_from(set.mode), Err(_) | Ok(proto::Mode::Unspecified)),
        "mode",
        "must be enforce or observe",
    )?;
    ensure(
        matches!(Verdict::from_proto(set.default_verdict), Some(Verdict::RequireHuman | Verdict::Deny)),
        "default",
        "must be require_human or deny: what no rule names is never approved",
    )?;
    ensure(
        (1..=MAX_RULES).contains(&set.rules.len()),
        "rules",
        format!("must hold 1 to {MAX_RULES} rules; an empty list is taken for a mistake"),
    )?;
    let mut ids = std::collections::BTreeSet::new();
    for (at, rule) in set.rules.iter().enumerate() {
        self::rule(&format!("rules[{at}]"), rule)?;
        ensure(ids.insert(rule.id.as_str()), &format!("rules[{at}].id"), "another rule has the same id")?;
    }
    Ok(())
}

pub(crate) fn rule_id(id: &str) -> Result<(), &'static str> {
    let fits = (1..=63).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !fits {
        Err("an id is a letter or digit and up to 62 of letters, digits and `._-`")
    } else if id == DEFAULT_RULE {
        Err("`default` is the id of what no rule matches")
    } else {
        Ok(())
    }
}

/// One line without hidden characters.
pub(crate) fn plain_line(text: &str, max: usize) -> bool {
    text.len() <= max
        && text.chars().all(|c| {
            let mut own = [0; 4];
            let own: &str = c.encode_utf8(&mut own);
            matches!(c, '"' | '\\') || escape(own) == own
        })
}

/// A glob over tool names.
pub(crate) fn tool(glob: &str) -> Result<(), &'static str> {
    let fits = (1..=128).contains(&glob.len())
        && glob.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*')
        && glob.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-/*".contains(&b));
    if fits {
        Ok(())
    } else {
        Err("a tool is named by letters, digits and `_.-/`, and `*` for any run of them")
    }
}

pub(crate) fn rule(path: &str, rule: &proto::Rule) -> Result<(), PolicyError> {
    let at = |field: &str| format!("{path}.{field}");
    let invalid = |field: &str, why: &str| PolicyError::Invalid { path: at(field), why: why.to_owned() };
    rule_id(&rule.id).map_err(|why| invalid("id", why))?;
    tool(&rule.tool).map_err(|why| invalid("tool", why))?;
    ensure(
        Verdict::from_proto(rule.verdict).is_some(),
        &at("action"),
        "must be auto_approve, require_human or deny",
    )?;
    ensure(
        plain_line(&rule.reason, 512),
        &at("reason"),
        "must be one line of at most 512 bytes without hidden characters",
    )?;
    ensure(
        if rule.never_expires { rule.expires_s == 0 } else { (1..=MAX_EXPIRES_S).contains(&rule.expires_s) },
        &at("expires"),
        "must be 1 second to 366 days, or never",
    )?;
    ensure((1..=MAX_WINDOW_S).contains(&rule.window_s), &at("window"), "must be 1 second to 7 days")?;
    let mut paths = std::collections::BTreeSet::new();
    for condition in &rule.args_match {
        let here = format!("{path}.args_match.{}", condition.path);
        ensure(paths.insert(&condition.path), &here, "the argument stands twice")?;
        ensure(condition.any_of.len() <= MAX_VALUES, &here, "must hold 1 to 1000 values")?;
        for pattern in &condition.any_of {
            if let Some(proto::pattern::Pattern::Scalar(scalar)) = &pattern.pattern {
                ensure(self::scalar(scalar), &here, "must be a scalar of at most 4096 bytes")?;
            }
        }
    }
    circumstances(path, rule)?;
    people(path, rule)?;
    CompiledRule::compile(rule)
        .map(|_| ())
        .map_err(|(field, why)| PolicyError::Invalid { path: at(&field), why })
}

/// A name of a person, agent, label or input.
pub(crate) fn name(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && plain_line(text, 256)
}

fn distinct(path: &str, names: &[String]) -> Result<(), PolicyError> {
    ensure(names.len() <= MAX_VALUES, path, "must hold at most 1000 names")?;
    ensure(names.iter().all(|n| name(n)), path, "a name has 1 to 256 bytes on one line")?;
    let set: std::collections::BTreeSet<&String> = names.iter().collect();
    ensure(set.len() == names.len(), path, "a name stands twice")
}

fn circumstances(path: &str, rule: &proto::Rule) -> Result<(), PolicyError> {
    let at = |field: &str| format!("{path}.{field}");
    distinct(&at("agent"), &rule.agents)?;
    distinct(&at("tenant"), &rule.tenants)?;
    distinct(&at("inputs"), &rule.inputs)?;
    let names: Vec<String> = rule.labels.iter().map(|l| l.name.clone()).collect();
    distinct(&at("labels"), &names)?;
    for label in &rule.labels {
        distinct(&at("labels"), &label.any_of)?;
        ensure(!label.any_of.is_empty(), &at("labels"), "a label has at least one value")?;
    }
    ensure(
        rule.inputs.is_empty() || rule.verdict() != proto::Verdict::AutoApprove,
        &at("inputs"),
        "labels of inputs only tighten: they belong to require_human and deny",
    )
}

fn people(path: &str, rule: &proto::Rule) -> Result<(), PolicyError> {
    let at = |field: &str| format!("{path}.{field}");
    let asks = rule.verdict() == proto::Verdict::RequireHuman;
    ensure(
        asks || (rule.reviewers.is_empty() && rule.quorum == 0 && rule.escalation.is_none()),
        &at("action"),
        "reviewers, quorum and escalation belong to require_human",
    )?;
    ensure(Risk::try_from(rule.risk).is_ok(), &at("risk"), "must be low, medium or high")?;
    distinct(&at("reviewers"), &rule.reviewers)?;
    distinct(&at("notify"), &rule.notify)?;
    let enough = rule.reviewers.is_empty()
        || usize::try_from(rule.quorum).is_ok_and(|quorum| quorum <= rule.reviewers.len());
    ensure(rule.quorum <= 16, &at("quorum"), "must be 1 to 16")?;
    ensure(enough, &at("quorum"), "asks for more people than there are reviewers")?;
    if let Some(escalation) = &rule.escalation {
        distinct(&at("escalation.to"), &escalation.to)?;
        ensure(!escalation.to.is_empty(), &at("escalation.to"), "names nobody")?;
        let before = rule.never_expires || escalation.after_s < rule.expires_s;
        ensure(
            (1..=MAX_EXPIRES_S).contains(&escalation.after_s) && before,
            &at("escalation.after"),
            "must be at least 1 second and before the item expires",
        )?;
    }
    if let Some(rate) = &rule.rate {
        let fits = rate.count > 0 && (1..=MAX_EXPIRES_S).contains(&rate.per_s);
        ensure(fits, &at("rate"), "must be a count within 1 second to 366 days")?;
    }
    Ok(())
}

/// A scalar in canonical form.
fn scalar(value: &Value) -> bool {
    match &value.kind {
        Some(Kind::NullValue(0) | Kind::BoolValue(_) | Kind::IntValue(_)) => true,
        Some(Kind::UintValue(n)) => i64::try_from(*n).is_err(),
        Some(Kind::DoubleValue(n)) => n.is_finite() && !(*n == 0.0 && n.is_sign_negative()),
        Some(Kind::StringValue(text)) => text.len() <= 4096,
        _ => false,
    }
}
