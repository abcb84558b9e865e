//! Attack rows S33 and S35 against the production resolver with a name server that changes its mind:
//! what was checked is what is connected to, and listeners count who came.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at once")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use exequatur_fault::Reason;
use exequatur_proto::definition::v1::HttpRequest;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::{Message, MessageType};
use hickory_resolver::proto::rr::rdata::{A, AAAA};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, UdpSocket};

use crate::{Destination, Egress, Guard, Security, Sent, http};

const LIMIT: Duration = Duration::from_secs(5);
const NAME: &str = "provider.example";
/// Stands for the provider: the only address that the guard lets through.
const PROVIDER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Where nobody may be sent to.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A name server: the n-th question for IPv4 gets the n-th answer, later ones the last. TTL 0.
struct NameServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl NameServer {
    async fn start(answers: Vec<Vec<IpAddr>>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            // Both questions of one look-up are answered from the same turn.
            let (mut four, mut six) = (0, 0);
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let question = Message::from_vec(buffer.get(..length).unwrap()).unwrap();
                let query = question.queries.first().unwrap();
                let is_four = query.query_type() == RecordType::A;
                let turn = if is_four { &mut four } else { &mut six };
                let answer = answers.get(*turn).or(answers.last()).unwrap();
                *turn += 1;
                if is_four {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
                let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
                assert_eq!(reply.metadata.message_type, MessageType::Response);
                reply.metadata.recursion_available = true;
                reply.add_query(query.clone());
                for ip in answer.iter().filter(|ip| ip.is_ipv4() == is_four) {
                    let data = match ip {
                        IpAddr::V4(ip) => RData::A(A(*ip)),
                        IpAddr::V6(ip) => RData::AAAA(AAAA(*ip)),
                    };
                    reply.add_answer(Record::from_rdata(query.name().clone(), 0, data));
                }
                socket.send_to(&reply.to_vec().unwrap(), from).await.unwrap();
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The production egress that asks this name server.
    fn egress(&self, exceptions: &[SocketAddr]) -> Egress {
        let mut connection = ConnectionConfig::udp();
        connection.port = self.address.port();
        let mut server = NameServerConfig::udp(self.address.ip());
        server.connections = vec![connection];
        let config = ResolverConfig::from_name_servers(vec![server]);
        let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let guard = Guard::new(exceptions.iter().copied());
        Egress::with(guard, &[], Some(resolver.build().unwrap())).unwrap()
    }
}

/// Listeners on the provider's address and on the loopback, on the same port, that count who came.
struct Listeners {
    port: u16,
    provider: Arc<AtomicUsize>,
    loopback: Arc<AtomicUsize>,
}

impl Listeners {
    async fn start() -> Self {
        for _ in 0..50 {
            let provider = TcpListener::bind((PROVIDER, 0)).await.unwrap();
            let port = provider.local_addr().unwrap().port();
            let (Ok(loopback), Ok(six)) = (
                TcpListener::bind((LOOPBACK, port)).await,
                TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await,
            ) else {
                continue;
            };
            let counts = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
            let [provider_count, loopback_count] = counts;
            count(provider, Arc::clone(&provider_count));
            count(loopback, Arc::clone(&loopback_count));
            count(six, Arc::clone(&loopback_count));
            return Self { port, provider: provider_count, loopback: loopback_count };
        }
        panic!("no port is free on all addresses");
    }

    /// Provider, loopback: after everything that is on its way has come.
    async fn came(&self) -> (usize, usize) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        (self.provider.load(Ordering::SeqCst), self.loopback.load(Ordering::SeqCst))
    }

    fn excepted(&self) -> SocketAddr {
        SocketAddr::new(PROVIDER, self.port)
    }

    fn destination(&self, security: Security) -> Destination {
        Destination { host: NAME.into(), port: self.port, security }
    }
}

fn count(listener: TcpListener, counter: Arc<AtomicUsize>) {
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move { stream.read(&mut [0; 1024]).await.ok() });
        }
    });
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_connected_to() {
    let listeners = Listeners::start().await;
    let server = NameServer::start(vec![vec![PROVIDER], vec![LOOPBACK]]).await;
    let egress = server.egress(&[listeners.excepted()]);
    let destination = listeners.destination(Security::Plain);
    // The name server would now say something else; the connection is already the checked one.
    let link = egress.connect(&destination, LIMIT).await.unwrap();
    assert_eq!(server.asked(), 1, "asked once for one connection");
    let request = HttpRequest {
        method: "GET".into(),
        scheme: "http".into(),
        host: NAME.into(),
        port: u32::from(listeners.port),
        target: "/".into(),
        ..HttpRequest::default()
    };
    let ready = http::ready(&request, &[], None).unwrap();
    let sent = http::send(link, ready, Duration::from_millis(300), 64).await;
    assert!(matches!(sent, Sent::Unclear(_)), "the provider reads and says nothing: {sent:?}");
    assert_eq!(server.asked(), 1, "sending asks nobody");
    assert_eq!(listeners.came().await, (1, 0));

    // The next attempt is checked anew: no answer is kept past its time.
    let fault = egress.connect(&destination, LIMIT).await.err().unwrap();
    assert_eq!(fault.reason(), Reason::DestinationForbidden);
    assert_eq!(server.asked(), 2);
    assert_eq!(egress.connects(), 1, "refused before `connect`");
    assert_eq!(listeners.came().await, (1, 0));
}

#[tokio::test]
async fn an_answer_that_holds_a_forbidden_address_too_is_refused_whole() {
    let listeners = Listeners::start().await;
    let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    let metadata = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
    for answer in [
        vec![PROVIDER, LOOPBACK],
        vec![LOOPBACK, PROVIDER],
        vec![PROVIDER, IpAddr::V6(Ipv6Addr::LOCALHOST)],
        vec![PROVIDER, mapped],
        vec![PROVIDER, metadata],
        vec![LOOPBACK],
    ] {
        let server = NameServer::start(vec![answer.clone()]).await;
        let egress = server.egress(&[listeners.excepted()]);
        for security in [Security::Plain, Security::Tls, Security::StartTls] {
            let fault = egress.connect(&listeners.destination(security), LIMIT).await.err().unwrap();
            assert_eq!(fault.reason(), Reason::DestinationForbidden, "{answer:?} {security:?}");
        }
        assert!(server.asked() >= 1, "{answer:?}: the name server was asked");
        assert_eq!(egress.connects(), 0, "{answer:?}");
    }
    assert_eq!(listeners.came().await, (0, 0));
    // The harmless answer is connected to.
    let server = NameServer::start(vec![vec![PROVIDER]]).await;
    let egress = server.egress(&[listeners.excepted()]);
    let link = egress.connect(&listeners.destination(Security::Plain), LIMIT).await;
    assert!(link.is_ok());
    assert_eq!((egress.connects(), listeners.came().await), (1, (1, 0)));
}

/// S33: an IPv6 literal that carries an IPv4 address, written or answered, is refused before `connect`.
#[tokio::test]
async fn mapped_addresses_are_refused_before_any_connect() {
    let listeners = Listeners::start().await;
    let server = NameServer::start(vec![vec![PROVIDER]]).await;
    let egress = server.egress(&[listeners.excepted()]);
    for host in [
        "[::ffff:a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:169.254.169.254]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        // The mapped form of an exception is not the exception.
        "[::ffff:127.0.0.2]",
    ] {
        let request = HttpRequest {
            scheme: "http".into(),
            host: host.into(),
            port: u32::from(listeners.port),
            ..HttpRequest::default()
        };
        let destination = http::destination(&request).unwrap();
        let fault = egress.connect(&destination, LIMIT).await.err().unwrap();
        assert_eq!(fault.reason(), Reason::DestinationForbidden, "{host}");
        let tls = Destination { security: Security::Tls, ..destination };
        let fault = egress.connect(&tls, LIMIT).await.err().unwrap();
        assert_eq!(fault.reason(), Reason::DestinationForbidden, "{host}");
    }
    assert_eq!((egress.connects(), server.asked()), (0, 0), "nothing left, not even a question");
    assert_eq!(listeners.came().await, (0, 0));
    let plain = Destination { host: PROVIDER.to_string(), port: listeners.port, security: Security::Plain };
    assert!(egress.connect(&plain, LIMIT).await.is_ok(), "the exception itself is reached");
    assert_eq!((egress.connects(), listeners.came().await), (1, (1, 0)));
}
