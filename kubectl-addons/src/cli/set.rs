//! Flags about sets.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;

/// The members of a set, and what becomes of those that its file does not have any more.
#[derive(Args, Clone, Debug, Default)]
pub struct MemberArgs {
    /// With a set: make its installations members of the set with this name (label kubectl-addons.dev/set)
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub set_name: Option<String>,
    /// With a set: uninstall members that are no longer in the file, except core add-ons
    #[arg(long, requires = "set_name")]
    pub prune: bool,
}

/// A set in the place of names.
#[derive(Args, Clone, Debug, Default)]
pub struct SetArgs {
    /// A set instead of names: a file with AddonInstallations, or - for stdin; -f accepts one as well
    #[arg(long, value_name = "SET", conflicts_with_all = ["addons", "given", "channel", "catalogue"], value_hint = clap::ValueHint::FilePath)]
    pub filename: Option<PathBuf>,
    #[command(flatten)]
    pub members: MemberArgs,
}

/// Parses a name that a label can hold.
fn name(typed: &str) -> Result<String, String> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let ends = [typed.chars().next(), typed.chars().last()];
    let is_valid = typed.len() <= 63
        && typed.chars().all(is_inside)
        && ends
            .iter()
            .all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()));
    if is_valid {
        Ok(typed.to_owned())
    } else {
        Err("it must be the value of a label: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_value_of_a_label() {
        for typed in ["prod", "a", "Team_1.base-2"] {
            assert_eq!(name(typed), Ok(typed.to_owned()));
        }
        for typed in ["", "-a", "a.", "a/b", "ü", &"a".repeat(64)] {
            assert!(name(typed).is_err(), "{typed}");
        }
    }
}
