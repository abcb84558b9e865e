//! Outside providers for the demo and for tests: HTTP and SMTP servers that speak the providers' real
//! protocols and keep a log of their own. Knows nothing of Exequatur.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "tests may stop at once"
    )
)]

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::net::TcpListener;

mod account;
mod admin;
mod fault;
mod http;
mod journal;
mod providers;
mod smtp;
mod tls;

/// Stand-ins for outside providers.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Plain HTTP.
    #[arg(long)]
    http: Option<SocketAddr>,
    /// HTTP over TLS; needs --tls-cert and --tls-key.
    #[arg(long, requires_all = ["tls_cert", "tls_key"])]
    https: Option<SocketAddr>,
    /// SMTP without TLS.
    #[arg(long)]
    smtp: Option<SocketAddr>,
    /// SMTP with TLS from the first byte.
    #[arg(long, requires_all = ["tls_cert", "tls_key"])]
    smtps: Option<SocketAddr>,
    /// Fault control for tests.
    #[arg(long)]
    admin: Option<SocketAddr>,
    /// Certificate chain, PEM.
    #[arg(long)]
    tls_cert: Option<PathBuf>,
    /// Private key, PEM.
    #[arg(long)]
    tls_key: Option<PathBuf>,
    /// JSON Lines of every request, synced before it is answered.
    #[arg(long)]
    log: PathBuf,
    /// JSON file with the accounts that the providers accept.
    #[arg(long)]
    accounts: PathBuf,
    /// Writes the bound addresses as JSON to this file when all listen.
    #[arg(long)]
    ready_file: Option<PathBuf>,
    /// Ends when standard input ends, so that it never outlives its parent.
    #[arg(long)]
    exit_with_stdin: bool,
}

/// What all listeners share.
pub(crate) struct World {
    pub(crate) accounts: account::Accounts,
    pub(crate) journal: journal::Journal,
    pub(crate) faults: fault::Faults,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "demo-providers: {message}");
            ExitCode::from(3)
        }
    }
}

async fn run(args: Args) -> Result<(), String> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let world = Arc::new(World {
        accounts: account::Accounts::read(&args.accounts)?,
        journal: journal::Journal::open(&args.log)?,
        faults: fault::Faults::default(),
    });
    let acceptor = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(tls::acceptor(cert, key)?),
        _ => None,
    };

    let mut bound = serde_json::Map::new();
    if let Some(address) = args.http {
        let listener = listen("http", address, &mut bound).await?;
        tokio::spawn(http::serve(listener, None, Arc::clone(&world)));
    }
    if let Some(address) = args.https {
        let listener = listen("https", address, &mut bound).await?;
        tokio::spawn(http::serve(listener, acceptor.clone(), Arc::clone(&world)));
    }
    if let Some(address) = args.smtp {
        let listener = listen("smtp", address, &mut bound).await?;
        tokio::spawn(smtp::serve(listener, None, Arc::clone(&world)));
    }
    if let Some(address) = args.smtps {
        let listener = listen("smtps", address, &mut bound).await?;
        tokio::spawn(smtp::serve(listener, acceptor, Arc::clone(&world)));
    }
    if let Some(address) = args.admin {
        let listener = listen("admin", address, &mut bound).await?;
        tokio::spawn(admin::serve(listener, Arc::clone(&world)));
    }
    if let Some(file) = &args.ready_file {
        let text = serde_json::Value::Object(bound).to_string();
        let temporary = file.with_extension("tmp");
        std::fs::write(&temporary, text)
            .and_then(|()| std::fs::rename(&temporary, file))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    stopped(args.exit_with_stdin).await
}

async fn listen(
    name: &str,
    address: SocketAddr,
    bound: &mut serde_json::Map<String, serde_json::Value>,
) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|e| format!("cannot listen on {address} for {name}: {e}"))?;
    let local = listener.local_addr().map_err(|e| e.to_string())?;
    bound.insert(name.to_owned(), local.to_string().into());
    Ok(listener)
}

async fn stopped(with_stdin: bool) -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| e.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| e.to_string())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = stdin_ended(), if with_stdin => {}
    }
    // A blocked read of standard input must not keep the process.
    std::process::exit(0)
}

async fn stdin_ended() {
    let (ended, wait) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut buffer = [0_u8; 256];
        while matches!(std::io::stdin().read(&mut buffer), Ok(n) if n > 0) {}
        drop(ended);
    });
    let _ = wait.await;
}
