//! gRPC in, domain values through, gRPC out.

mod plan;
mod policy;
mod run;
mod tool;

pub use plan::Plans;
pub use policy::Policies;
pub use run::Runs;
pub use tool::Tools;

use std::time::Duration;

use exequatur_fault::Fault;
use exequatur_service::Caller;

use crate::app::Call;

const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;

fn page_size(asked: u32) -> Result<u32, Fault> {
    match asked {
        0 => Ok(DEFAULT_PAGE),
        size @ 1..=MAX_PAGE => Ok(size),
        _ => Err(Fault::field("page_size", "a page has 1..200 entries")),
    }
}

/// Cuts a page that was read one entry too long; whether more follow.
fn cut<T>(entries: &mut Vec<T>, size: u32) -> bool {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let more = entries.len() > size;
    entries.truncate(size);
    more
}

/// What a refusal's record says; a tenant that is not the caller's gets no record in its log.
fn call(method: &'static str, caller: &Caller, tenant: &str) -> Call {
    let tenant = caller.tenant(tenant).ok().map(str::to_owned);
    Call { method, caller: caller.id.clone(), tenant }
}

fn duration(field: &str, given: Option<&prost_types::Duration>) -> Result<Option<Duration>, Fault> {
    given
        .map(|d| {
            Duration::try_from(*d).map_err(|_| Fault::field(field, format!("`{field}` must not be negative")))
        })
        .transpose()
}
