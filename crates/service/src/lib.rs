//! How a zone is assembled: configuration, telemetry, the layers in front of every method,
//! the server and its drain. Knows no zone and no store.

mod access;
mod caller;
mod config;
mod deny;
mod program;
mod server;
mod table;
mod telemetry;
#[cfg(test)]
mod tests;

pub use access::{Refusals, Roles, Tokens};
pub use caller::{Caller, CallerKind, RunClaims, Tenants, caller};
pub use config::{Common, Mode, SectionNames};
pub use exequatur_proto::ledger::v1::Refusal;
pub use program::{Failure, Keys, Zone, run};
pub use server::Server;
pub use table::AccessTable;
