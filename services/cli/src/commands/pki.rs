use super::App;
use crate::failure::Failure;
use std::path::Path;
#[derive(clap::Args, Debug)]
pub(crate) struct Args {}
pub(crate) fn run(_a: Args, _app: &App) -> Result<u8, Failure> {
    Ok(0)
}
pub(crate) fn init(_: &Path, _: &str) -> Result<(), Failure> {
    Ok(())
}
pub(crate) fn issue_operator(_: &Path, _: &str, _: &[String], _: &Path) -> Result<(), Failure> {
    Ok(())
}
pub(crate) fn issue_reviewer(_: &Path, _: &str, _: &Path) -> Result<(), Failure> {
    Ok(())
}
