//! Sentences of `preflight` about installations and the cluster.

pub mod risk;

use addons_advice::preflight::lifecycle::Fate;
use addons_advice::preflight::{Constraint, Finding, Remedy, Used, Verdict};
use common::api::names::InstallationName;
use common::manifest::key::Gvk;

/// Describes a verdict, for a column.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Unknown => "unknown",
        Verdict::DoesNotFit => "does not fit",
    }
}

/// Describes a verdict of several installations: `2 fit`, `3 do not fit`.
pub fn count(count: usize, verdict: Verdict) -> String {
    let words = match (verdict, count) {
        (_, 1) | (Verdict::Unknown, _) => self::verdict(verdict),
        (Verdict::Fits, _) => "fit",
        (Verdict::DoesNotFit, _) => "do not fit",
    };
    format!("{count} {words}")
}

/// Lists the reasons against the release, a sentence each.
pub fn reasons(finding: &Finding) -> Vec<String> {
    let constraint = match &finding.constraint {
        Constraint::Allows => None,
        Constraint::Excludes(why) | Constraint::Unknown(why) => Some(why.clone()),
    };
    let (unknown, known): (Vec<&Used>, Vec<&Used>) = (finding.apis.iter())
        .chain(&finding.writers)
        .partition(|used| used.fate == Fate::Unknown);
    let known = known.into_iter().map(used);
    let all = constraint.into_iter().chain(known);
    all.chain(unserved(&unknown)).collect()
}

/// Returns one sentence for all APIs of which the table does not know whether that release serves them.
fn unserved(unknown: &[&Used]) -> Option<String> {
    let name = |used: &Used| format!("{} {}", used.api.api_version(), used.api.kind);
    let apis = match unknown {
        [] => return None,
        [one] => name(one),
        [first, second] => format!("{} and {}", name(first), name(second)),
        [first, second, rest @ ..] => {
            let (first, second) = (name(first), name(second));
            format!("{first}, {second} and {} more", rest.len())
        }
    };
    Some(format!(
        "it is not known whether that release serves {apis}"
    ))
}

/// Returns the command that helps, if there is one.
pub fn fix(installation: &InstallationName, finding: &Finding) -> Option<String> {
    let (when, version) = match finding.remedy.as_ref()? {
        Remedy::Before(version) => ("before", version),
        Remedy::After(version) => ("after", version),
    };
    let command = upgrade(installation, version);
    Some(format!("{when} the cluster's upgrade: {command}"))
}

/// Returns the command that upgrades an installation.
pub fn upgrade(installation: &InstallationName, version: &str) -> String {
    let InstallationName { namespace, name } = installation;
    match version.strip_prefix("id ") {
        // The command takes versions, not ids: the newest that fits has this id.
        Some(_) => format!("kubectl addons upgrade {name} -n {namespace}"),
        None => format!("kubectl addons upgrade {name}@{version} -n {namespace}"),
    }
}

/// Describes a step of the upgrades. Without a command, it is the upgrade of the cluster.
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
        Fate::Unknown => "may not be served in that release".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_are_counted_in_the_plural() {
        for (number, of, expected) in [
            (1, Verdict::Fits, "1 fits"),
            (2, Verdict::Fits, "2 fit"),
            (1, Verdict::DoesNotFit, "1 does not fit"),
            (3, Verdict::DoesNotFit, "3 do not fit"),
            (2, Verdict::Unknown, "2 unknown"),
        ] {
            assert_eq!(count(number, of), expected);
        }
    }

    #[test]
    fn apis_that_the_table_does_not_know_share_a_sentence() {
        let used = |kind: &str| Used {
            api: Gvk::new("v1", kind),
            objects: 1,
            managers: Vec::new(),
            fate: Fate::Unknown,
        };
        let kinds = ["Service", "Secret", "Pod", "Node"].map(used);
        let all: Vec<&Used> = kinds.iter().collect();
        let said = |count: usize| unserved(&all[..count]);
        let sentence = |apis: &str| {
            Some(format!(
                "it is not known whether that release serves {apis}"
            ))
        };
        assert_eq!(said(0), None);
        assert_eq!(said(1), sentence("v1 Service"));
        assert_eq!(said(2), sentence("v1 Service and v1 Secret"));
        assert_eq!(said(4), sentence("v1 Service, v1 Secret and 2 more"));
    }
}
