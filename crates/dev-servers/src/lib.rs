//! Real outside servers for development and tests: an installed PostgreSQL and
//! the project's OpenBao, started on loopback with a throw-away superuser and stopped with its owner. Never linked by a zone.

mod openbao;
mod postgres;
mod process;
mod tls;

pub use openbao::OpenBao;
pub use postgres::Postgres;
pub use process::free_port;
pub use tls::ServerTls;
