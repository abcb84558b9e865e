//! Whether one rule matches all that another would. May say no where it is so, never yes where it is not.

use exequatur_proto::policy::v1 as proto;

use super::text_of;
use crate::compiled::CompiledRule;
use crate::glob::{Glob, Reach};

type Both<'a> = (&'a proto::Rule, &'a CompiledRule);

/// Whether `a`, which stands before `b`, matches whenever `b` would.
pub(super) fn covers(a: Both<'_>, b: Both<'_>) -> bool {
    let ((a, a_compiled), (b, b_compiled)) = (a, b);
    let circumstances = (a.agents.is_empty() || a.agents == b.agents)
        && (a.tenants.is_empty() || a.tenants == b.tenants)
        && a.labels.iter().all(|label| b.labels.contains(label))
        && (a.reversibility == 0 || a.reversibility == b.reversibility)
        && (a.time.is_none() || a.time == b.time)
        && (a.when.is_empty() || a.when == b.when);
    // What only tightens, or is only tried out, does not end the search.
    let ends = !a_compiled.tightens && a.mode() != proto::Mode::Observe;
    // A pattern in a rule that approves reaches less than the same one in a rule that does not.
    let reach = if a_compiled.reach == b_compiled.reach { Some(a_compiled.reach) } else { None };
    let condition = |of_a: &proto::ArgumentMatch| {
        b.args_match.iter().any(|of_b| {
            of_a.path == of_b.path
                && of_a.r#type == of_b.r#type
                && of_a.elements == of_b.elements
                && of_a.presence == of_b.presence
                && of_b.any_of.iter().all(|p| of_a.any_of.iter().any(|q| same(q, p, of_a, reach)))
        })
    };
    ends && circumstances
        && a_compiled.tool.covers(&b_compiled.tool, Reach::Wide)
        && a.args_match.iter().all(condition)
}

fn same(q: &proto::Pattern, p: &proto::Pattern, of_a: &proto::ArgumentMatch, reach: Option<Reach>) -> bool {
    let exact = of_a.r#type() == proto::ValueType::Unspecified;
    let is_glob = matches!(q.pattern, Some(proto::pattern::Pattern::Glob(_)));
    match reach {
        Some(reach) if exact => q == p || pattern(q, p, reach),
        Some(_) => q == p,
        None => q == p && exact && !is_glob,
    }
}

/// Whether one pattern over plain text matches all that another does.
pub(super) fn pattern(a: &proto::Pattern, b: &proto::Pattern, reach: Reach) -> bool {
    if a == b {
        return true;
    }
    let Some(proto::pattern::Pattern::Glob(glob)) = &a.pattern else { return false };
    let (Some(text), Ok(glob)) = (text_of(b), Glob::compile(glob)) else { return false };
    match &b.pattern {
        Some(proto::pattern::Pattern::Scalar(_)) => glob.matches(text, reach),
        Some(proto::pattern::Pattern::Glob(_)) => Glob::compile(text).is_ok_and(|b| glob.covers(&b, reach)),
        _ => false,
    }
}
