//! What a rule set is asked about: one call and who makes it. Knows no rule.

use std::collections::BTreeMap;

use exequatur_canonical::Object;

/// One call. What is `None` is not known: a rule that denies or asks and looks at it cannot be
/// decided, a rule that approves and looks at it does not match.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The tool's registered name.
    pub tool: &'a str,
    /// Its arguments, defaults filled in.
    pub arguments: &'a Object,
    /// Whether the tool's definition says that it can be undone.
    pub reversible: bool,
    /// The agent's name.
    pub agent: Option<&'a str>,
    /// The tenant's name.
    pub tenant: Option<&'a str>,
    /// Labels of the run.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// Labels of the action's inputs; they can only tighten.
    pub inputs: Option<&'a [String]>,
    /// Seconds since 1970.
    pub time_s: Option<i64>,
}

impl<'a> Call<'a> {
    /// A call of which nothing else is known. It is taken for one that cannot be undone.
    #[must_use]
    pub const fn new(tool: &'a str, arguments: &'a Object) -> Self {
        Self {
            tool,
            arguments,
            reversible: false,
            agent: None,
            tenant: None,
            labels: None,
            inputs: None,
            time_s: None,
        }
    }
}
