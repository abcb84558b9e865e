//! Finding programs and ports.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// A port that was free a moment ago.
///
/// # Errors
/// When loopback cannot be bound.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The folder of PostgreSQL's programs: beside `initdb` on the path, else Debian's newest.
///
/// # Errors
/// When PostgreSQL is not installed.
pub(crate) fn postgres_programs() -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path().join("bin"))))
        .collect();
    versions.sort();
    folders.extend(versions.into_iter().rev().map(|(_, folder)| folder));
    let whole = |folder: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|p| folder.join(p).is_file());
    folders
        .into_iter()
        .find(whole)
        .ok_or_else(|| io::Error::other("PostgreSQL is not installed: `apt-get install postgresql`"))
}

/// The folder in which the project's tools keep Python packages: in the nearest `.tools` of `from` or of a
/// folder above it.
///
/// # Errors
/// When `cargo xtask tools` was not run yet.
pub(crate) fn python_packages(from: &Path) -> io::Result<PathBuf> {
    let missing = || io::Error::other("the outside tools are not installed: run `cargo xtask tools`");
    let library =
        from.ancestors().map(|f| f.join(".tools/py/lib")).find(|l| l.is_dir()).ok_or_else(missing)?;
    for version in std::fs::read_dir(library)? {
        let packages = version?.path().join("site-packages");
        if packages.is_dir() {
            return Ok(packages);
        }
    }
    Err(missing())
}
