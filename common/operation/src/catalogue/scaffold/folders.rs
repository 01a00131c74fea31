//! A local folder that holds several packages: charts, or the versions of an add-on.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use addons_sources::{archive, kustomize};
use addons_versions::tolerant;
use common::manifest::is_manifest_file;

use super::location::is_version;

/// How deep packages may lie: `charts/NAME/VERSION`.
const MAX_DEPTH: usize = 3;

/// Returns the packages in a folder, relative to it, the lower versions first, or `None` if the folder is a package itself: a chart, a
/// kustomization, or manifests.
///
/// Packages are charts, archives, and folders with a version as their name. A folder that also holds a manifest is a package itself.
#[must_use]
pub fn list_packages(folder: &Path) -> Option<Vec<String>> {
    list_below(folder, MAX_DEPTH).filter(|found| !found.is_empty())
}

fn list_below(folder: &Path, depth: usize) -> Option<Vec<String>> {
    if depth == 0 || is_package(folder) {
        return None;
    }
    let mut found = Vec::new();
    for name in child_names(folder)? {
        let path = folder.join(&name);
        if !path.is_dir() {
            // Other files are a README, a license or the like.
            if archive::is_archive(&name) {
                found.push(name);
            } else if is_manifest_file(&name) && has_objects(&path) {
                return None;
            }
        } else if path.join("Chart.yaml").is_file() || is_version(&name) {
            found.push(name);
        } else {
            let below = list_below(&path, depth - 1)?.into_iter();
            found.extend(below.map(|one| format!("{name}/{one}")));
        }
    }
    Some(found)
}

/// Whether a file may have objects other than catalogues. The catalogue of the packages is often written into their folder.
fn has_objects(path: &Path) -> bool {
    // A file that cannot be read is reported when the package is.
    fs::read_to_string(path).map_or(true, |text| {
        text.contains("apiVersion") && !text.contains("AddonCatalogue")
    })
}

fn is_package(folder: &Path) -> bool {
    folder.join("Chart.yaml").is_file()
        || kustomize::NAMES
            .iter()
            .any(|name| folder.join(name).is_file())
}

/// Returns the names in a folder, sorted, versions by their order.
fn child_names(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort_by(|a, b| by_version(a, b));
    Some(names)
}

fn by_version(a: &str, b: &str) -> Ordering {
    match (tolerant::parse(a), tolerant::parse(b)) {
        (Ok(one), Ok(other)) => one.cmp(&other).then_with(|| a.cmp(b)),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(files: &[&str]) -> Option<Vec<String>> {
        let folder = addons_sources::scratch::Scratch::new("scaffold-").unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = match *file {
                "sources.json" => r#"[{"kind": "chart"}]"#,
                "catalogue.yaml" => {
                    "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\n"
                }
                "empty.yaml" => "",
                _ => "apiVersion: v1\n",
            };
            fs::write(path, text).unwrap();
        }
        list_packages(folder.path())
    }

    #[test]
    fn a_folder_of_packages_is_no_package() {
        for (files, expected) in [
            (
                &["2.20.2/Chart.yaml", "2.3.0/Chart.yaml"][..],
                &["2.3.0", "2.20.2"][..],
            ),
            (
                &["keda/2.19.0/Chart.yaml", "web/Chart.yaml", "README.md"],
                &["keda/2.19.0", "web"],
            ),
            (
                &["v3.4.7/install.yaml", "v3.5.1/install.yaml"],
                &["v3.4.7", "v3.5.1"],
            ),
            (
                &["web-1.0.0.tgz", "web-1.1.0.tgz"],
                &["web-1.0.0.tgz", "web-1.1.0.tgz"],
            ),
            (
                &[
                    "web/Chart.yaml",
                    "sources.json",
                    "catalogue.yaml",
                    "empty.yaml",
                ],
                &["web"],
            ),
        ] {
            let expected = expected.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(listed(files), Some(expected), "{files:?}");
        }
        for files in [
            &["Chart.yaml", "charts/db/Chart.yaml"][..],
            &["kustomization.yaml", "1.0/a.yaml"],
            &["a.yaml", "v1.0/b.yaml"],
            &["crd/a.yaml", "controller/b.yaml"],
            &["web/Chart.yaml", "other/b.yaml"],
            &[],
        ] {
            assert_eq!(listed(files), None, "{files:?}");
        }
    }
}
