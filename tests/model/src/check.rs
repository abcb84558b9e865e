//! Checking one protocol under bounds: which properties break, and whether everything can end.

use stateright::{Checker as _, Expectation, HasDiscoveries, Model as _};

use crate::graph::can_always_end;
use crate::protocol::{Bounds, Protocol};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// States that were seen, all of them when nothing broke.
    pub states: usize,
    /// Properties that do not hold, and runs that never happen.
    pub broken: Vec<&'static str>,
}

impl Protocol {
    /// Checks every property in every state, up to the first that breaks.
    #[must_use]
    pub fn check(&self) -> Found {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let checker = self.checker().threads(threads);
        // Depth first: what waits to be visited is one path, and not half the space.
        let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
        let is_broken = |expectation: &Expectation, name| match expectation {
            Expectation::Sometimes => checker.is_done() && checker.discovery(name).is_none(),
            _ => checker.discovery(name).is_some(),
        };
        let all = self.properties().into_iter();
        let broken = all.filter(|p| is_broken(&p.expectation, p.name)).map(|p| p.name).collect();
        Found { states: checker.unique_state_count(), broken }
    }

    /// What the planted faults break, looked for in small spaces first.
    #[must_use]
    pub fn finds(&self) -> Vec<&'static str> {
        for (crashes, mishaps) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let bounded = Self { bounds: Bounds { crashes, mishaps }, ..*self };
            let found = bounded.broken_rules();
            if !found.is_empty() {
                return found;
            }
            if mishaps == 0 && can_always_end(&bounded).is_err() {
                return vec!["everything can end"];
            }
        }
        Vec::new()
    }

    fn broken_rules(&self) -> Vec<&'static str> {
        let always = |name: &&str| {
            self.properties().iter().any(|p| p.name == *name && p.expectation == Expectation::Always)
        };
        self.check().broken.into_iter().filter(always).collect()
    }
}
