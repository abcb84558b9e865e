//! Which rules a call can reach: by the tool's name, and among many rules of one tool by the value of
//! an argument that each of them compares. What is left out surely does not match. Knows no verdict.

use std::collections::HashMap;

use exequatur_canonical::{Object, Value};

use crate::argument::value_at;
use crate::compiled::CompiledRule;
use crate::test::{Exact, Scalar, Test};
use crate::trie::Trie;
use crate::{Call, Verdict};

/// From so many rules of one name on, a second index is worth its lookups.
const MANY: usize = 4;

/// Rules whose tools share a beginning or end.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    rest: Vec<u32>,
    keys: Vec<Key>,
}

/// Rules that compare one argument with scalars.
#[derive(Debug, Default)]
struct Key {
    names: Vec<String>,
    texts: HashMap<String, Vec<u32>>,
    scalars: HashMap<Scalar, Vec<u32>>,
    /// By the kind of the argument: rules that deny or ask and speak of no value of that kind.
    unclear: [Vec<u32>; KINDS],
}

const KINDS: usize = 6;

/// A rule set's index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    exact: HashMap<String, Bucket>,
    prefixes: Trie<Bucket>,
    suffixes: Trie<Bucket>,
}

/// Rules in their order, each list ascending.
#[derive(Debug, Default)]
pub(crate) struct Candidates<'a> {
    lists: Vec<(&'a [u32], bool)>,
}

impl<'a> Candidates<'a> {
    fn add(&mut self, list: &'a [u32], unclear: bool) {
        if !list.is_empty() {
            self.lists.push((list, unclear));
        }
    }

    /// After one rule could not be decided, others that cannot be decided say nothing new.
    pub(crate) fn drop_unclear(&mut self) {
        self.lists.retain(|(_, unclear)| !unclear);
    }
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let least = self.lists.iter().filter_map(|(list, _)| list.first()).min().copied()?;
        for (list, _) in &mut self.lists {
            if let Some((first, rest)) = list.split_first()
                && *first == least
            {
                *list = rest;
            }
        }
        Some(least)
    }
}

impl Index {
    pub(crate) fn new(rules: &[CompiledRule]) -> Self {
        let mut names: HashMap<(u8, String), Vec<u32>> = HashMap::new();
        for (at, rule) in (0..).zip(rules) {
            let key = match (rule.tool.is_exact(), rule.tool.prefix()) {
                (true, name) => (0, name),
                (false, prefix) if prefix.is_empty() => (2, rule.tool.suffix()),
                (false, prefix) => (1, prefix),
            };
            names.entry(key).or_default().push(at);
        }
        let mut out = Self::default();
        for ((side, name), at) in names {
            let bucket = Bucket::new(&at, rules);
            match side {
                0 => drop(out.exact.insert(name, bucket)),
                1 => out.prefixes.insert(name.bytes(), bucket),
                _ => out.suffixes.insert(name.bytes().rev(), bucket),
            }
        }
        out
    }

    /// The rules that may match a call.
    pub(crate) fn candidates<'a>(&'a self, call: &Call<'_>) -> Candidates<'a> {
        let mut out = Candidates { lists: Vec::with_capacity(8) };
        if let Some(bucket) = self.exact.get(call.tool) {
            bucket.add(call.arguments, &mut out);
        }
        self.prefixes.walk(call.tool.bytes(), |bucket| bucket.add(call.arguments, &mut out));
        self.suffixes.walk(call.tool.bytes().rev(), |bucket| bucket.add(call.arguments, &mut out));
        out
    }
}

impl Bucket {
    fn new(at: &[u32], rules: &[CompiledRule]) -> Self {
        let mut out = Self::default();
        let many = at.len() >= MANY;
        for &number in at {
            let rule = usize::try_from(number).ok().and_then(|n| rules.get(n));
            match rule.filter(|_| many).and_then(|rule| Some((rule, key_of(rule)?))) {
                Some((rule, (names, scalars))) => out.key(names).add(number, rule, &scalars),
                None => out.rest.push(number),
            }
        }
        out
    }

    fn key(&mut self, names: &[String]) -> &mut Key {
        let found = self.keys.iter().position(|k| k.names == names);
        let at = found.unwrap_or(self.keys.len());
        if found.is_none() {
            self.keys.push(Key { names: names.to_vec(), ..Key::default() });
        }
        #[allow(clippy::indexing_slicing, reason = "found, or pushed just above")]
        &mut self.keys[at]
    }

    fn add<'a>(&'a self, arguments: &Object, out: &mut Candidates<'a>) {
        out.add(&self.rest, false);
        for key in &self.keys {
            let value = value_at(&key.names, arguments);
            if let Some(list) = key.equal(value) {
                out.add(list, false);
            }
            if let Some(list) = key.unclear.get(kind(value)) {
                out.add(list, true);
            }
        }
    }
}

/// A condition of the rule that compares an argument with scalars alone.
fn key_of(rule: &CompiledRule) -> Option<(&[String], Vec<&Scalar>)> {
    rule.conditions.iter().find_map(|condition| {
        let Some(Test::Exact(any_of)) = condition.test() else { return None };
        let scalars = any_of.iter().map(|exact| match exact {
            Exact::Scalar(scalar) => Some(scalar),
            Exact::Glob(_) => None,
        });
        Some((condition.names(), scalars.collect::<Option<Vec<_>>>()?))
    })
}

impl Key {
    fn add(&mut self, number: u32, rule: &CompiledRule, scalars: &[&Scalar]) {
        let mut spoken_of = [false; KINDS];
        for scalar in scalars {
            let list = match scalar {
                Scalar::Text(text) => self.texts.entry(text.clone()).or_default(),
                other => self.scalars.entry((*other).clone()).or_default(),
            };
            if list.last() != Some(&number) {
                list.push(number);
            }
            if let Some(kind) = spoken_of.get_mut(kind_of(scalar)) {
                *kind = true;
            }
        }
        if rule.verdict != Verdict::AutoApprove {
            for (list, _) in self.unclear.iter_mut().zip(spoken_of).filter(|(_, spoken)| !spoken) {
                list.push(number);
            }
        }
    }

    fn equal(&self, value: Option<&Value>) -> Option<&Vec<u32>> {
        let scalar = match value? {
            Value::String(text) => return self.texts.get(text),
            Value::Null => Scalar::Null,
            Value::Bool(b) => Scalar::Bool(*b),
            Value::Int(n) => Scalar::Whole(i128::from(*n)),
            Value::Uint(n) => Scalar::Whole(i128::from(*n)),
            Value::Double(n) => Scalar::Double(n.to_bits()),
            Value::Bytes(_) | Value::List(_) | Value::Object(_) => return None,
        };
        self.scalars.get(&scalar)
    }
}

const fn kind_of(scalar: &Scalar) -> usize {
    match scalar {
        Scalar::Null => 1,
        Scalar::Bool(_) => 2,
        Scalar::Whole(_) => 3,
        Scalar::Double(_) => 4,
        Scalar::Text(_) => 5,
    }
}

/// 0: missing, or of a kind that no scalar has.
const fn kind(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Null) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Int(_) | Value::Uint(_)) => 3,
        Some(Value::Double(_)) => 4,
        Some(Value::String(_)) => 5,
        None | Some(Value::Bytes(_) | Value::List(_) | Value::Object(_)) => 0,
    }
}
