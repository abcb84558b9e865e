//! The one client of HashiCorp Vault and OpenBao: login and renewal, wrapped and scoped hand-over,
//! leases. It must not know catalogs, warrants or gRPC: it is given paths and tokens and says what
//! Vault said, in typed errors without secrets.
//!
//! vaultrs gives the shapes of requests and answers. Sending is our own, because vaultrs trusts the
//! platform's roots, reads `VAULT_*`, has no time-out, reads answers without limit and keeps bodies in
//! its errors. Endpoints that vaultrs lacks or gets wrong are in `endpoints`.
//!
//! Secrets are wiped in what this crate owns; buffers inside the TLS and HTTP libraries are not.

mod answer;
mod breaker;
mod call;
mod classify;
mod client;
mod config;
mod endpoints;
mod engine;
mod error;
mod health;
mod leases;
mod link;
mod paths;
mod scoped;
mod session;
#[cfg(feature = "setup")]
pub mod setup;
mod tls;
mod token;
mod wrapping;

pub use answer::{Answer, MAX_SECRET_BYTES};
pub use client::Client;
pub use config::{Auth, Config};
pub use engine::{Engine, Opened, engine, engine_named, engine_words};
pub use error::{Error, Kind};
pub use health::Health;
pub use leases::{AccessorState, LeaseState};
pub use paths::{Paths, SecretPath, scoped_policy};
pub use scoped::{SCOPED_TTL_MAX_S, SCOPED_TTL_STEP_S, ScopedToken};
pub use token::Token;
pub use wrapping::{MAX_WRAP_TTL_S, WrappedToken, WrappingState};
