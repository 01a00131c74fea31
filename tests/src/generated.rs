//! Files that a program writes from sources, and that CI compares with them.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};

/// A generator: writes its files, or with `--check` says which of them is not what it would write.
pub struct Generator {
    /// The name of the program.
    pub program: &'static str,
    /// The folder of its files, from the root of the repository.
    pub folder: &'static str,
    /// What the files follow from, in a sentence: `the Rust types say`.
    pub sources: &'static str,
}

impl Generator {
    /// The `main` of the program. `files`: names and texts.
    pub fn main(&self, files: impl FnOnce() -> Result<Vec<(String, String)>>) -> ExitCode {
        match self.run(files) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // A closed stderr is no reason for another exit code.
                let _ = writeln!(std::io::stderr(), "error: {error:#}");
                ExitCode::FAILURE
            }
        }
    }

    fn run(&self, files: impl FnOnce() -> Result<Vec<(String, String)>>) -> Result<()> {
        let Self {
            program,
            folder,
            sources,
        } = self;
        let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
            [] => false,
            [flag] if flag == "--check" => true,
            _ => bail!("usage: {program} [--check]"),
        };
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        for (name, text) in files()? {
            let path = root.join(folder).join(&name);
            if !check {
                fs::create_dir_all(root.join(folder))?;
                fs::write(&path, text).with_context(|| path.display().to_string())?;
                continue;
            }
            ensure!(
                fs::read_to_string(&path).unwrap_or_default() == text,
                "{folder}/{name} is not what {sources}; run: cargo run -p addons-tests --bin {program}"
            );
        }
        Ok(())
    }
}
