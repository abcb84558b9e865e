//! The program of the zone `governance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    exequatur_service::run("governance", exequatur_governance::run)
}
