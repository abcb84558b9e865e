//! gRPC in, domain values through, gRPC out.

mod catalog;
mod lease;

pub use catalog::Catalog;
pub use lease::Leases;
