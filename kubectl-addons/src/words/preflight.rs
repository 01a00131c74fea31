//! Sentences of `preflight` about installations and the cluster.

pub mod risk;

use addons_advice::preflight::lifecycle::ApiFate;
use addons_advice::preflight::{
    PreflightFinding, PreflightVerdict, ReleaseConstraint, UpgradeRemedy, UsedApi,
};
use common::api::names::InstallationName;
use common::manifest::key::Gvk;
use common::text::list_first;

/// Describes a verdict, for a column.
pub fn verdict_words(verdict: PreflightVerdict) -> &'static str {
    match verdict {
        PreflightVerdict::Fits => "fits",
        PreflightVerdict::Unknown => "unknown",
        PreflightVerdict::DoesNotFit => "does not fit",
    }
}

/// Describes a verdict of several installations: `2 fit`, `3 do not fit`.
pub fn count_verdict(count: usize, verdict: PreflightVerdict) -> String {
    let words = match (verdict, count) {
        (_, 1) | (PreflightVerdict::Unknown, _) => self::verdict_words(verdict),
        (PreflightVerdict::Fits, _) => "fit",
        (PreflightVerdict::DoesNotFit, _) => "do not fit",
    };
    format!("{count} {words}")
}

/// Lists the reasons against the release, a sentence each.
pub fn list_reasons(finding: &PreflightFinding) -> Vec<String> {
    let constraint = match &finding.constraint {
        ReleaseConstraint::Allows => None,
        ReleaseConstraint::Excludes(why) | ReleaseConstraint::Unknown(why) => Some(why.clone()),
    };
    let (unknown, known): (Vec<&UsedApi>, Vec<&UsedApi>) = (finding.apis.iter())
        .chain(&finding.writers)
        .partition(|used| used.fate == ApiFate::Unknown);
    let known = known.into_iter().map(describe_used);
    let deprecated = finding.deprecated.as_ref().map(ToString::to_string);
    let all = constraint.into_iter().chain(known);
    all.chain(describe_unserved(&unknown))
        .chain(deprecated)
        .collect()
}

/// Returns one sentence for all APIs of which the table does not know whether that release serves them.
fn describe_unserved(unknown: &[&UsedApi]) -> Option<String> {
    let name = |used: &UsedApi| format!("{} {}", used.api.api_version(), used.api.kind);
    let apis = match unknown {
        [] => return None,
        [one] => name(one),
        [first, second] => format!("{} and {}", name(first), name(second)),
        many => list_first(many.iter().map(|used| name(used)), 2),
    };
    Some(format!(
        "it is not known whether that release serves {apis}"
    ))
}

/// Returns the command that helps, if there is one.
pub fn fix_command(installation: &InstallationName, finding: &PreflightFinding) -> Option<String> {
    let (when, version) = match finding.remedy.as_ref()? {
        UpgradeRemedy::Before(version) => ("before", version),
        UpgradeRemedy::After(version) => ("after", version),
    };
    let command = upgrade_command(installation, version);
    Some(format!("{when} the cluster's upgrade: {command}"))
}

/// Returns the command that upgrades an installation.
pub fn upgrade_command(installation: &InstallationName, version: &str) -> String {
    let InstallationName { namespace, name } = installation;
    match version.strip_prefix("id ") {
        // The command takes versions, not ids: the newest that fits has this id.
        Some(_) => format!("kubectl addons upgrade {name} -n {namespace}"),
        None => format!("kubectl addons upgrade {name}@{version} -n {namespace}"),
    }
}

/// Describes a step of the upgrades. Without a command, it is the upgrade of the cluster.
pub fn describe_step(is_before: bool, version: &str, command: Option<&str>) -> String {
    match command {
        None => format!("upgrade Kubernetes to {version}"),
        Some(command) if is_before => format!("before Kubernetes: {command}"),
        Some(command) => format!("after Kubernetes: {command}"),
    }
}

fn describe_used(used: &UsedApi) -> String {
    let UsedApi {
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
    format!("{who} {}", describe_fate(fate))
}

fn describe_fate(fate: &ApiFate) -> String {
    let instead = |replacement: &Option<Gvk>| match replacement {
        Some(api) => format!("; use {} {}", api.api_version(), api.kind),
        None => String::new(),
    };
    match fate {
        ApiFate::Served => "is served".to_owned(),
        ApiFate::Deprecated {
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
        ApiFate::Removed {
            removed,
            replacement,
        } => format!("was removed in {removed}{}", instead(replacement)),
        ApiFate::NotYet { introduced } => format!("does not exist before {introduced}"),
        ApiFate::Unknown => "may not be served in that release".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_are_counted_in_the_plural() {
        for (number, of, expected) in [
            (1, PreflightVerdict::Fits, "1 fits"),
            (2, PreflightVerdict::Fits, "2 fit"),
            (1, PreflightVerdict::DoesNotFit, "1 does not fit"),
            (3, PreflightVerdict::DoesNotFit, "3 do not fit"),
            (2, PreflightVerdict::Unknown, "2 unknown"),
        ] {
            assert_eq!(count_verdict(number, of), expected);
        }
    }

    #[test]
    fn apis_that_the_table_does_not_know_share_a_sentence() {
        let used = |kind: &str| UsedApi {
            api: Gvk::new("v1", kind),
            objects: 1,
            managers: Vec::new(),
            fate: ApiFate::Unknown,
        };
        let kinds = ["Service", "Secret", "Pod", "Node"].map(used);
        let all: Vec<&UsedApi> = kinds.iter().collect();
        let said = |count: usize| describe_unserved(&all[..count]);
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
