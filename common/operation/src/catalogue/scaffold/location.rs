//! The name and the version of an add-on in the location of its files.

use addons_versions::tolerant;

/// The extensions that are left out of a name.
const EXTENSIONS: [&str; 5] = [".yaml", ".yml", ".json", ".tgz", ".tar.gz"];
/// Names of files and folders that say what they hold, and not of which add-on.
const GENERIC: [&str; 22] = [
    "all",
    "archive",
    "base",
    "bundle",
    "charts",
    "components",
    "config",
    "deploy",
    "deployment",
    "download",
    "install",
    "kubernetes",
    "k8s",
    "main",
    "manifest",
    "manifests",
    "master",
    "raw",
    "refs",
    "release",
    "releases",
    "tags",
];
/// How many folders above a file may have its version as their name.
const VERSION_DISTANCE: usize = 3;

/// What a location says about an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocationFacts {
    /// The name of the add-on.
    pub name: String,
    /// The version.
    pub version: Option<String>,
    /// Whether folders `NAME/VERSION` say both. They count more than the labels of objects.
    pub is_by_folders: bool,
}

/// Reads the name and the version in a location: `argo-cd` and `v3.4.7` in `manifests/argo-cd/v3.4.7/install.yaml`, `web` and `1.0.0` in
/// `web-1.0.0.yaml`. `absolute` is the same location as a URL; its folders are read if the location has no name itself, as `.` and
/// `v1.5.1` have none.
#[must_use]
pub fn read_location(location: &str, absolute: &str) -> LocationFacts {
    let found = match read_segments(&segments(location)) {
        Some(found) if !found.is_vague => Some(found.facts),
        typed => read_segments(&segments(absolute))
            .or(typed)
            .map(|found| found.facts),
    };
    let found = found.unwrap_or_default();
    let name = match found.name.as_str() {
        "" => "addon".to_owned(),
        name => object_name(name),
    };
    LocationFacts { name, ..found }
}

/// Whether a name of a folder is a version, such as `v1.5.1` or `2.19.0`.
#[must_use]
pub fn is_version(name: &str) -> bool {
    // A number alone may be a year.
    tolerant::is_version(name) && (name.starts_with('v') || name.contains('.'))
}

/// What the names of folders and files say.
struct SegmentFacts {
    facts: LocationFacts,
    /// Whether folders further up may have a better name.
    is_vague: bool,
}

/// Returns the names of the folders and of the file.
fn segments(location: &str) -> Vec<String> {
    let path = match location.split_once("://") {
        Some((_, rest)) => {
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            rest.split_once('/').map_or("", |(_, path)| path)
        }
        None => location,
    };
    let parts = path.split('/').map(|part| part.replace("%20", " "));
    parts
        .filter(|part| !part.is_empty() && part != ".")
        .collect()
}

fn read_segments(segments: &[String]) -> Option<SegmentFacts> {
    let (last, folders) = segments.split_last()?;
    let stem = EXTENSIONS.iter().find_map(|it| last.strip_suffix(it));
    let stem = stem.unwrap_or(last);
    if stem == ".." {
        return None;
    }
    if is_version(stem) {
        let name = folder_name(folders);
        return Some(SegmentFacts {
            is_vague: name.is_none(),
            facts: LocationFacts {
                is_by_folders: name.is_some(),
                name: name.unwrap_or_default(),
                version: Some(stem.to_owned()),
            },
        });
    }
    let certain = |name: String, version: Option<&str>| SegmentFacts {
        is_vague: false,
        facts: LocationFacts {
            name,
            version: version.map(str::to_owned),
            is_by_folders: false,
        },
    };
    if let Some((name, version)) = split_version(stem) {
        let above = folder_name(folders).filter(|_| is_generic(name));
        let name = above.unwrap_or_else(|| name.to_owned());
        return Some(certain(name, Some(version)));
    }
    let above = folders.iter().enumerate().rev().take(VERSION_DISTANCE);
    let mut above = above.take_while(|(_, name)| *name != "..");
    if let Some((at, version)) = above.find(|(_, name)| is_version(name)) {
        let name = folder_name(folders.get(..at).unwrap_or_default());
        return Some(SegmentFacts {
            is_vague: name.is_none() && is_generic(stem),
            facts: LocationFacts {
                is_by_folders: name.is_some(),
                name: name.unwrap_or_else(|| stem.to_owned()),
                version: Some(version.clone()),
            },
        });
    }
    let parent = folders
        .last()
        .filter(|name| *name != ".." && !is_generic(name));
    let name = parent.filter(|_| is_generic(stem));
    let name = name.map_or(stem, String::as_str);
    Some(certain(name.to_owned(), None))
}

/// Returns the name of the nearest folder that names an add-on.
fn folder_name(folders: &[String]) -> Option<String> {
    let mut names = folders.iter().rev().take_while(|name| *name != "..");
    let found = names.find(|name| !is_generic(name) && !is_version(name));
    found.cloned()
}

fn is_generic(name: &str) -> bool {
    GENERIC.iter().any(|it| name.eq_ignore_ascii_case(it))
}

/// Splits `NAME-VERSION`.
fn split_version(stem: &str) -> Option<(&str, &str)> {
    stem.match_indices('-').find_map(|(at, _)| {
        let (name, version) = (stem.get(..at)?, stem.get(at + 1..)?);
        tolerant::is_version(version).then_some((name, version))
    })
}

/// Returns the name as an add-on can have it.
fn object_name(name: &str) -> String {
    let lower = name.to_lowercase();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let name: String = lower
        .chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .collect();
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(location: &str, absolute: &str, name: &str, version: Option<&str>) {
        let found = read_location(location, absolute);
        assert_eq!(
            (found.name.as_str(), found.version.as_deref()),
            (name, version),
            "{location}"
        );
    }

    #[test]
    fn the_name_of_a_file_may_hold_a_version() {
        for (location, name, version) in [
            (
                "manifests/log-shipper-1.0.0.yaml",
                "log-shipper",
                Some("1.0.0"),
            ),
            ("https://h/web-v1.2.tgz", "web", Some("v1.2")),
            ("./charts/web/", "web", None),
            ("web-2go.yaml", "web-2go", None),
            ("k8s-1.36.0-rc.1", "k8s", Some("1.36.0-rc.1")),
            ("Web_App.yaml", "web-app", None),
        ] {
            check(location, "file:///srv/x", name, version);
        }
    }

    #[test]
    fn folders_hold_a_name_and_a_version() {
        for (location, absolute, name, version) in [
            (
                "manifests/argo-cd/v3.4.7/install.yaml",
                "",
                "argo-cd",
                Some("v3.4.7"),
            ),
            (
                "manifests/gateway-api-crds/v1.5.1",
                "",
                "gateway-api-crds",
                Some("v1.5.1"),
            ),
            (
                "manifests/gateway-api-crds/v1.5.1/",
                "",
                "gateway-api-crds",
                Some("v1.5.1"),
            ),
            (
                "v1.5.1",
                "file:///srv/manifests/gateway-api-crds/v1.5.1",
                "gateway-api-crds",
                Some("v1.5.1"),
            ),
            (".", "file:///srv/argo-cd/v3.4.7", "argo-cd", Some("v3.4.7")),
            (
                "../v3.4.7/install.yaml",
                "file:///srv/argo-cd/v3.4.7/install.yaml",
                "argo-cd",
                Some("v3.4.7"),
            ),
            ("argo-cd/install.yaml", "", "argo-cd", None),
            ("argo-cd/install-v3.4.7.yaml", "", "argo-cd", Some("v3.4.7")),
            (
                "install.yaml",
                "file:///home/me/install.yaml",
                "install",
                None,
            ),
            ("manifests/install.yaml", "", "install", None),
            ("2024/web.yaml", "", "web", None),
            (
                "https://h/v1.4.0/install.yaml?x=1",
                "",
                "install",
                Some("v1.4.0"),
            ),
            (
                "https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.5.1/standard-install.yaml",
                "",
                "gateway-api",
                Some("v1.5.1"),
            ),
            (
                "https://raw.githubusercontent.com/argoproj/argo-cd/v3.4.7/manifests/install.yaml",
                "",
                "argo-cd",
                Some("v3.4.7"),
            ),
        ] {
            check(location, absolute, name, version);
        }
    }
}
