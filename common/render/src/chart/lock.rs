//! `Chart.lock`: the version of each dependency that the author of a chart tested. Its digest covers names, ranges, repositories and
//! versions, but not the dependencies themselves.

use std::collections::{BTreeMap, BTreeSet};

use addons_versions::constraint::{Constraint, parse_version};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    CHART, Chart, ChartError, DependencyOrigin, LOCKS, REQUIREMENTS, dependencies, read_map,
};
use crate::package::Package;
use common::manifest::digest::sha256;

/// A dependency to fetch, at the version in the lock file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinnedDependency {
    /// `name`.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// A chart repository or registry.
    pub repository: String,
}

impl PinnedDependency {
    /// Returns the path in `charts/` that helm expects.
    #[must_use]
    pub fn path(&self) -> String {
        format!("charts/{}-{}.tgz", self.name, self.version)
    }
}

/// A dependency with fields in helm's own order, on which the digest depends.
#[derive(Serialize)]
struct HashedDependency<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    repository: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    condition: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    enabled: bool,
    #[serde(rename = "import-values", skip_serializing_if = "Vec::is_empty")]
    import_values: Vec<Value>,
    #[serde(skip_serializing_if = "str::is_empty")]
    alias: &'a str,
}

impl Chart {
    /// Returns the dependencies to fetch, without repetitions; `archived` as in [`Chart::missing_dependencies`].
    ///
    /// # Errors
    /// A dependency cannot be resolved, or the lock file was made for another chart, or names another repository or no exact version.
    pub fn pinned_dependencies(
        &self,
        package: &Package,
        archived: &BTreeSet<String>,
    ) -> Result<Vec<PinnedDependency>, ChartError> {
        let missing = self.missing_dependencies(package, archived)?.into_iter();
        let remote: Vec<_> = missing
            .filter(|(_, origin)| matches!(origin, DependencyOrigin::Remote(_)))
            .map(|(dependency, _)| dependency)
            .collect();
        if remote.is_empty() {
            return Ok(Vec::new());
        }
        let (file, lock) = read_lock(package)?;
        let wrong = |problem: String| ChartError::Lock { file, problem };
        let locked = dependencies(file, &lock)?;
        check_digest(package, file, &lock)?;
        let mut pinned = BTreeSet::new();
        for wanted in remote {
            let fits = locked.iter().find(|locked| {
                (&locked.name, &locked.repository) == (&wanted.name, &wanted.repository)
                    && is_in_range(&locked.version, &wanted.version)
            });
            let found = fits.ok_or_else(|| {
                let (name, range) = (&wanted.name, &wanted.version);
                wrong(format!(
                    "names no version of {name} that is in {range:?} and comes from {}",
                    wanted.repository
                ))
            })?;
            if found.name.contains(['/', '\\']) || found.version.contains(['/', '\\']) {
                return Err(wrong(format!("names {:?}, which is a path", found.name)));
            }
            pinned.insert(PinnedDependency {
                name: found.name.clone(),
                version: found.version.clone(),
                repository: found.repository.clone(),
            });
        }
        Ok(pinned.into_iter().collect())
    }
}

fn read_lock(package: &Package) -> Result<(&'static str, Map<String, Value>), ChartError> {
    for file in LOCKS {
        if let Some(lock) = read_map(package, file)? {
            return Ok((file, lock));
        }
    }
    Ok((LOCKS[0], Map::new()))
}

/// Checks, as helm does, that the lock file was made for the current chart. For Helm 2 charts, the digest of Helm 2 is accepted as well.
fn check_digest(
    package: &Package,
    file: &'static str,
    lock: &Map<String, Value>,
) -> Result<(), ChartError> {
    let about = read_map(package, CHART)?.unwrap_or_default();
    let requirements = read_map(package, REQUIREMENTS)?.unwrap_or_default();
    let source = if requirements
        .get("dependencies")
        .is_some_and(Value::is_array)
    {
        &requirements
    } else {
        &about
    };
    let wanted = hashed_dependencies(source);
    let digest = lock.get("digest").and_then(Value::as_str);
    let is_helm2 = about.get("apiVersion").and_then(Value::as_str) == Some("v1");
    let both = go_json_digest(&[&wanted, &hashed_dependencies(lock)]);
    let alone = || go_json_digest(&BTreeMap::from([("dependencies", &wanted)]));
    if digest == Some(&both) || (is_helm2 && digest == Some(&alone())) {
        return Ok(());
    }
    let made_for = if std::ptr::eq(source, &about) {
        CHART
    } else {
        REQUIREMENTS
    };
    Err(ChartError::Lock {
        file,
        problem: format!("was not made for this {made_for} (its digest is another)"),
    })
}

fn hashed_dependencies(map: &Map<String, Value>) -> Vec<HashedDependency<'_>> {
    let list = map.get("dependencies").and_then(Value::as_array);
    let list = list.into_iter().flatten();
    let read = list.map(|dependency| {
        let text = |name| dependency.get(name).and_then(Value::as_str);
        let list = |name| dependency.get(name).and_then(Value::as_array);
        HashedDependency {
            name: text("name").unwrap_or_default(),
            version: text("version").unwrap_or_default(),
            repository: text("repository").unwrap_or_default(),
            condition: text("condition").unwrap_or_default(),
            tags: list("tags")
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect(),
            enabled: dependency.get("enabled").and_then(Value::as_bool) == Some(true),
            import_values: list("import-values").cloned().unwrap_or_default(),
            alias: text("alias").unwrap_or_default(),
        }
    });
    read.collect()
}

/// Returns the `sha256:` digest of the JSON that Go writes, in which characters of HTML are escaped.
fn go_json_digest(value: &impl Serialize) -> String {
    let mut json = serde_json::to_string(value).unwrap_or_default();
    for (letter, escaped) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        // In JSON, these characters occur only in strings.
        json = json.replace(letter, escaped);
    }
    format!("sha256:{}", sha256(json.as_bytes()))
}

/// Returns whether a version is exact and in a range. As in helm, an empty range means any version.
fn is_in_range(exact: &str, range: &str) -> bool {
    let Ok(exact_version) = parse_version(exact) else {
        return false;
    };
    let is_any = range.trim().is_empty();
    is_any
        || exact == range
        || Constraint::parse(range).is_ok_and(|range| range.matches(&exact_version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::PackagedFile;

    fn package(files: &[(&str, &str)]) -> Package {
        let files = files.iter().map(|(path, text)| PackagedFile {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        });
        Package::from_folder(files.collect()).unwrap()
    }

    fn pinned(files: &[(&str, &str)]) -> Result<Vec<PinnedDependency>, ChartError> {
        let package = package(files);
        Chart::read(&package)?.pinned_dependencies(&package, &BTreeSet::new())
    }

    const ABOUT: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n\
        - {name: part, version: '>=0.1.0 <1', repository: 'http://127.0.0.1:18099', condition: part.on, tags: [a, b], alias: one,\
           import-values: [data, {parent: p, child: c}]}\n\
        - {name: part, version: '>=0.1.0 <1', repository: 'http://127.0.0.1:18099', alias: two}\n";

    fn lock(digest: &str) -> String {
        format!(
            "dependencies:\n- {{name: part, repository: 'http://127.0.0.1:18099', version: 0.2.0}}\n\
             - {{name: part, repository: 'http://127.0.0.1:18099', version: 0.2.0}}\ndigest: {digest}\ngenerated: x\n"
        )
    }

    /// Written by helm 4.3.1 (`helm dependency update`).
    const DIGEST: &str = "sha256:e195e42f07c912829993f66a32f1168fe8c6fbad65f64450fea00ecc97934899";

    #[test]
    fn a_digest_is_that_of_helm() {
        let found = pinned(&[("Chart.yaml", ABOUT), ("Chart.lock", &lock(DIGEST))]).unwrap();
        let part = PinnedDependency {
            name: "part".to_owned(),
            version: "0.2.0".to_owned(),
            repository: "http://127.0.0.1:18099".to_owned(),
        };
        assert_eq!(part.path(), "charts/part-0.2.0.tgz");
        assert_eq!(found, [part]);
    }

    #[test]
    fn a_lock_file_fits_its_chart_or_is_refused() {
        let about = "name: web\nversion: 1.0.0\ndependencies:\n- {name: part, version: 0.x, repository: 'https://a.example'}\n";
        let wanted = r#"{"name":"part","version":"0.x","repository":"https://a.example"}"#;
        for (locked, repository, expected) in [
            ("0.2.0", "https://a.example", None),
            (
                "1.0.0",
                "https://a.example",
                Some("names no version of part"),
            ),
            ("0.x", "https://a.example", Some("names no version of part")),
            ("0.2.0", "file:///etc", Some("names no version of part")),
            (
                "0.2.0",
                "https://b.example",
                Some("names no version of part"),
            ),
        ] {
            let own =
                format!(r#"{{"name":"part","version":"{locked}","repository":"{repository}"}}"#);
            let digest = sha256(format!("[[{wanted}],[{own}]]").as_bytes());
            let lock = format!("dependencies: [{own}]\ndigest: sha256:{digest}\n");
            match (
                pinned(&[("Chart.yaml", about), ("Chart.lock", &lock)]),
                expected,
            ) {
                (Ok(found), None) => assert_eq!(found.len(), 1),
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, _) => panic!("{locked} {repository}: {found:?}"),
            }
        }
        let error = pinned(&[("Chart.yaml", about), ("Chart.lock", &lock("sha256:0"))]);
        let words = "Chart.lock was not made for this Chart.yaml (its digest is another): run helm dependency update in the \
                     chart and commit Chart.lock, or charts/";
        assert_eq!(error.unwrap_err().to_string(), words);
    }

    /// Helm 2 covered only what was wanted.
    #[test]
    fn charts_of_helm_2() {
        let requirements =
            "dependencies:\n- {name: part, version: 0.x, repository: 'http://127.0.0.1:18099'}\n";
        let json = r#"{"dependencies":[{"name":"part","version":"0.x","repository":"http://127.0.0.1:18099"}]}"#;
        let lock = lock(&format!("sha256:{}", sha256(json.as_bytes())));
        for (version, is_taken) in [("v1", true), ("v2", false)] {
            let about = format!("apiVersion: {version}\nname: web\nversion: 1.0.0\n");
            let files = [
                ("Chart.yaml", about.as_str()),
                ("requirements.yaml", requirements),
                ("requirements.lock", &lock),
            ];
            assert_eq!(pinned(&files).is_ok(), is_taken, "{version}");
        }
    }
}
