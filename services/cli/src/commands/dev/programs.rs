//! The programs of the zones: beside this one, and built when this one runs from a build folder and they are
//! missing or older than their sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::Failure;
use crate::output::Output;

/// Program and package.
const PROGRAMS: [(&str, &str); 5] = [
    ("governance", "exequatur-governance"),
    ("approval", "exequatur-approval"),
    ("credential-vault", "exequatur-credential-vault"),
    ("connector", "exequatur-connector"),
    ("demo-providers", "exequatur-demo-providers"),
];

/// Paths by program name.
pub(crate) type Programs = BTreeMap<&'static str, PathBuf>;

/// Finds the programs, building them where that can be done.
pub(crate) async fn find(output: Output) -> Result<Programs, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::failed("INTERNAL", format!("own path: {e}")))?;
    let folder = own.parent().map(Path::to_path_buf).unwrap_or_default();
    // A test's program lies one folder deeper.
    let folder = if folder.ends_with("deps") {
        folder.parent().map(Path::to_path_buf).unwrap_or(folder)
    } else {
        folder
    };
    let programs: Programs = PROGRAMS.into_iter().map(|(name, _)| (name, folder.join(name))).collect();
    if let Some(sources) = source_tree(&folder)
        && programs.iter().any(|(name, program)| is_stale(name, program, &sources))
    {
        build(&sources, &folder, output).await?;
    }
    for (name, program) in &programs {
        if !program.is_file() {
            return Err(Failure::failed(
                "NOT_FOUND",
                format!("the program `{name}` is not in `{}`", folder.display()),
            )
            .with("program", *name));
        }
    }
    Ok(programs)
}

/// The folder in or above which the outside tools are; installed where that can be done.
pub(crate) async fn tools(output: Output) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::failed("INTERNAL", format!("own path: {e}")))?;
    let folder = own.parent().map(Path::to_path_buf).unwrap_or_default();
    let Some(root) = source_tree(&folder) else { return Ok(own) };
    if exequatur_dev_servers::OpenBao::is_installed(&root) {
        return Ok(root);
    }
    output.note("installing the outside tools (once)");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = tokio::process::Command::new(cargo);
    command.current_dir(&root).args(["xtask", "tools"]).stdin(std::process::Stdio::null());
    // Data goes to standard output; what is installed is said on standard error.
    command.stdout(std::process::Stdio::null());
    match command.status().await {
        Ok(status) if status.success() => Ok(root),
        _ => Err(Failure::failed(
            "UNAVAILABLE",
            "the outside tools cannot be installed: run `cargo xtask tools`",
        )),
    }
}

/// The workspace whose build folder this is, if it is one: the profile folder lies in one that cargo marks.
fn source_tree(folder: &Path) -> Option<PathBuf> {
    let target = folder.parent()?;
    if !target.join("CACHEDIR.TAG").is_file() && !target.join(".rustc_info.json").is_file() {
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?.to_path_buf();
    root.join("Cargo.toml").is_file().then_some(root)
}

/// Crates that no zone links; a change there makes none stale.
const NOT_IN_ZONES: [&str; 7] =
    ["definition-file", "demo-providers", "dev-servers", "pki", "testkit", "verify", "xtask"];

fn is_stale(name: &str, program: &Path, sources: &Path) -> bool {
    let Ok(built) = program.metadata().and_then(|m| m.modified()) else { return true };
    if name == "demo-providers" {
        return has_newer(&sources.join("crates").join(name), built);
    }
    let crates = std::fs::read_dir(sources.join("crates")).into_iter().flatten().flatten();
    let linked = crates.filter(|entry| !NOT_IN_ZONES.iter().any(|name| entry.file_name() == *name));
    linked.map(|entry| entry.path()).any(|path| has_newer(&path, built))
        || has_newer(&sources.join("proto"), built)
        || has_newer(&sources.join("services").join(name), built)
}

/// Tests are in no program, so cargo does not build one again for their sake.
fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "tests" || name == "suite")
}

fn has_newer(path: &Path, than: SystemTime) -> bool {
    if is_test(path) {
        return false;
    }
    let Ok(meta) = path.symlink_metadata() else { return false };
    if !meta.is_dir() {
        return meta.modified().is_ok_and(|at| at > than);
    }
    let Ok(entries) = std::fs::read_dir(path) else { return false };
    entries.flatten().any(|entry| has_newer(&entry.path(), than))
}

async fn build(sources: &Path, folder: &Path, output: Output) -> Result<(), Failure> {
    let profile = folder.file_name().and_then(|name| name.to_str()).unwrap_or("debug");
    let target = folder.parent().unwrap_or(folder);
    let mut command =
        tokio::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(sources).arg("build").arg("--target-dir").arg(target);
    if profile != "debug" {
        command.arg("--profile").arg(profile);
    }
    for (_, package) in PROGRAMS {
        command.args(["-p", package]);
    }
    // Data goes to standard output; cargo talks on standard error.
    command.stdin(std::process::Stdio::null());
    output.note("building the zones (once; later starts are quick)");
    let status = command.status().await.map_err(|e| {
        Failure::failed("BUILD_FAILED", format!("cannot run cargo: {e}; build the workspace yourself"))
    })?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::failed("BUILD_FAILED", format!("the zones do not build ({status})")))
}
