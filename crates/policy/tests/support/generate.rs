//! Rule sets and calls from a small vocabulary, so that they meet often.

use exequatur_canonical::{Object, read_arguments};
use exequatur_policy::Call;

/// SplitMix64: equal seeds give equal pairs on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

const TOOLS: &[&str] = &["a", "b", "a.x", "a.y", "b.x", "ab.xy", "a/x", "A.x"];
const GLOBS: &[&str] =
    &["a", "b", "a.x", "a.y", "'a*'", "'*.x'", "'*'", "'a*x'", "'*b*'", "'**'", "ab.xy", "'a.*'", "a", "a"];
const ACTIONS: &[&str] = &["auto_approve", "require_human", "deny"];
const VALUES: &[&str] = &[
    "1",
    "2",
    "1.0",
    "true",
    "false",
    "null",
    "x",
    "y",
    "'x*'",
    "'*y'",
    "[1, x]",
    "[x, y, 'z*']",
    "[null, true]",
    "{present: true}",
    "{present: false}",
    "{number: 1}",
    "{number: {min: 1, below: 2}}",
    "{number: [{above: 1}, 0]}",
    "{any: x}",
    "{all: [x, y]}",
    "{any: {number: {max: 1}}}",
    "x",
    "y",
    "z",
    "1",
    "[x, 2]",
];
const ARGUMENTS: &[&str] = &[
    "1",
    "2",
    "1.0",
    "1.5",
    "0",
    "true",
    "null",
    "\"x\"",
    "\"y\"",
    "\"xy\"",
    "\"z/y\"",
    "\"\"",
    "[]",
    "[\"x\"]",
    "[\"x\",\"y\"]",
    "[1,2]",
    "[\"x\",1]",
    "{}",
    "{\"q\":\"x\"}",
    "18446744073709551615",
];
const PATHS: &[&str] = &["p", "q", "p.q"];

/// The text of a rule file.
pub fn rules(random: &mut Random) -> String {
    let mut out = String::new();
    if random.below(6) == 0 {
        out.push_str("mode: observe\n");
    }
    if random.below(8) == 0 {
        out.push_str("observe_irreversible: true\n");
    }
    if random.below(2) == 0 {
        out.push_str("default: require_human\n");
    }
    out.push_str("rules:\n");
    for _ in 0..=random.below(14) {
        out.push_str(&rule(random));
    }
    out
}

/// One rule.
pub fn rule(random: &mut Random) -> String {
    let action = random.pick(ACTIONS);
    let mut out = format!("  - {{tool: {}, action: {action}", random.pick(GLOBS));
    if random.below(4) != 0 {
        let first = random.pick(PATHS);
        out.push_str(&format!(", args_match: {{{first}: {}", random.pick(VALUES)));
        let second = random.pick(PATHS);
        if second != first && random.below(3) == 0 {
            out.push_str(&format!(", {second}: {}", random.pick(VALUES)));
        }
        out.push('}');
    }
    if random.below(8) == 0 {
        out.push_str(random.pick(&[", agent: g", ", agent: ['g*', h]", ", tenant: t"]));
    }
    if random.below(8) == 0 {
        out.push_str(random.pick(&[", reversible: true", ", reversible: false"]));
    }
    if action != "auto_approve" && random.below(8) == 0 {
        out.push_str(random.pick(&[", inputs: tainted", ", inputs: [tainted, secret]"]));
    }
    if random.below(8) == 0 {
        out.push_str(random.pick(&[", mode: observe", ", mode: enforce"]));
    }
    out.push_str("}\n");
    out
}

/// A call that owns its parts.
#[derive(Debug)]
pub struct Owned {
    pub tool: String,
    pub arguments: Object,
    pub reversible: bool,
    pub agent: Option<&'static str>,
    pub tenant: Option<&'static str>,
    pub inputs: Option<Vec<String>>,
}

impl Owned {
    pub fn as_call(&self) -> Call<'_> {
        Call {
            reversible: self.reversible,
            agent: self.agent,
            tenant: self.tenant,
            inputs: self.inputs.as_deref(),
            ..Call::new(&self.tool, &self.arguments)
        }
    }
}

/// One call.
pub fn call(random: &mut Random) -> Owned {
    let mut members = Vec::new();
    for name in ["p", "q"] {
        if random.below(4) != 0 {
            members.push(format!("\"{name}\":{}", random.pick(ARGUMENTS)));
        }
    }
    Owned {
        tool: random.pick(TOOLS).to_owned(),
        arguments: read_arguments(format!("{{{}}}", members.join(",")).as_bytes()).unwrap(),
        reversible: random.below(2) == 0,
        agent: [None, Some("g"), Some("gh"), Some("i")][random.below(4) as usize],
        tenant: [None, Some("t"), Some("u")][random.below(3) as usize],
        inputs: match random.below(4) {
            0 => None,
            1 => Some(vec!["tainted".to_owned()]),
            2 => Some(vec!["public".to_owned(), "secret".to_owned()]),
            _ => Some(Vec::new()),
        },
    }
}
