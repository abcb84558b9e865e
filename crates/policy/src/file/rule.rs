//! One rule as people write it.

use exequatur_proto::definition::v1::{Reversibility, Risk};
use exequatur_proto::policy::v1 as proto;
use exequatur_yaml::{FileError, Kind, Map, Node};

use super::{VERDICTS, condition, units};
use crate::glob::Glob;
use crate::{DEFAULT_EXPIRES, DEFAULT_WINDOW, Verdict, check};

pub(super) fn read(node: &Node, number: usize) -> Result<proto::Rule, FileError> {
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
        Some(conditions) => condition::args_match(conditions)?,
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
            ("expires", _) => expires_s = units::duration(value, check::MAX_EXPIRES_S)?,
            _ => window_s = units::duration(value, check::MAX_WINDOW_S)?,
        }
    }
    let mut out = proto::Rule {
        id,
        tool: glob.to_owned(),
        args_match,
        verdict: verdict.to_proto().into(),
        reason,
        expires_s,
        never_expires,
        window_s,
        ..Default::default()
    };
    circumstances(&mut map, &mut out)?;
    people(&mut map, &mut out)?;
    map.done()?;
    // What is left has no place of its own.
    check::rule("", &out).map_err(|e| node.error(e.to_string().trim_start_matches('.').to_owned()))?;
    Ok(out)
}

/// Who calls, on what, and when.
fn circumstances(map: &mut Map<'_>, out: &mut proto::Rule) -> Result<(), FileError> {
    if let Some(mode) = map.take("mode") {
        out.set_mode(mode.word(super::MODES)?);
    }
    if let Some(agents) = map.take("agent") {
        out.agents = globs(agents)?;
    }
    if let Some(tenants) = map.take("tenant") {
        out.tenants = globs(tenants)?;
    }
    if let Some(labels) = map.take("labels") {
        let entries = labels.map()?;
        if entries.entries().is_empty() {
            return Err(labels.error("`labels` is empty; leave it out to match any run"));
        }
        for (_, name, value) in entries.entries() {
            out.labels.push(proto::LabelMatch { name: name.clone(), any_of: globs(value)? });
        }
    }
    if let Some(inputs) = map.take("inputs") {
        if out.verdict() == proto::Verdict::AutoApprove {
            return Err(
                inputs.error("labels of inputs only tighten: `inputs` belongs to `require_human` and `deny`")
            );
        }
        out.inputs = names(inputs)?;
    }
    if let Some(reversible) = map.take("reversible") {
        out.set_reversibility(match reversible.bool()? {
            true => Reversibility::Reversible,
            false => Reversibility::Irreversible,
        });
    }
    out.time = map.take("time").map(units::window).transpose()?;
    if let Some(when) = map.take("when") {
        crate::when::When::compile(when.text()?).map_err(|why| when.error(format!("`when` {why}")))?;
        when.text()?.clone_into(&mut out.when);
    }
    Ok(())
}

/// Who is asked, told and limited.
fn people(map: &mut Map<'_>, out: &mut proto::Rule) -> Result<(), FileError> {
    let asks = out.verdict() == proto::Verdict::RequireHuman;
    if let Some(risk) = map.take("risk") {
        out.set_risk(risk.word(&[("low", Risk::Low), ("medium", Risk::Medium), ("high", Risk::High)])?);
    }
    for key in ["reviewers", "quorum", "escalation"] {
        let Some(value) = map.take(key) else { continue };
        if !asks {
            return Err(value.error(format!("`{key}` has a meaning only with `action: require_human`")));
        }
        match key {
            "reviewers" => out.reviewers = names(value)?,
            "quorum" => out.quorum = u32::try_from(value.whole(1, 16)?).unwrap_or(1),
            _ => {
                let mut inner = value.map()?;
                let after_s = units::duration(inner.need("after")?, check::MAX_EXPIRES_S)?;
                let to = names(inner.need("to")?)?;
                inner.done()?;
                out.escalation = Some(proto::Escalation { after_s, to });
            }
        }
    }
    out.rate = map.take("rate").map(units::rate).transpose()?;
    if let Some(notify) = map.take("notify") {
        out.notify = names(notify)?;
    }
    Ok(())
}

fn globs(node: &Node) -> Result<Vec<String>, FileError> {
    super::either(node)?
        .iter()
        .map(|item| {
            let text = item.text()?;
            Glob::compile(text).map_err(|why| item.error(why))?;
            Ok(text.to_owned())
        })
        .collect()
}

fn names(node: &Node) -> Result<Vec<String>, FileError> {
    super::either(node)?
        .iter()
        .map(|item| match item.text()? {
            text if check::name(text) => Ok(text.to_owned()),
            _ => Err(item.error("must be a name of 1 to 256 bytes on one line")),
        })
        .collect()
}
