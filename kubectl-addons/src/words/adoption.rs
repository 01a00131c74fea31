//! The `adopt` command for an add-on, and the warning about its version.

use addons_operation::NewInstallation;
use addons_operation::adopt::ForeignVersion;
use addons_operation::adopt::release::TakenRelease;
use addons_operation::text::shell_word;
use addons_plan::InstallationPlan;
use addons_plan::found::{ForeignInstall, FoundBy};
use common::api::names::InstallationName;
use common::text::list_first;

/// How many values a line names.
const MAX_NAMED_VALUES: usize = 8;

/// Returns the command that adopts what another tool installed of an add-on. `version` is the offered one, `source` holds the flags that
/// name the source, with a leading blank.
pub fn adopt_command(
    install: &ForeignInstall,
    addon: &str,
    version: Option<&str>,
    source: &str,
) -> String {
    let version = version.map_or_else(String::new, |version| format!("@{version}"));
    let mut line = format!("kubectl addons adopt {addon}{version}{source}");
    if addon != install.name {
        line.push_str(&format!(" --name {}", shell_word(&install.name)));
    }
    if let (FoundBy::Helm | FoundBy::Kops, Some(namespace)) = (install.found_by, &install.namespace)
    {
        line.push_str(&format!(" --target-namespace {}", shell_word(namespace)));
    }
    line
}

/// Says what a new installation takes from a Helm release. Names of values are printed, and not the values.
pub fn describe_taken(new: &NewInstallation, taken: &TakenRelease) -> String {
    let name = new.name.as_ref().unwrap_or(&new.addon.name);
    let mut line = format!("{name}: taken over from {}", taken.release);
    if let Some(umbrella) = &taken.umbrella {
        line.push_str(&format!(
            ", as a part of its chart {umbrella}: the other parts stay in the release until they are adopted as well"
        ));
    }
    if !taken.values.is_empty() {
        let values = list_first(&taken.values, MAX_NAMED_VALUES);
        let separator = if taken.umbrella.is_some() { ';' } else { ',' };
        line.push_str(&format!("{separator} with its values for {values}"));
    }
    line
}

/// Says which upgrade applies the changes of a preview. One without a version may also move to a newer version.
pub fn describe_next_upgrade(plan: &InstallationPlan) -> String {
    let InstallationName { namespace, name } = &plan.installation;
    let version = plan.to.as_ref().map(|to| to.version.as_str());
    match version.filter(|version| !version.is_empty()) {
        None => format!("to apply that: kubectl addons upgrade {name} -n {namespace}"),
        Some(version) => format!(
            "to apply that: kubectl addons upgrade {name}@{version} -n {namespace}; without @{version} it also moves to the newest \
             version that fits"
        ),
    }
}

/// Returns a warning about an add-on whose installed version is unknown or not on offer. It says how to name another version.
pub fn version_warning(version: &ForeignVersion<'_>) -> Option<String> {
    let why = match version {
        ForeignVersion::Found(_) | ForeignVersion::Only => return None,
        ForeignVersion::Unknown => "the installed version is not known".to_owned(),
        ForeignVersion::NotOffered(found) => {
            format!("the installed version {found} is not on offer")
        }
    };
    Some(format!(
        "{why}, and the newest one is recorded; to record another one: kubectl addons adopt NAME@VERSION"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_release_is_called_one() {
        let new = NewInstallation {
            name: Some("platform".to_owned()),
            ..NewInstallation::default()
        };
        let mut taken = TakenRelease {
            release: "Helm release plat/platform".to_owned(),
            umbrella: None,
            values: vec!["replicas".to_owned()],
        };
        let whole =
            "platform: taken over from Helm release plat/platform, with its values for replicas";
        assert_eq!(describe_taken(&new, &taken), whole);
        taken.umbrella = Some("umb".to_owned());
        let part = "platform: taken over from Helm release plat/platform, as a part of its chart umb: the other parts stay in the \
            release until they are adopted as well; with its values for replicas";
        assert_eq!(describe_taken(&new, &taken), part);
    }

    #[test]
    fn only_what_is_assumed_is_warned_of() {
        assert_eq!(version_warning(&ForeignVersion::Only), None);
        assert_eq!(version_warning(&ForeignVersion::Found("1.0.0")), None);
        let unknown = version_warning(&ForeignVersion::Unknown).unwrap_or_default();
        assert!(unknown.contains("is not known") && unknown.ends_with("adopt NAME@VERSION"));
        let other =
            version_warning(&ForeignVersion::NotOffered("0.9.0".to_owned())).unwrap_or_default();
        assert!(other.contains("0.9.0 is not on offer"), "{other}");
    }
}
