//! A front before the real Vault of a plane: it passes every request on, counts it, and does what a test
//! ordered instead. It ends TLS with the server's own certificate, so that clients need no other CA.
//! Must not know what a zone makes of it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// What is done instead of passing on.
#[derive(Debug, Clone)]
pub enum VaultFault {
    /// This status and body; Vault is not asked.
    Answer(u16, &'static str),
    /// No byte until the client goes.
    Hang,
    /// Vault's answer, that much later.
    Late(Duration),
    /// The first half of Vault's answer.
    Cut,
    /// A true answer of more than this many bytes.
    Oversized(usize),
    /// Vault's answer, whose wrapping token is replaced by one of this path.
    Swapped(&'static str),
    /// Vault's answer, whose wrapping token was opened before.
    Opened,
}

/// One request that came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Path with `/v1/`, without the query.
    pub path: String,
    /// Where it came from.
    pub from: IpAddr,
    /// When it came.
    pub at: Instant,
    /// Whether a fault was done to it.
    pub faulty: bool,
}

#[derive(Default)]
struct Shared {
    orders: Vec<(String, VaultFault)>,
    asked: Vec<Asked>,
}

/// A running front; ends when dropped.
pub struct VaultFront {
    shared: Arc<Mutex<Shared>>,
    address: SocketAddr,
    _runtime: Runtime,
}

impl VaultFront {
    /// Begins to listen on loopback. `vault`: host and port of the real one; `folder`: where its `ca.crt`,
    /// `server.crt` and `server.key` are.
    #[must_use]
    pub fn start(vault: &str, folder: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let shared = Arc::<Mutex<Shared>>::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let way = Arc::new(Way::new(vault.parse().unwrap(), folder, Arc::clone(&shared)));
        runtime.spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let way = Arc::clone(&way);
                // A client that goes away in the middle is its own business.
                tokio::spawn(async move { drop(way.serve(stream, peer.ip()).await) });
            }
        });
        Self { shared, address, _runtime: runtime }
    }

    /// `https://127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Orders a fault for every request whose path begins so; the first order that fits counts.
    pub fn order(&self, path: &str, fault: VaultFault) {
        self.shared.lock().unwrap().orders.push((path.to_owned(), fault));
    }

    /// Forgets all orders.
    pub fn heal(&self) {
        self.shared.lock().unwrap().orders.clear();
    }

    /// Every request so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().unwrap().asked.clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.shared.lock().unwrap().asked.clear();
    }

    /// The most requests from one address that a fault was done to within any 60 seconds.
    #[must_use]
    pub fn most_failed_in_a_minute(&self) -> usize {
        let failed: Vec<Asked> = self.asked().into_iter().filter(|a| a.faulty).collect();
        let within = |first: &Asked| {
            let fits = |a: &&Asked| {
                a.from == first.from && a.at >= first.at && a.at - first.at < Duration::from_secs(60)
            };
            failed.iter().filter(fits).count()
        };
        failed.iter().map(within).max().unwrap_or_default()
    }
}

struct Way {
    vault: SocketAddr,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    shared: Arc<Mutex<Shared>>,
}

impl Way {
    fn new(vault: SocketAddr, folder: &Path, shared: Arc<Mutex<Shared>>) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let chain = vec![CertificateDer::from_pem_file(folder.join("server.crt")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(folder.join("ca.crt")).unwrap()).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (acceptor, connector) =
            (TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client)));
        Self { vault, acceptor, connector, shared }
    }

    async fn serve(&self, stream: TcpStream, from: IpAddr) -> io::Result<()> {
        let mut client = self.acceptor.accept(stream).await?;
        let request = Request::read(&mut client).await?;
        let fault = self.noted(&request, from);
        let answer = match &fault {
            Some(VaultFault::Answer(status, body)) => written(*status, body.as_bytes()),
            Some(VaultFault::Hang) => {
                client.read_to_end(&mut Vec::new()).await?;
                return Ok(());
            }
            Some(VaultFault::Oversized(size)) => written(200, &vec![b' '; *size]),
            Some(VaultFault::Late(pause)) => {
                tokio::time::sleep(*pause).await;
                self.pass(&request, from).await?
            }
            Some(VaultFault::Cut) => {
                let whole = self.pass(&request, from).await?;
                whole.get(..whole.len() / 2).unwrap_or_default().to_vec()
            }
            Some(VaultFault::Swapped(path)) => {
                let own = self.pass(&request, from).await?;
                let other = self.pass(&request.of_path(path), from).await?;
                let text = String::from_utf8(own.clone()).unwrap();
                text.replace(&token(&own), &token(&other)).into_bytes()
            }
            Some(VaultFault::Opened) => {
                let own = self.pass(&request, from).await?;
                let opened = self.pass(&Request::unwrap(&token(&own)), from).await?;
                assert!(opened.starts_with(b"HTTP/1.1 200"), "the front could not open the token");
                own
            }
            None => self.pass(&request, from).await?,
        };
        client.write_all(&answer).await?;
        client.shutdown().await
    }

    fn noted(&self, request: &Request, from: IpAddr) -> Option<VaultFault> {
        let mut shared = self.shared.lock().unwrap();
        let order = shared.orders.iter().find(|(path, _)| request.path.starts_with(path.as_str()));
        let fault = order.map(|(_, fault)| fault.clone());
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        shared.asked.push(Asked { path, from, at: Instant::now(), faulty: fault.is_some() });
        fault
    }

    /// Vault's answer, asked from the client's own address: tokens are bound to addresses.
    async fn pass(&self, request: &Request, from: IpAddr) -> io::Result<Vec<u8>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        let stream = socket.connect(self.vault).await?;
        let name = ServerName::from(self.vault.ip());
        let mut vault = self.connector.connect(name, stream).await?;
        vault.write_all(&request.bytes()).await?;
        let mut answer = Vec::new();
        match vault.read_to_end(&mut answer).await {
            Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => Err(e),
            _ => Ok(answer),
        }
    }
}

#[derive(Clone)]
struct Request {
    method: String,
    path: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Request {
    async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ').map(ToOwned::to_owned);
        let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let mut request = Self { method, path, headers: Vec::new(), body: Vec::new() };
        for line in lines {
            let (name, value) = line.split_once(':').unwrap();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => request.body = vec![0; value.trim().parse().unwrap()],
                "connection" => {}
                _ => request.headers.push(line.to_owned()),
            }
        }
        stream.read_exact(&mut request.body).await?;
        Ok(request)
    }

    fn of_path(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    fn unwrap(token: &str) -> Self {
        let headers = vec!["host: vault".to_owned(), format!("x-vault-token: {token}")];
        let (method, path) = ("POST".to_owned(), "/v1/sys/wrapping/unwrap".to_owned());
        Self { method, path, headers, body: Vec::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let (method, path, headers) = (&self.method, &self.path, self.headers.join("\r\n"));
        let length = self.body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        [head.as_bytes(), &self.body].concat()
    }
}

fn written(status: u16, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Ordered\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The wrapping token of an answer.
fn token(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let body: Json = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}"));
    body["wrap_info"]["token"].as_str().unwrap_or_else(|| panic!("no wrapping token: {text}")).to_owned()
}
