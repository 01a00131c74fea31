//! The command line of `cargo demo`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo demo [-- FLAGS]
  --keep         leave the cluster running until Ctrl-C, and print its KUBECONFIG
  --index FILE   install a kops index instead of the built-in catalogue (without waiting: kwok's pods serve nothing)
";

/// The flags.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Leave the cluster running until Ctrl-C.
    pub keep: bool,
    /// A kops index in place of the built-in catalogue.
    pub index: Option<PathBuf>,
}

impl Flags {
    /// Reads the arguments behind the program's name; `None` where they ask for help.
    ///
    /// # Errors
    /// An unknown argument, or an index that cannot be found.
    pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Option<Self>> {
        let mut flags = Self::default();
        let mut args = args;
        while let Some(arg) = args.next() {
            match arg.to_string_lossy().as_ref() {
                // `cargo demo --keep` and `cargo demo -- --keep` are the same.
                "--" => {}
                "--keep" => flags.keep = true,
                "--index" => {
                    let file = PathBuf::from(args.next().context("--index needs a file")?);
                    let path = file.canonicalize();
                    flags.index =
                        Some(path.with_context(|| format!("--index {}", file.display()))?);
                }
                "-h" | "--help" => return Ok(None),
                arg => bail!("unknown argument {arg}\n{USAGE}"),
            }
        }
        Ok(Some(flags))
    }
}
