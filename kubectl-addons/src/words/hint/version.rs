//! Advice for a version that does not stand behind a name: `install web 1.2.0`, `install web=1.2.0`.

use addons_operation::text::shell_word;
use addons_versions::tolerant;

use super::fix_line;

/// Whether what was read as a name is a version, or a name and a version with `=` between them.
pub(super) fn is_misplaced(name: &str) -> bool {
    split(name).is_some()
}

/// Returns how the version is written.
pub(super) fn misplaced_hints(name: &str) -> Vec<String> {
    let Some((addon, version)) = split(name) else {
        return Vec::new();
    };
    let addon = addon.unwrap_or("NAME");
    let written = shell_word(&format!("{addon}@{version}"));
    fix_line(&format!("write the version behind the name: {written}"))
}

fn split(name: &str) -> Option<(Option<&str>, &str)> {
    if let Some((addon, version)) = name.split_once('=') {
        let is_name = !addon.is_empty() && !addon.contains('@');
        return (is_name && tolerant::is_version(version)).then_some((Some(addon), version));
    }
    // A single number may be a name.
    (name.contains('.') && tolerant::is_version(name)).then_some((None, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_in_the_place_of_a_name_is_recognised() {
        for (name, expected) in [
            ("web=1.2.0", "web@1.2.0"),
            ("web=v1", "web@v1"),
            ("1.2.0", "NAME@1.2.0"),
            ("v1.2", "NAME@v1.2"),
        ] {
            let fix = format!("fix:    write the version behind the name: {expected}");
            assert_eq!(misplaced_hints(name), [fix], "{name}");
        }
        for name in ["web", "web.shop", "7", "v2", "a=b", "=1.0", "web@1=2.0"] {
            assert!(!is_misplaced(name), "{name}");
        }
    }
}
