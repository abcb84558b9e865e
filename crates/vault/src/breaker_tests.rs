//! The breaker under a paused clock.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at once")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{advance, sleep};

use super::*;

/// Calls every 100 ms for a minute, each ending after `takes` with `kind`; how many began. The callers take
/// turns at the lanes.
async fn begun(lanes: &[Lane], kind: Kind, takes: Duration, callers: usize) -> usize {
    let breaker = Arc::new(Breaker::default());
    let count = Arc::new(AtomicUsize::new(0));
    let end = Instant::now() + Duration::from_secs(60);
    let mut tasks = Vec::new();
    for lane in lanes.iter().copied().cycle().take(callers) {
        let (breaker, count) = (breaker.clone(), count.clone());
        tasks.push(tokio::spawn(async move {
            while Instant::now() < end {
                if let Ok(admission) = breaker.admit(lane).await
                    && Instant::now() < end
                {
                    count.fetch_add(1, Ordering::Relaxed);
                    sleep(takes).await;
                    admission.end(Some(kind));
                }
                sleep(Duration::from_millis(100)).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    count.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn at_most_six_failing_calls_begin_in_a_minute() {
    for kind in [Kind::TimedOut, Kind::Unreachable, Kind::Sealed, Kind::ServerError, Kind::RateLimited] {
        for lanes in [vec![Lane::Vault], vec![Lane::Engine], vec![Lane::Engine, Lane::Vault]] {
            for callers in [1, 3, 50] {
                for takes in [0, 1, 5_000, 59_000] {
                    let count = begun(&lanes, kind, Duration::from_millis(takes), callers).await;
                    assert!((1..=6).contains(&count), "{kind:?} {lanes:?} {callers} {takes}: {count}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_answered_at_once_until_a_probe_succeeds() {
    let breaker = Breaker::default();
    breaker.admit(Lane::Vault).await.unwrap_or_else(|_| panic!()).end(Some(Kind::Sealed));
    assert_eq!(breaker.admit(Lane::Vault).await.err(), Some(Kind::Sealed));
    advance(Duration::from_millis(9_999)).await;
    assert_eq!(breaker.admit(Lane::Engine).await.err(), Some(Kind::Sealed));
    advance(Duration::from_millis(1)).await;
    let probe = breaker.admit(Lane::Vault).await.unwrap_or_else(|_| panic!());
    assert!(probe.is_probe());
    assert_eq!(breaker.admit(Lane::Vault).await.err(), Some(Kind::Sealed), "one probe at a time");
    probe.end(None);
    for _ in 0..100 {
        breaker.admit(Lane::Vault).await.unwrap_or_else(|_| panic!()).end(None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_server_error_closes_nothing_and_an_engine_fails_alone() {
    let breaker = Breaker::default();
    for _ in 0..3 {
        breaker.admit(Lane::Engine).await.unwrap_or_else(|_| panic!()).end(Some(Kind::ServerError));
    }
    assert_eq!(breaker.admit(Lane::Engine).await.err(), Some(Kind::ServerError));
    breaker.admit(Lane::Vault).await.unwrap_or_else(|_| panic!()).end(Some(Kind::ServerError));
    breaker.admit(Lane::Vault).await.unwrap_or_else(|_| panic!()).end(None);
    assert_eq!(breaker.admit(Lane::Engine).await.err(), Some(Kind::ServerError));
    advance(PAUSE).await;
    breaker.admit(Lane::Engine).await.unwrap_or_else(|_| panic!()).end(None);
    breaker.admit(Lane::Engine).await.unwrap_or_else(|_| panic!()).end(None);
}

#[tokio::test(start_paused = true)]
async fn a_call_given_up_counts_when_it_waited_long() {
    let breaker = Breaker::default();
    drop(breaker.admit(Lane::Vault).await);
    let given_up = breaker.admit(Lane::Vault).await;
    advance(PATIENCE).await;
    drop(given_up);
    assert_eq!(breaker.admit(Lane::Vault).await.err(), Some(Kind::TimedOut));
    advance(PAUSE).await;
    drop(breaker.admit(Lane::Vault).await);
    assert_eq!(breaker.admit(Lane::Vault).await.err(), Some(Kind::TimedOut), "a probe given up");
}
