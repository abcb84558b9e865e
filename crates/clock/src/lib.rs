//! A service's one clock: the system's time, never below the stored high-water mark, and not
//! trusted after a jump. Knows no store: the mark comes in at start and is read back by the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use exequatur_fault::{Fault, Reason};

/// Drift against the monotonic clock that is believed.
const MAX_DRIFT_MS: i64 = 30_000;
/// A start that far ahead of the mark is not believed.
const MAX_AHEAD_MS: i64 = 24 * 3600 * 1000;

/// Milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// Later by a duration; saturates.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl UnixMillis {
    /// As protobuf's well-known type.
    #[must_use]
    pub fn to_proto(self) -> prost_types::Timestamp {
        let nanos = i32::try_from(self.0.rem_euclid(1000) * 1_000_000).unwrap_or(0);
        prost_types::Timestamp { seconds: self.0.div_euclid(1000), nanos }
    }

    /// From protobuf's well-known type, rounded down; saturates.
    #[must_use]
    pub fn from_proto(at: &prost_types::Timestamp) -> Self {
        Self(at.seconds.saturating_mul(1000).saturating_add(i64::from(at.nanos / 1_000_000)))
    }

    /// Time from `earlier` until this; zero when it is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// The clock; clones share it.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    source: Source,
    mark: AtomicI64,
    /// System time at the start of `monotonic`, moved by an acknowledgement.
    base: AtomicI64,
    untrusted_start: AtomicBool,
}

enum Source {
    System(Instant),
    Manual(Arc<AtomicI64>),
}

/// Sets a clock in tests.
#[derive(Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// Sets the time.
    pub fn set(&self, at: UnixMillis) {
        self.0.store(at.0, Ordering::SeqCst);
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

fn system() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|d| i64::try_from(d.as_millis()).ok())
        .unwrap_or(0)
}

impl Clock {
    /// The system's clock; `mark` is the stored high-water mark.
    #[must_use]
    pub fn start(mark: Option<UnixMillis>) -> Self {
        let now = system();
        let ahead = mark.is_some_and(|mark| now.saturating_sub(mark.0) > MAX_AHEAD_MS);
        Self(Arc::new(Inner {
            source: Source::System(Instant::now()),
            mark: AtomicI64::new(mark.map_or(0, |m| m.0)),
            base: AtomicI64::new(now),
            untrusted_start: AtomicBool::new(ahead),
        }))
    }
}

impl Clock {
    /// A clock that a test sets.
    #[must_use]
    pub fn manual(at: UnixMillis) -> (Self, ManualClock) {
        let time = Arc::new(AtomicI64::new(at.0));
        let clock = Self(Arc::new(Inner {
            source: Source::Manual(Arc::clone(&time)),
            mark: AtomicI64::new(0),
            base: AtomicI64::new(at.0),
            untrusted_start: AtomicBool::new(false),
        }));
        (clock, ManualClock(time))
    }

    /// The zone's time. Never earlier than any time that was given before.
    ///
    /// # Errors
    /// `CLOCK_UNTRUSTED` while the system's clock disagrees with the monotonic one by more than
    /// 30 s, or when it started more than 24 h ahead of the mark, until it agrees or is acknowledged.
    pub fn now(&self) -> Result<UnixMillis, Fault> {
        let inner = &*self.0;
        let now = match &inner.source {
            Source::Manual(time) => time.load(Ordering::SeqCst),
            Source::System(started) => {
                let now = system();
                let expected = inner.base.load(Ordering::SeqCst).saturating_add(elapsed(started));
                if (now - expected).abs() > MAX_DRIFT_MS || inner.untrusted_start.load(Ordering::SeqCst) {
                    return Err(Fault::new(
                        Reason::ClockUntrusted,
                        "the clock of this zone jumped; correct it, or acknowledge it with `exequatur clock acknowledge`",
                    ));
                }
                now
            }
        };
        Ok(UnixMillis(inner.mark.fetch_max(now, Ordering::SeqCst).max(now)))
    }

    /// An operator says that the system's clock is right; gives the time from now on.
    #[must_use]
    pub fn acknowledge(&self) -> UnixMillis {
        let inner = &*self.0;
        let now = match &inner.source {
            Source::Manual(time) => time.load(Ordering::SeqCst),
            Source::System(started) => {
                let now = system();
                inner.base.store(now.saturating_sub(elapsed(started)), Ordering::SeqCst);
                inner.untrusted_start.store(false, Ordering::SeqCst);
                now
            }
        };
        UnixMillis(inner.mark.fetch_max(now, Ordering::SeqCst).max(now))
    }
}

fn elapsed(started: &Instant) -> i64 {
    i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX)
}
