//! Chooses a version of a chart.

use addons_versions::constraint::{self, Constraint};

use super::RepositoryChartError;
use super::index::ChartVersion;
use crate::names::list_names;

/// The number of versions that an error lists.
const NAMED: usize = 5;

/// Chooses a version: the one with exactly this text, otherwise the newest in the range, as helm does.
pub(super) fn choose<'e>(
    entries: &'e [ChartVersion],
    chart: &str,
    wanted: Option<&str>,
    url: &str,
) -> Result<&'e ChartVersion, RepositoryChartError> {
    if let Some(entry) = wanted.and_then(|wanted| entries.iter().find(|e| e.version == wanted)) {
        return Ok(entry);
    }
    let range = Constraint::parse(wanted.unwrap_or("*"));
    let range = range.map_err(|problem| RepositoryChartError::Range {
        chart: chart.to_owned(),
        problem,
    })?;
    let versions = entries.iter();
    let versions = versions.map(|entry| (entry.version.as_str(), entry));
    choose_newest(versions, &range).map_err(|known| RepositoryChartError::Version {
        url: url.to_owned(),
        chart: chart.to_owned(),
        wanted: wanted.map_or_else(
            || "that is a release, and pre-releases have to be asked for".to_owned(),
            str::to_owned,
        ),
        known,
    })
}

/// Returns the value of the newest version in a range or, if there is none, a list of the newest versions for
/// an error. Texts that are not versions are ignored, as in helm.
pub(crate) fn choose_newest<'t, T>(
    versions: impl Iterator<Item = (&'t str, T)>,
    range: &Constraint,
) -> Result<T, String> {
    let mut sorted: Vec<_> = versions
        .filter_map(|(text, of)| Some((constraint::parse_version(text).ok()?, text, of)))
        .collect();
    sorted.sort_by(|(a, ..), (b, ..)| b.cmp_precedence(a));
    if let Some(at) = sorted
        .iter()
        .position(|(version, ..)| range.matches(version))
    {
        return Ok(sorted.swap_remove(at).2);
    }
    let known = sorted.iter().map(|(_, text, _)| text);
    Err(list_names(known, NAMED, "none"))
}

/// Whether this is a version with three numbers and not a range.
pub(super) fn is_exact(version: &str) -> bool {
    is_semver(version.strip_prefix('v').unwrap_or(version))
}

fn is_semver(text: &str) -> bool {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = 0;
    core.split('.').all(|part| {
        numbers += 1;
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    }) && numbers == 3
        && constraint::parse_version(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: &str) -> ChartVersion {
        ChartVersion {
            version: version.to_owned(),
            url: String::new(),
            digest: None,
        }
    }

    #[test]
    fn versions_are_chosen_as_helm_chooses_them() {
        let entries = ["1.9.0", "1.10.0", "2.0.0-rc.1", "v0.9", "broken", "1.10"].map(entry);
        for (wanted, expected) in [
            (None, Some("1.10.0")),
            (Some("1.9.0"), Some("1.9.0")),
            (Some("v1.9.0"), Some("1.9.0")),
            (Some("1.10"), Some("1.10")),
            (Some("1.x"), Some("1.10.0")),
            (Some("~1.9.0"), Some("1.9.0")),
            (Some(">=1.0.0-0"), Some("2.0.0-rc.1")),
            (Some("2.0.0-rc.1"), Some("2.0.0-rc.1")),
            (Some("0.9.0"), Some("v0.9")),
            (Some("broken"), Some("broken")),
            (Some(">=2.0.0"), None),
            (Some("3.0.0"), None),
        ] {
            let chosen = choose(&entries, "web", wanted, "https://a.example/index.yaml");
            let chosen = chosen.ok().map(|entry| entry.version.as_str());
            assert_eq!(chosen, expected, "{wanted:?}");
        }
        let error =
            choose(&entries, "web", Some("3.x"), "https://a.example/index.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "https://a.example/index.yaml: chart web has no version 3.x; it has 2.0.0-rc.1, 1.10.0, 1.10, 1.9.0, v0.9"
        );
        let pre = [entry("1.0.0-rc.1")];
        let error = choose(&pre, "web", None, "u").unwrap_err().to_string();
        assert!(
            error.contains("pre-releases have to be asked for; it has 1.0.0-rc.1"),
            "{error}"
        );
        let error = choose(&pre, "web", Some(">="), "u")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("version of chart web: "), "{error}");
    }

    #[test]
    fn exact_versions_have_three_numbers() {
        for (version, expected) in [
            ("1.2.3", true),
            ("v1.2.3-rc.1+b", true),
            ("1.2", false),
            ("1.2.x", false),
            ("=1.2.3", false),
            ("1.2.3 || 1.2.4", false),
            ("latest", false),
            ("", false),
        ] {
            assert_eq!(is_exact(version), expected, "{version}");
        }
    }
}
