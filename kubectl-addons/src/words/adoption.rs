//! The `adopt` command for an add-on, and the warning about its version.

use addons_operation::adopt::ForeignVersion;
use addons_operation::text::shell_word;
use addons_plan::found::{ForeignInstall, FoundBy};

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

/// Returns a warning if the installed version is unknown or not on offer. It says how to name another version.
pub fn version_warning(addon: &str, version: ForeignVersion<'_>) -> Option<String> {
    let why = match version {
        ForeignVersion::Found(_) | ForeignVersion::Only => return None,
        ForeignVersion::Unknown => "the installed version is not known".to_owned(),
        ForeignVersion::NotOffered(found) => {
            format!("the installed version {found} is not on offer")
        }
    };
    Some(format!(
        "{addon}: {why}, and the newest one is recorded; to record another one: kubectl addons adopt {addon}@VERSION"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_assumed_is_warned_of() {
        assert_eq!(version_warning("web", ForeignVersion::Only), None);
        assert_eq!(version_warning("web", ForeignVersion::Found("1.0.0")), None);
        let unknown = version_warning("web", ForeignVersion::Unknown).unwrap_or_default();
        assert!(unknown.contains("is not known") && unknown.ends_with("adopt web@VERSION"));
        let other = version_warning("web", ForeignVersion::NotOffered("0.9.0")).unwrap_or_default();
        assert!(other.contains("0.9.0 is not on offer"), "{other}");
    }
}
