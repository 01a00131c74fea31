//! What `preflight` says of an installation, and of the cluster.

pub mod risk;

use common::api::names::InstallationName;
use common::manifest::key::Gvk;
use common::preflight::lifecycle::Fate;
use common::preflight::{Constraint, Finding, Remedy, Used, Verdict};

/// As a table shows it.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Unknown => "unknown",
        Verdict::DoesNotFit => "does not fit",
    }
}

/// Everything that speaks against the release, a sentence each.
pub fn reasons(finding: &Finding) -> Vec<String> {
    let constraint = match &finding.constraint {
        Constraint::Allows => None,
        Constraint::Excludes(why) | Constraint::Unknown(why) => Some(why.clone()),
    };
    let apis = finding.apis.iter().chain(&finding.writers).map(used);
    constraint.into_iter().chain(apis).collect()
}

/// The command that helps, where there is one.
pub fn fix(installation: &InstallationName, finding: &Finding) -> Option<String> {
    let (when, version) = match finding.remedy.as_ref()? {
        Remedy::Before(version) => ("before", version),
        Remedy::After(version) => ("after", version),
    };
    let command = upgrade(installation, version);
    Some(format!("{when} the cluster's upgrade: {command}"))
}

/// The command that upgrades an installation.
pub fn upgrade(installation: &InstallationName, version: &str) -> String {
    let InstallationName { namespace, name } = installation;
    match version.strip_prefix("id ") {
        // An id cannot be asked for as a version: the newest that fits is it.
        Some(_) => format!("kubectl addons upgrade {name} -n {namespace}"),
        None => format!("kubectl addons upgrade {name}@{version} -n {namespace}"),
    }
}

/// A step of the upgrades; without a command it is that of the cluster.
pub fn step(is_before: bool, version: &str, command: Option<&str>) -> String {
    match command {
        None => format!("upgrade Kubernetes to {version}"),
        Some(command) if is_before => format!("before Kubernetes: {command}"),
        Some(command) => format!("after Kubernetes: {command}"),
    }
}

fn used(used: &Used) -> String {
    let Used {
        api,
        objects,
        managers,
        fate,
    } = used;
    let what = format!("{} {}", api.api_version(), api.kind);
    let count = match objects {
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    };
    let who = match managers.as_slice() {
        [] => format!("{what} ({count})"),
        managers => format!(
            "{what} ({count}, last written so by {})",
            managers.join(", ")
        ),
    };
    format!("{who} {}", becomes(fate))
}

fn becomes(fate: &Fate) -> String {
    let instead = |replacement: &Option<Gvk>| match replacement {
        Some(api) => format!("; use {} {}", api.api_version(), api.kind),
        None => String::new(),
    };
    match fate {
        Fate::Served => "is served".to_owned(),
        Fate::Deprecated {
            since,
            removed,
            replacement,
        } => {
            let until = match removed {
                Some(removed) => format!(" and will be removed in {removed}"),
                None => String::new(),
            };
            format!("is deprecated since {since}{until}{}", instead(replacement))
        }
        Fate::Removed {
            removed,
            replacement,
        } => format!("was removed in {removed}{}", instead(replacement)),
        Fate::NotYet { introduced } => format!("does not exist before {introduced}"),
        Fate::Unknown => "is unknown for that release".to_owned(),
    }
}
