//! Real planes for tests: `exequatur dev` as a process, its CLI, its providers' log and faults.
//! Never linked by a product program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test kit stops the test at once"
)]

mod cli;
mod plane;
mod provider;
mod scene;
mod vault_front;

pub use cli::Output;
pub use plane::{Plane, Ready, program};
pub use provider::Providers;
pub use scene::{Scene, provider_body};
pub use vault_front::{Asked, VaultFault, VaultFront};

use std::time::{Duration, Instant};

/// Polls until `ready` gives a value; panics with `what` after `limit`.
pub fn eventually<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
