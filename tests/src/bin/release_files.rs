//! `release-files FOLDER` writes manual pages, completions and software bills of materials: a step of `deploy/release/build`.
#![expect(clippy::print_stderr, reason = "a program says its errors on stderr")]

use std::path::Path;
use std::process::ExitCode;

use addons_tests::release;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: release-files FOLDER");
        return ExitCode::from(2);
    };
    match release::write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
