//! The life of a zone's program: arguments, configuration, trust, identity, run, exit code.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use exequatur_fault::{Fault, Reason};
use exequatur_identity::{Principal, Tls, TlsFiles};
use exequatur_proto::trust::v1::Purpose;
use exequatur_statement::{SigningKey, StatementError, Trust};
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;

use crate::config::{self, Common, Mode, SectionNames};
use crate::telemetry;

/// Why a zone's program ends other than cleanly.
#[derive(Debug)]
pub enum Failure {
    /// Exit 1: failed while running.
    Running(Fault),
    /// Exit 2: bad configuration.
    Configuration(String),
    /// Exit 3: could not start.
    Starting(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Starting(fault)
    }
}

/// The zone's own signing keys, one per purpose.
#[derive(Clone, Debug)]
pub struct Keys {
    directory: PathBuf,
    owner: String,
    loaded: HashMap<i32, Arc<SigningKey>>,
}

impl Keys {
    /// The key of a purpose; its file must name this zone and this purpose.
    ///
    /// # Errors
    /// `STATEMENT_INVALID` when the file is missing or names another holder or purpose.
    pub fn get(&mut self, purpose: Purpose) -> Result<Arc<SigningKey>, Fault> {
        if let Some(key) = self.loaded.get(&purpose.into()) {
            return Ok(Arc::clone(key));
        }
        let name =
            purpose.as_str_name().trim_start_matches("PURPOSE_").to_ascii_lowercase().replace('_', "-");
        let path = self.directory.join(format!("{name}.key"));
        let key = SigningKey::load(&path).map_err(|e| statement(&e, &path.display().to_string()))?;
        if key.holder() != self.owner || key.purpose() != purpose {
            return Err(Fault::new(
                Reason::StatementInvalid,
                format!("key file `{}` is for another zone or purpose", path.display()),
            ));
        }
        let key = Arc::new(key);
        self.loaded.insert(purpose.into(), Arc::clone(&key));
        Ok(key)
    }

    /// The folder, for keys of another kind.
    #[must_use]
    pub const fn directory(&self) -> &PathBuf {
        &self.directory
    }
}

/// A zone with everything checked that does not depend on which zone it is.
pub struct Zone<C> {
    /// The zone's own part of the configuration.
    pub config: C,
    /// The common part.
    pub common: Common,
    /// The trust bundle in force.
    pub trust: Trust,
    /// Certificate, key and CA in force.
    pub tls: Tls,
    /// Signing keys.
    pub keys: Keys,
    /// SPIFFE ID of this zone.
    pub id: String,
    pub(crate) listener: TcpListener,
    shutdown: watch::Receiver<bool>,
}

impl<C> Zone<C> {
    /// Turns true once, when the program should stop.
    #[must_use]
    pub fn shutdown(&self) -> watch::Receiver<bool> {
        self.shutdown.clone()
    }

    /// SPIFFE ID of another zone of the realm.
    #[must_use]
    pub fn zone_id(&self, zone: &str) -> String {
        format!("spiffe://{}/zone/{zone}", self.common.realm)
    }
}

/// Runs a zone's program: `name` is the zone, `assemble` builds and serves it.
pub fn run<C, F, R>(name: &'static str, assemble: F) -> ExitCode
where
    C: DeserializeOwned + SectionNames,
    F: FnOnce(Zone<C>) -> R,
    R: Future<Output = Result<(), Failure>>,
{
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(name, &Failure::Running(Fault::internal(error))),
    };
    let result = runtime.block_on(async {
        let zone = start::<C>(name).await?;
        tracing::info!(zone = name, listen = %zone.common.listen, "starting");
        assemble(zone).await
    });
    match result {
        Ok(()) => {
            tracing::info!(zone = name, "stopped");
            ExitCode::SUCCESS
        }
        Err(failure) => report(name, &failure),
    }
}

fn report(name: &str, failure: &Failure) -> ExitCode {
    telemetry::install(LevelFilter::INFO);
    let (code, fault) = match failure {
        Failure::Running(fault) => (1, Some(fault)),
        Failure::Configuration(text) => {
            tracing::error!(zone = name, reason = "CONFIGURATION", "{text}");
            (2, None)
        }
        Failure::Starting(fault) => (3, Some(fault)),
    };
    if let Some(fault) = fault {
        let cause = std::error::Error::source(fault).map(ToString::to_string).unwrap_or_default();
        tracing::error!(zone = name, reason = fault.reason_str(), cause, "{}", fault.message());
    }
    ExitCode::from(code)
}

fn arguments() -> Result<PathBuf, Failure> {
    let usage = || Failure::Configuration("usage: PROGRAM --config FILE".to_owned());
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(flag), Some(file), None) if flag == "--config" => Ok(PathBuf::from(file)),
        _ => Err(usage()),
    }
}

async fn start<C: DeserializeOwned + SectionNames>(name: &'static str) -> Result<Zone<C>, Failure> {
    let file = arguments()?;
    let (common, config) = config::read::<C>(&file).map_err(Failure::Configuration)?;
    let level = common.log.parse::<LevelFilter>().map_err(|_| {
        Failure::Configuration(format!("`log` is `{}`: use error, warn, info, debug or trace", common.log))
    })?;
    telemetry::install(level);
    exequatur_identity::install_crypto();

    let bundle = &common.trust.bundle;
    let trust = Trust::load(bundle, &common.trust.root_key)
        .map_err(|e| statement(&e, &bundle.display().to_string()))?;
    if trust.realm() != common.realm {
        return Err(Failure::Configuration(format!("the trust bundle is of realm `{}`", trust.realm())));
    }
    if common.mode == Mode::Production && trust.is_development() {
        return Err(Failure::Configuration(
            "mode `production` refuses a development trust bundle".to_owned(),
        ));
    }
    let files = TlsFiles {
        certificate: common.tls.certificate.clone(),
        key: common.tls.key.clone(),
        ca: common.tls.ca.clone(),
    };
    let tls = Tls::load(&files, &common.realm)?;
    let own = tls.own_id().ok_or_else(|| Failure::Configuration("the zone has no certificate".to_owned()))?;
    if !matches!(own.principal(), Principal::Zone(zone) if zone.as_str() == name) {
        return Err(Failure::Starting(Fault::new(
            Reason::Unauthenticated,
            format!("the certificate is of `{own}`, and this is the zone `{name}`"),
        )));
    }
    std::fs::create_dir_all(&common.data).map_err(|e| {
        let text = format!("data folder `{}` cannot be made", common.data.display());
        Failure::Starting(Fault::new(Reason::StorageFailed, text).caused_by(e))
    })?;
    let listener = TcpListener::bind(common.listen).await.map_err(|e| {
        let text = format!("cannot listen on {}: {e}", common.listen);
        Failure::Starting(Fault::new(Reason::Unavailable, text).caused_by(e))
    })?;
    let id = own.to_string();
    let keys = Keys { directory: common.keys.directory.clone(), owner: id.clone(), loaded: HashMap::new() };
    Ok(Zone { config, common, trust, tls, keys, id, listener, shutdown: on_signal()? })
}

/// Sent by the kernel for a write beyond `RLIMIT_FSIZE` (signal(7); the same number on x86 and ARM).
const SIGXFSZ: i32 = 25;

/// SIGTERM or SIGINT, once.
fn on_signal() -> Result<watch::Receiver<bool>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |e: std::io::Error| Failure::Starting(Fault::internal(e));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    // A file at its size limit is an error of that one write and not the end of the process.
    drop(signal(SignalKind::from_raw(SIGXFSZ)).map_err(failed)?);
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        sender.send_replace(true);
        // Keeps the channel open for receivers that come later.
        std::future::pending::<()>().await;
    });
    Ok(receiver)
}

fn statement(error: &StatementError, what: &str) -> Fault {
    Fault::new(error.reason(), format!("`{what}`: {error}"))
}
