//! Writes generated files: `cargo run -p addons-tests --bin generate [NAME…]`, without names all but `lifecycle`.
#![expect(clippy::print_stderr, reason = "a program says its errors on stderr")]

use std::process::ExitCode;

use addons_tests::generated::{FROM_THIS_REPOSITORY, Generated, LIFECYCLE};
use anyhow::{Context as _, Result};

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match write(&names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write(names: &[String]) -> Result<()> {
    if names.is_empty() {
        return FROM_THIS_REPOSITORY.iter().try_for_each(Generated::write);
    }
    names.iter().try_for_each(|name| find(name)?.write())
}

fn find(name: &str) -> Result<&'static Generated> {
    let all = || FROM_THIS_REPOSITORY.iter().chain([&LIFECYCLE]);
    all().find(|one| one.name == name).with_context(|| {
        let known: Vec<_> = all().map(|one| one.name).collect();
        format!(
            "{name} is not generated; the names are {}",
            known.join(", ")
        )
    })
}
