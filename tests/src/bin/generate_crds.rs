//! Writes `deploy/crds` from the Rust types: `cargo run -p addons-tests --bin generate-crds [-- --check]`.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use addons_tests::crds;
use anyhow::{Context as _, Result, bail};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr is no reason for another exit code.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("usage: generate-crds [--check]"),
    };
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/crds"));
    for (file, text) in crds::files()? {
        let path = folder.join(&file);
        if check {
            let committed = fs::read_to_string(&path).unwrap_or_default();
            if committed != text {
                bail!(
                    "deploy/crds/{file} is not what the Rust types say; run: cargo run -p addons-tests --bin generate-crds"
                );
            }
        } else {
            fs::create_dir_all(&folder)?;
            fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}
