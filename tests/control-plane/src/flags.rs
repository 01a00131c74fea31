//! The command line of `cargo demo`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo demo [-- FLAGS]
  --clusters 2   two clusters: catalogues and core add-ons for both, and the deletion of one
  --keep         leave the cluster running until Ctrl-C, and print its KUBECONFIG
  --index FILE   install a kops index instead of the built-in catalogue (without waiting: Pods here serve nothing)
";

/// The flags.
#[derive(Debug, PartialEq, Eq)]
pub struct Flags {
    /// How many clusters there are: 1 or 2.
    pub clusters: u8,
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
        let mut flags = Self {
            clusters: 1,
            keep: false,
            index: None,
        };
        let mut args = args;
        while let Some(arg) = args.next() {
            match arg.to_string_lossy().as_ref() {
                // `cargo demo --keep` and `cargo demo -- --keep` are the same.
                "--" => {}
                "--keep" => flags.keep = true,
                "--clusters" => {
                    let count = args.next().and_then(|count| count.to_str()?.parse().ok());
                    flags.clusters = count
                        .filter(|count| (1..=2).contains(count))
                        .context("--clusters needs 1 or 2")?;
                }
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
        if flags.clusters > 1 && flags.index.is_some() {
            bail!("--clusters 2 does not go with --index");
        }
        Ok(Some(flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_one_or_two_clusters() {
        let parse = |line: &str| Flags::parse(line.split_whitespace().map(OsString::from));
        let clusters = |line: &str| parse(line).unwrap().unwrap().clusters;
        assert_eq!(clusters(""), 1);
        assert_eq!(clusters("-- --clusters 2 --keep"), 2);
        for (line, problem) in [
            ("--clusters", "--clusters needs 1 or 2"),
            ("--clusters 3", "--clusters needs 1 or 2"),
            (
                "--clusters 2 --index /dev/null",
                "--clusters 2 does not go with --index",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), problem);
        }
    }
}
