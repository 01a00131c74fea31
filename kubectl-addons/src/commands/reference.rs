//! A chart or manifest by reference, in place of an add-on of a catalogue: `oci://HOST/PATH/CHART:VERSION`, the URL of a manifest or of a
//! chart, or `CHART --repo URL`.

use addons_operation::Context;
use addons_operation::catalogue::scaffold::{ScaffoldError, ScaffoldRequest};
use addons_operation::resolve::named::{NamedEntry, read_reference};
use anyhow::{Error, Result, anyhow};
use common::catalogue::author::Typed;
use common::image::is_of_this_machine;

use crate::cli::operation::ReferenceArgs;
use crate::exit::UsageError;

/// The prefix of a reference to a registry.
const OCI: &str = "oci://";

/// A reference as it was typed, in one form that is known to be valid.
#[derive(Debug)]
pub struct TypedReference {
    /// The URL of the chart, the manifest or the repository.
    from: Typed,
    /// The chart in the repository.
    chart: Option<String>,
    version: Option<String>,
}

impl TypedReference {
    /// Checks a reference. `command` is what precedes it, for the command that an error suggests: `install`, `upgrade web --to`.
    ///
    /// # Errors
    /// [`UsageError`], with the right command.
    pub fn parse(typed: &Typed, args: &ReferenceArgs, command: &str) -> Result<Self, UsageError> {
        let fix =
            |why: &str, rest: &str| UsageError(format!("{why}: kubectl addons {command} {rest}"));
        let Some(repo) = &args.repo else {
            let named = Self {
                from: typed.clone(),
                chart: None,
                version: args.version.clone(),
            };
            return named.check_url(&fix);
        };
        let (chart, version) = match typed.split_once('@') {
            Some((chart, version)) => (chart, Some(version.to_owned())),
            None => (&**typed, None),
        };
        if let (Some(one), Some(other)) = (&version, &args.version) {
            let why = format!("{typed} and --version {other} both name a version");
            return Err(fix(&why, &format!("{chart} --repo {repo} --version {one}")));
        }
        let version = version.or_else(|| args.version.clone());
        if typed.contains("://") {
            let why = format!("{typed} says where it is, so it takes no --repo");
            return Err(fix(&why, typed));
        }
        if let Some(path) = repo.strip_prefix(OCI) {
            let tag = version.map_or_else(String::new, |version| format!(":{version}"));
            let path = path.trim_end_matches('/');
            let why = format!("{repo} is a registry, whose charts are named by a URL");
            return Err(fix(&why, &format!("{OCI}{path}/{chart}{tag}")));
        }
        check_encrypted(repo, |secure| {
            fix_insecure(repo, &fix, &format!("{chart} --repo {secure}"))
        })?;
        Ok(Self {
            from: repo.clone(),
            chart: Some(chart.to_owned()),
            version,
        })
    }

    fn check_url(self, fix: &dyn Fn(&str, &str) -> UsageError) -> Result<Self, UsageError> {
        let from = &self.from;
        let Some((scheme, path)) = from.split_once("://") else {
            let why = format!("{from} is not a reference, which is a URL or a chart with --repo");
            return Err(fix(&why, &format!("{from} --repo URL")));
        };
        match scheme {
            "oci" => {
                let last = path.rsplit('/').next().unwrap_or_default();
                let (name, pinned) = match last.split_once('@') {
                    Some((name, pinned)) => (name, Some(pinned)),
                    None => (last, None),
                };
                let parent = path.strip_suffix(last).unwrap_or_default();
                if let Some(version) = pinned.filter(|it| !it.starts_with("sha256:")) {
                    let why = format!("{from}: a version in a registry is a tag, after a colon");
                    return Err(fix(&why, &format!("{OCI}{parent}{name}:{version}")));
                }
                if let (Some((chart, tag)), Some(version)) = (name.split_once(':'), &self.version) {
                    let why = format!("{from} and --version {version} both name a version");
                    return Err(fix(&why, &format!("{OCI}{parent}{chart}:{tag}")));
                }
            }
            "file" => {
                let why = format!("{from} is on this machine, where a path is enough");
                return Err(fix(&why, path));
            }
            _ => check_encrypted(from, |secure| fix_insecure(from, fix, secure))?,
        }
        Ok(self)
    }

    /// Reads the reference. `name` is that of the installation, if the user gives one.
    ///
    /// # Errors
    /// A policy refuses the source, or it cannot be read.
    pub async fn read(&self, ctx: &Context, name: Option<&str>, core: bool) -> Result<NamedEntry> {
        let host = self.from.strip_prefix(OCI).unwrap_or_default();
        let host = host.split('/').next().unwrap_or_default();
        let wanted = ScaffoldRequest {
            from: &self.from,
            chart: self.chart.as_deref(),
            version: self.version.as_deref(),
            plain_http: is_of_this_machine(host),
        };
        let read = read_reference(ctx, &wanted, name, core).await;
        read.map_err(|error| self.add_advice(error))
    }

    fn add_advice(&self, error: ScaffoldError) -> Error {
        let from = &self.from;
        match error {
            ScaffoldError::Operation(error) => (*error).into(),
            ScaffoldError::Catalogue { .. } => anyhow!(
                "{error}: kubectl addons catalogue add {from}, or kubectl addons install NAME --channel {from}"
            ),
            error => error.into(),
        }
    }
}

/// Refuses a location that another machine serves without TLS: who is on the way would decide which content is fixed.
fn check_encrypted(location: &str, error: impl Fn(&str) -> UsageError) -> Result<(), UsageError> {
    match location.strip_prefix("http://") {
        Some(rest) if !is_of_this_machine(rest.split('/').next().unwrap_or_default()) => {
            Err(error(&format!("https://{rest}")))
        }
        _ => Ok(()),
    }
}

/// Says what is wrong with `--version` beside the name of an add-on.
pub fn misplaced_version(verb: &str, name: &str, version: &str) -> String {
    format!(
        "--version is for a reference; a version of an add-on follows its name: kubectl addons {verb} {name}@{version}"
    )
}

fn fix_insecure(location: &str, fix: &dyn Fn(&str, &str) -> UsageError, rest: &str) -> UsageError {
    let why =
        format!("{location} is read without TLS: whoever is on the way decides what is installed");
    fix(&why, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(typed: &str, repo: Option<&str>, version: Option<&str>) -> String {
        let args = ReferenceArgs {
            repo: repo.map(Typed::on_command_line),
            version: version.map(str::to_owned),
        };
        match TypedReference::parse(&Typed::on_command_line(typed), &args, "install") {
            Ok(found) => format!("{:?} {:?}", found.chart, found.version),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_wrong_combination_is_answered_with_the_right_command() {
        let digest = format!("oci://h/c:1.0.0@sha256:{}", "a".repeat(64));
        for (typed, repo, version, expected) in [
            ("oci://h/p/web:1.0.0", None, None, "None None"),
            (&digest, None, None, "None None"),
            ("http://127.0.0.1:80/m.yaml", None, None, "None None"),
            (
                "web@1.0.0",
                Some("https://h"),
                None,
                "Some(\"web\") Some(\"1.0.0\")",
            ),
            (
                "oci://h/p/web@1.0.0",
                None,
                None,
                "oci://h/p/web@1.0.0: a version in a registry is a tag, after a colon: kubectl addons install oci://h/p/web:1.0.0",
            ),
            (
                "oci://h/p/web:1.0.0",
                None,
                Some("2.0.0"),
                "oci://h/p/web:1.0.0 and --version 2.0.0 both name a version: kubectl addons install oci://h/p/web:1.0.0",
            ),
            (
                "web@1.0.0",
                Some("https://h"),
                Some("2.0.0"),
                "web@1.0.0 and --version 2.0.0 both name a version: kubectl addons install web --repo https://h --version 1.0.0",
            ),
            (
                "web@1.0.0",
                Some("oci://h/p/"),
                None,
                "oci://h/p/ is a registry, whose charts are named by a URL: kubectl addons install oci://h/p/web:1.0.0",
            ),
            (
                "oci://h/p/web:1.0.0",
                Some("https://h"),
                None,
                "oci://h/p/web:1.0.0 says where it is, so it takes no --repo: kubectl addons install oci://h/p/web:1.0.0",
            ),
            (
                "http://h/m.yaml",
                None,
                None,
                "http://h/m.yaml is read without TLS: whoever is on the way decides what is installed: kubectl addons install https://h/m.yaml",
            ),
            (
                "web",
                Some("http://h"),
                None,
                "http://h is read without TLS: whoever is on the way decides what is installed: kubectl addons install web --repo https://h",
            ),
            (
                "file:///srv/web",
                None,
                None,
                "file:///srv/web is on this machine, where a path is enough: kubectl addons install /srv/web",
            ),
            (
                "web",
                None,
                None,
                "web is not a reference, which is a URL or a chart with --repo: kubectl addons install web --repo URL",
            ),
        ] {
            assert_eq!(
                said(typed, repo, version),
                expected,
                "{typed} {repo:?} {version:?}"
            );
        }
    }
}
