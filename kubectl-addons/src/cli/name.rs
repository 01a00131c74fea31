//! Names and versions as users type them, also as `-o name` prints them: `addoninstallation.kubectl-addons.dev/web`.

use std::convert::Infallible;

use addons_versions::tolerant;
use clap::builder::ArgExt;

/// The names that an argument takes. Completion lists them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Candidates {
    Addons,
    Installations,
    Catalogues,
    Contexts,
    /// Namespaces that hold installations.
    Namespaces,
    /// Namespaces of the cluster.
    AllNamespaces,
    /// The numbers of the revisions of the named installation.
    Revisions,
    /// The versions of its revisions.
    RevisionVersions,
    /// The objects of the named installations, as `KIND/NAME`.
    Objects,
}

impl ArgExt for Candidates {}

/// Parses the name of an installation or an add-on, with or without a version.
pub fn addon(typed: &str) -> Result<String, Infallible> {
    Ok(without_kind(typed, &["addoninstallation", "addon"]))
}

/// Parses the name of a catalogue.
pub fn catalogue(typed: &str) -> Result<String, Infallible> {
    Ok(without_kind(typed, &["addoncatalogue"]))
}

/// Checks a version, and returns it as it was typed.
pub fn version(text: &str) -> Result<String, String> {
    match tolerant::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn without_kind(typed: &str, kinds: &[&str]) -> String {
    let name = typed.split_once('/').and_then(|(kind, name)| {
        let kind = kind.strip_suffix(".kubectl-addons.dev").unwrap_or(kind);
        let one = kind.strip_suffix('s').unwrap_or(kind);
        kinds.contains(&one).then_some(name)
    });
    name.unwrap_or(typed).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_prints_is_a_name() {
        for typed in [
            "web",
            "addon/web",
            "addoninstallation/web",
            "addoninstallations.kubectl-addons.dev/web",
        ] {
            assert_eq!(addon(typed), Ok("web".to_owned()), "{typed}");
        }
        assert_eq!(addon("addon/web@1/2"), Ok("web@1/2".to_owned()));
        assert_eq!(addon("pod/web"), Ok("pod/web".to_owned()));
        let printed = "addoncatalogue.kubectl-addons.dev/base";
        assert_eq!(catalogue(printed), Ok("base".to_owned()));
    }
}
