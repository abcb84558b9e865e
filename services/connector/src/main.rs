//! The program of the zone `connector`.

use std::process::ExitCode;

fn main() -> ExitCode {
    exequatur_service::run("connector", exequatur_connector::run)
}
