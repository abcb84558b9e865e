//! Keeps a failing Vault from being called: at most six calls that fail begin within any minute, of which
//! at most four are an engine's own failures, so that a broken database does not close Vault for other
//! credentials. Must not know what is called; it is told the time and what became of each call.
//!
//! A failure opens the lane for ten seconds (a plain 5xx only the third in a row); then one call is let
//! through as a probe, and only a probe's success closes the lane. Meanwhile callers get the failure's
//! kind at once. As nobody knows that Vault fails before the first answer, at most four calls are
//! under way at a time, fewer while failures of the last minute count.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Kind;

const WINDOW: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(10);
const PER_WINDOW: usize = 6;
/// Of these, failures of a third party behind an engine.
const ENGINES_OWN: usize = 4;
const UNDER_WAY: usize = 4;
const SERVER_ERRORS: u32 = 3;
/// A call given up by its caller counts as unanswered from this age on.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a failure says something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Vault itself.
    Vault,
    /// An engine that asks a third party (a database): its 5xx says nothing about Vault.
    Engine,
}

#[derive(Default)]
struct State {
    vault: Track,
    engine: Track,
}

#[derive(Default)]
struct Track {
    open: Option<Open>,
    /// When the failed calls of the last minute began.
    failed: VecDeque<Instant>,
    under_way: usize,
    in_a_row: u32,
    last: Option<Kind>,
}

struct Open {
    kind: Kind,
    until: Instant,
    probing: bool,
}

enum Verdict {
    Go { probe: bool },
    Wait,
    No(Kind),
}

impl Track {
    /// How many calls that failed began within the last minute.
    fn recent(&mut self, now: Instant) -> usize {
        while self.failed.front().is_some_and(|began| now.saturating_duration_since(*began) >= WINDOW) {
            self.failed.pop_front();
        }
        self.failed.len()
    }

    /// `limit`: calls that may fail within a minute.
    fn judge(&mut self, now: Instant, limit: usize) -> Verdict {
        let failed = self.recent(now);
        let spent = failed >= limit;
        match &self.open {
            Some(open) if open.probing || now < open.until || spent => Verdict::No(open.kind),
            Some(open) if self.under_way > 0 => Verdict::No(open.kind),
            Some(_) => Verdict::Go { probe: true },
            None if spent => Verdict::No(self.last.unwrap_or(Kind::ServerError)),
            None if self.under_way >= UNDER_WAY.min(limit.saturating_sub(failed)) => Verdict::Wait,
            None => Verdict::Go { probe: false },
        }
    }

    fn begin(&mut self) {
        self.under_way += 1;
        if let Some(open) = &mut self.open {
            open.probing = true;
        }
    }

    fn end(&mut self, began: Instant, now: Instant, probe: bool, failure: Option<Kind>) {
        self.under_way = self.under_way.saturating_sub(1);
        let Some(kind) = failure else {
            self.in_a_row = 0;
            if probe {
                self.open = None;
            }
            return;
        };
        self.failed.push_back(began);
        self.last = Some(kind);
        self.in_a_row = self.in_a_row.saturating_add(1);
        if probe || kind != Kind::ServerError || self.in_a_row >= SERVER_ERRORS {
            self.open = Some(Open { kind, until: now + PAUSE, probing: false });
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
    freed: Notify,
}

/// A call under way; dropping it without `end` counts it as given up.
pub(crate) struct Admission<'a> {
    breaker: &'a Breaker,
    lane: Lane,
    began: Instant,
    probe: bool,
    ended: bool,
}

impl Breaker {
    /// Waits for a place; the kind of the failure that forbids the call otherwise.
    pub(crate) async fn admit(&self, lane: Lane) -> Result<Admission<'_>, Kind> {
        loop {
            let freed = self.freed.notified();
            if let Some(admission) = self.try_admit(lane, Instant::now())? {
                return Ok(admission);
            }
            freed.await;
        }
    }

    /// `None`: all places are taken.
    fn try_admit(&self, lane: Lane, now: Instant) -> Result<Option<Admission<'_>>, Kind> {
        let mut state = self.lock();
        let limit = PER_WINDOW.saturating_sub(state.engine.recent(now));
        let mut probe = match state.vault.judge(now, limit) {
            Verdict::Go { probe } => probe,
            Verdict::Wait => return Ok(None),
            Verdict::No(kind) => return Err(kind),
        };
        if lane == Lane::Engine {
            match state.engine.judge(now, ENGINES_OWN) {
                Verdict::Go { probe: own } => probe |= own,
                Verdict::Wait => return Ok(None),
                Verdict::No(kind) => return Err(kind),
            }
            state.engine.begin();
        }
        state.vault.begin();
        Ok(Some(Admission { breaker: self, lane, began: now, probe, ended: false }))
    }

    fn finish(&self, admission: &Admission<'_>, now: Instant, failure: Option<Kind>) {
        let mut state = self.lock();
        let Admission { lane, began, probe, .. } = *admission;
        // An engine's own 5xx proves that Vault answers.
        let engines_own = lane == Lane::Engine && failure == Some(Kind::ServerError);
        state.vault.end(began, now, probe, failure.filter(|_| !engines_own));
        if lane == Lane::Engine {
            state.engine.end(began, now, probe, failure.filter(|_| engines_own));
        }
        drop(state);
        self.freed.notify_waiters();
        self.freed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission<'_> {
    /// Whether this call tries whether a failing Vault works again.
    pub(crate) const fn is_probe(&self) -> bool {
        self.probe
    }

    /// Says what became of the call; `None` when Vault works, whatever it answered.
    pub(crate) fn end(mut self, failure: Option<Kind>) {
        self.ended = true;
        self.breaker.finish(&self, Instant::now(), failure);
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let now = Instant::now();
            let unanswered = self.probe || now.saturating_duration_since(self.began) >= PATIENCE;
            self.breaker.finish(self, now, unanswered.then_some(Kind::TimedOut));
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
