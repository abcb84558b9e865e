//! Structured logs on standard error. Foreign crates stay at WARN whatever is configured: their
//! traces print headers and bodies.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Installs the subscriber once; a second call changes nothing.
pub(crate) fn install(level: LevelFilter) {
    let ours = Targets::new()
        .with_default(LevelFilter::WARN.min(level))
        .with_targets([
            ("exequatur", level),
            ("governance", level),
            ("approval", level),
            ("connector", level),
        ])
        .with_target("credential_vault", level);
    let lines = tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr);
    // A second installation happens only in tests that run several zones in one process.
    drop(tracing_subscriber::registry().with(lines).with(ours).try_init());
}
