//! The meaning of a rule set, written for reading: every rule is tried in order on the message itself.

use exequatur_canonical::{Object, Value};
use exequatur_policy::{Call, Verdict};
use exequatur_proto::action::v1::value::Kind;
use exequatur_proto::policy::v1::pattern::Pattern;
use exequatur_proto::policy::v1::{ArgumentMatch, Elements, Mode, Presence, Range, Rule, RuleSet, ValueType};

pub struct Answer {
    pub verdict: Verdict,
    pub enforce: Verdict,
    pub rule: String,
    pub error: bool,
    pub mode: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Yes,
    No,
    Unclear,
}

pub fn evaluate(set: &RuleSet, call: &Call<'_>) -> Answer {
    let binds = !call.reversible && !set.observe_irreversible;
    let default = Verdict::from_proto(set.default_verdict).unwrap();
    let full = read(set, call, default, |_| true);
    let enforce = full.0;
    let tried = set.mode() == Mode::Observe && !binds;
    let floor = if tried { Verdict::AutoApprove } else { default };
    let mut bound = read(set, call, floor, |rule| match rule.mode() {
        Mode::Enforce => true,
        Mode::Observe => binds && rule.verdict != Verdict::AutoApprove.to_proto() as i32,
        Mode::Unspecified => set.mode() == Mode::Enforce || binds,
    });
    if tried && bound.1.is_none() {
        bound = (Verdict::AutoApprove, full.1, full.2);
    }
    let mode = match bound.1.map(Rule::mode) {
        None | Some(Mode::Unspecified) => set.mode(),
        Some(own) => own,
    };
    Answer {
        verdict: bound.0,
        enforce,
        rule: bound.1.map_or("default".to_owned(), |rule| rule.id.clone()),
        error: bound.2,
        mode: if mode == Mode::Observe { "observe" } else { "enforce" },
    }
}

fn read<'a>(
    set: &'a RuleSet,
    call: &Call<'_>,
    default: Verdict,
    counts: impl Fn(&Rule) -> bool,
) -> (Verdict, Option<&'a Rule>, bool) {
    let verdict_of = |rule: &Rule| Verdict::from_proto(rule.verdict).unwrap();
    let (mut error, mut floor, mut matched): (Option<&Rule>, Option<&Rule>, Option<&Rule>) =
        (None, None, None);
    for rule in set.rules.iter().filter(|rule| counts(rule)) {
        if !glob(&rule.tool, call.tool, true) {
            continue;
        }
        match rule_fit(rule, call) {
            Fit::Yes if !rule.inputs.is_empty() => {
                if floor.is_none_or(|f| verdict_of(f) < verdict_of(rule)) {
                    floor = Some(rule);
                }
            }
            Fit::Yes => {
                matched = Some(rule);
                break;
            }
            Fit::Unclear if verdict_of(rule) != Verdict::AutoApprove => error = error.or(Some(rule)),
            Fit::Unclear | Fit::No => {}
        }
    }
    let mut out = (matched.map_or(default, verdict_of), matched);
    if let Some(floor) = floor
        && out.0 < verdict_of(floor)
    {
        out = (verdict_of(floor), Some(floor));
    }
    if error.is_some() && out.0 == Verdict::AutoApprove {
        out = (Verdict::RequireHuman, error);
    }
    (out.0, out.1, error.is_some())
}

fn rule_fit(rule: &Rule, call: &Call<'_>) -> Fit {
    let wide = rule.verdict != Verdict::AutoApprove.to_proto() as i32;
    let named = |globs: &[String], value: Option<&str>| match value {
        _ if globs.is_empty() => Fit::Yes,
        None => Fit::Unclear,
        Some(v) => yes(globs.iter().any(|g| glob(g, v, wide))),
    };
    let mut fits = vec![named(&rule.agents, call.agent), named(&rule.tenants, call.tenant)];
    if rule.reversibility != 0 {
        fits.push(yes((rule.reversibility == 1) == call.reversible));
    }
    if !rule.inputs.is_empty() {
        fits.push(call.inputs.map_or(Fit::Unclear, |i| yes(rule.inputs.iter().any(|r| i.contains(r)))));
    }
    fits.extend(rule.args_match.iter().map(|m| argument_fit(m, call.arguments, wide)));
    all(&fits)
}

fn yes(holds: bool) -> Fit {
    if holds { Fit::Yes } else { Fit::No }
}

fn all(fits: &[Fit]) -> Fit {
    if fits.contains(&Fit::No) {
        Fit::No
    } else if fits.contains(&Fit::Unclear) {
        Fit::Unclear
    } else {
        Fit::Yes
    }
}

fn argument_fit(m: &ArgumentMatch, arguments: &Object, wide: bool) -> Fit {
    let mut value = Value::Object(arguments.clone());
    let names: Vec<&str> = m.path.split('.').collect();
    let mut missing = false;
    for name in names {
        let Value::Object(object) = &value else { return Fit::Unclear };
        match object.get(name) {
            Some(next) => value = next.clone(),
            None => {
                missing = true;
                break;
            }
        }
    }
    if m.presence() != Presence::Unspecified {
        return match (missing, value) {
            (false, Value::Null) => Fit::Unclear,
            (missing, _) => yes(missing == (m.presence() == Presence::Absent)),
        };
    }
    if missing {
        return Fit::Unclear;
    }
    match (m.elements(), &value) {
        (Elements::Unspecified, value) => value_fit(m, value, wide),
        (Elements::Any, Value::List(items)) => {
            let fits: Vec<Fit> = items.iter().map(|i| value_fit(m, i, wide)).collect();
            if fits.contains(&Fit::Yes) {
                Fit::Yes
            } else if fits.contains(&Fit::Unclear) {
                Fit::Unclear
            } else {
                Fit::No
            }
        }
        (Elements::All, Value::List(items)) if !items.is_empty() => {
            all(&items.iter().map(|i| value_fit(m, i, wide)).collect::<Vec<_>>())
        }
        _ => Fit::Unclear,
    }
}

fn value_fit(m: &ArgumentMatch, value: &Value, wide: bool) -> Fit {
    if m.r#type() == ValueType::Number {
        let number = match value {
            Value::Int(n) => *n as f64,
            Value::Uint(n) => *n as f64,
            Value::Double(n) => *n,
            _ => return Fit::Unclear,
        };
        return yes(m.any_of.iter().any(|p| match p.pattern.as_ref().unwrap() {
            Pattern::Range(Range { min, max, above_min, below_max }) => {
                min.is_none_or(|b| if *above_min { number > b } else { number >= b })
                    && max.is_none_or(|b| if *below_max { number < b } else { number <= b })
            }
            Pattern::Scalar(v) => match v.kind.as_ref().unwrap() {
                Kind::IntValue(n) => *n as f64 == number,
                Kind::DoubleValue(n) => *n == number,
                _ => false,
            },
            Pattern::Glob(_) => false,
        }));
    }
    let mut spoken = false;
    for pattern in &m.any_of {
        let (same, equal) = match (pattern.pattern.as_ref().unwrap(), value) {
            (Pattern::Glob(g), Value::String(text)) => (true, glob(g, text, wide)),
            (Pattern::Scalar(v), value) => match (v.kind.as_ref().unwrap(), value) {
                (Kind::NullValue(_), Value::Null) => (true, true),
                (Kind::BoolValue(a), Value::Bool(b)) => (true, a == b),
                (Kind::IntValue(a), Value::Int(b)) => (true, a == b),
                (Kind::IntValue(_) | Kind::UintValue(_), Value::Uint(_)) => (true, false),
                (Kind::DoubleValue(a), Value::Double(b)) => (true, a == b),
                (Kind::StringValue(a), Value::String(b)) => (true, a == b),
                _ => (false, false),
            },
            _ => (false, false),
        };
        if equal {
            return Fit::Yes;
        }
        spoken |= same;
    }
    if spoken { Fit::No } else { Fit::Unclear }
}

fn glob(glob: &str, text: &str, wide: bool) -> bool {
    fn go(g: &[char], t: &[char], wide: bool) -> bool {
        match g {
            [] => t.is_empty(),
            ['*', '*', rest @ ..] => (0..=t.len()).any(|i| go(rest, &t[i..], wide)),
            ['*'] => true,
            ['*', rest @ ..] => (0..=t.len())
                .take_while(|i| wide || *i == 0 || !"/\\?#@% ".contains(t[i - 1]))
                .any(|i| go(rest, &t[i..], wide)),
            [c, rest @ ..] => t.first() == Some(c) && go(rest, &t[1..], wide),
        }
    }
    go(&glob.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>(), wide)
}
