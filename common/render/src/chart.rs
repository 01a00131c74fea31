//! Reads the metadata of a chart before helm runs. A folder without a chart, a library chart and a dependency that cannot be resolved are
//! reported here, with the name of the file.

pub mod lock;
pub mod references;
pub mod release_name;
mod schema;
pub mod unknown;

use std::collections::BTreeSet;

use addons_versions::constraint::Constraint;
use memchr::memmem;
use serde_json::{Map, Value};

use common::api::catalogue::Constraints;
use common::entrance;

use super::package::{Package, normal_path};
use common::manifest::yaml::{DuplicateKeys, FloatReading, YamlOptions, YamlProblem, documents};

/// The key in a chart's values that holds the data of templates (semantics 10.5).
pub const TEMPLATE_DATA: &str = "templateData";

const CHART: &str = "Chart.yaml";
/// Dependencies of Helm 2 charts (`apiVersion: v1`).
const REQUIREMENTS: &str = "requirements.yaml";
const VALUES: &str = "values.yaml";
const LOCKS: [&str; 2] = ["Chart.lock", "requirements.lock"];
/// Maximum length of a description in characters, as in a catalogue.
const MAX_DESCRIPTION: usize = 1024;
/// Maximum number of charts in subfolders that an error names.
const NAMED: usize = 3;

/// The fields of a chart that are needed here.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// `name`.
    pub name: String,
    /// `version`.
    pub version: String,
    /// What it says about itself to people.
    pub about: ChartDescription,
    /// `kubeVersion`: the supported versions of Kubernetes. As in helm, the suffix of a distribution is ignored in comparisons.
    pub kube_version: Option<String>,
    /// Its dependencies, in the order of the file.
    pub dependencies: Vec<ChartDependency>,
    /// `values.yaml`, the lowest layer of values (semantics 9).
    pub values: Value,
    /// Whether its schema refuses [`TEMPLATE_DATA`] among the values (semantics 10.5). The data is then left out.
    pub is_closed: bool,
    /// Whether it is a library chart, which only other charts can use.
    pub is_library: bool,
}

/// What a chart says about itself to people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartDescription {
    /// `description`, on one line.
    pub description: Option<String>,
    /// `home`, if it is a web page.
    pub home: Option<String>,
    /// `icon`, if it is on the web.
    pub icon: Option<String>,
}

/// A dependency of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartDependency {
    /// `name`.
    pub name: String,
    /// `version`, often a range.
    pub version: String,
    /// `repository`. If empty, the dependency must be in `charts/`.
    pub repository: String,
    /// `alias`: the key of its values, if it is not its name.
    pub alias: Option<String>,
}

/// Where a dependency comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DependencyOrigin {
    /// A folder of the package, relative to it.
    Folder(String),
    /// A chart repository or registry.
    Remote(String),
}

/// Why a package is not a chart that can be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    /// There is no `Chart.yaml` at the root.
    #[error("there is no Chart.yaml at its root{}", hint(.elsewhere))]
    NoChart {
        /// Subfolders that contain a chart.
        elsewhere: Vec<String>,
    },
    /// A file is not YAML.
    #[error("{file}:{line}: cannot be read as YAML")]
    Yaml {
        /// Path of the file.
        file: &'static str,
        /// Where.
        line: usize,
        /// What is wrong.
        #[source]
        problem: YamlProblem,
    },
    /// A file is YAML, but has the wrong content.
    #[error("{file}: {problem}")]
    Content {
        /// Path of the file.
        file: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The chart is a library, which only other charts can use.
    #[error(
        "{name} is a library chart (type: library in Chart.yaml), which has nothing to install: name the chart that uses it"
    )]
    Library {
        /// Name of the chart.
        name: String,
    },
    /// The lock file does not name the dependencies of the chart.
    #[error(
        "{file} {problem}: run helm dependency update in the chart and commit {file}, or charts/"
    )]
    Lock {
        /// Path of the lock file.
        file: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A dependency cannot be resolved.
    #[error("dependency {name} is not in charts/, and {problem}: {way_out}")]
    Dependency {
        /// Name of the dependency.
        name: String,
        /// Why it cannot be resolved.
        problem: String,
        /// How to resolve it.
        way_out: &'static str,
    },
}

const SCHEMA: &str = "values.schema.json";
const VENDOR: &str = "run helm dependency update there and commit charts/";

fn hint(elsewhere: &[String]) -> String {
    if elsewhere.is_empty() {
        return ": a chart is a folder with Chart.yaml, or a .tgz of one".to_owned();
    }
    format!(
        "; there is one in {}: name that folder as the path of the source",
        elsewhere.join(", ")
    )
}

impl Chart {
    /// Reads the chart at the root of a folder. A library chart is an error, because it cannot be installed.
    ///
    /// # Errors
    /// [`ChartError`].
    pub fn read(package: &Package) -> Result<Self, ChartError> {
        let chart = Self::read_any(package)?;
        if chart.is_library {
            return Err(ChartError::Library { name: chart.name });
        }
        Ok(chart)
    }

    /// Reads the chart at the root of a folder, which may be a library chart.
    ///
    /// # Errors
    /// [`ChartError`].
    pub fn read_any(package: &Package) -> Result<Self, ChartError> {
        let Some(about) = read_map(package, CHART)? else {
            let elsewhere = package.files().iter();
            let elsewhere = elsewhere.filter_map(|file| file.path.strip_suffix("/Chart.yaml"));
            let charts = elsewhere.filter(|folder| !format!("/{folder}/").contains("/charts/"));
            return Err(ChartError::NoChart {
                elsewhere: charts.take(NAMED).map(str::to_owned).collect(),
            });
        };
        let field = |name: &str| {
            let text = about.get(name).and_then(Value::as_str).unwrap_or_default();
            if text.is_empty() {
                return Err(content_error(
                    CHART,
                    format!("{name} is missing, which every chart has"),
                ));
            }
            Ok(text.to_owned())
        };
        let name = field("name")?;
        if name.contains(['/', '\\']) || name == "." || name == ".." {
            return Err(content_error(
                CHART,
                format!("{name:?} is not a valid name: it is a path"),
            ));
        }
        let version = field("version")?;
        let requirements = read_map(package, REQUIREMENTS)?.unwrap_or_default();
        let mut all = dependencies(CHART, &about)?;
        all.extend(dependencies(REQUIREMENTS, &requirements)?);
        Ok(Self {
            name,
            version,
            about: read_description(&about),
            kube_version: about
                .get("kubeVersion")
                .and_then(Value::as_str)
                .filter(|range| Constraint::parse(range).is_ok())
                .map(str::to_owned),
            dependencies: all,
            values: Value::Object(read_map(package, VALUES)?.unwrap_or_default()),
            is_closed: is_closed(package),
            is_library: about.get("type").and_then(Value::as_str) == Some("library"),
        })
    }

    /// Returns the constraints of a catalogue entry for this chart.
    #[must_use]
    pub fn constraints(&self) -> Constraints {
        Constraints {
            k8s_version: self.kube_version.clone(),
            ..Constraints::default()
        }
    }

    /// Returns the dependencies that are not in `charts/`, with their origins. `archived` contains the names of the charts in archives
    /// there, which do not follow from the file names.
    ///
    /// # Errors
    /// A dependency cannot be resolved, or not always to the same version: [`ChartError::Dependency`].
    pub fn missing_dependencies(
        &self,
        package: &Package,
        archived: &BTreeSet<String>,
    ) -> Result<Vec<(&ChartDependency, DependencyOrigin)>, ChartError> {
        let missing = self.dependencies.iter().filter(|dependency| {
            let name = &dependency.name;
            !archived.contains(name) && !is_unpacked(package, name)
        });
        missing
            .map(|dependency| Ok((dependency, self.find_origin(package, dependency)?)))
            .collect()
    }

    fn find_origin(
        &self,
        package: &Package,
        dependency: &ChartDependency,
    ) -> Result<DependencyOrigin, ChartError> {
        let wrong = |problem: String, way_out| ChartError::Dependency {
            name: dependency.name.clone(),
            problem,
            way_out,
        };
        let repository = dependency.repository.as_str();
        match repository.split_once("://") {
            Some(("file", path)) => {
                let folder = relative_path(path).ok_or_else(|| {
                    wrong(format!("{repository} lies outside of the chart"), VENDOR)
                })?;
                if package.get(&format!("{folder}/{CHART}")).is_none() {
                    let problem = format!("there is no chart in {repository}");
                    return Err(wrong(problem, VENDOR));
                }
                Ok(DependencyOrigin::Folder(folder))
            }
            Some(("http" | "https" | "oci", rest)) => {
                if rest
                    .split('/')
                    .next()
                    .is_some_and(|host| host.contains('@'))
                {
                    let problem = "its repository holds a user name or password".to_owned();
                    return Err(wrong(problem, VENDOR));
                }
                if LOCKS.iter().all(|lock| package.get(lock).is_none()) {
                    let problem = "there is no Chart.lock that says which version it has";
                    let way_out =
                        "run helm dependency update there and commit Chart.lock, or charts/";
                    return Err(wrong(problem.to_owned(), way_out));
                }
                Ok(DependencyOrigin::Remote(repository.to_owned()))
            }
            None if repository.starts_with(['@']) || repository.starts_with("alias:") => {
                Err(wrong(
                    format!("{repository} is a repository that only its author's helm knows"),
                    "write the repository's URL into Chart.yaml, or commit charts/",
                ))
            }
            None if repository.is_empty() => Err(wrong("it has no repository".to_owned(), VENDOR)),
            _ => Err(wrong(
                format!(
                    "{repository:?} is not a repository; use file://, http://, https:// or oci://"
                ),
                VENDOR,
            )),
        }
    }
}

/// Returns the values that make helm arrive at `merged`. Helm merges them over `defaults` again, so a removed key becomes null.
#[must_use]
pub fn overrides(defaults: &Value, merged: &Value) -> Value {
    let (Value::Object(defaults), Value::Object(merged)) = (defaults, merged) else {
        return merged.clone();
    };
    let taken = defaults.iter().filter(|(key, value)| {
        // Helm itself drops a default of null.
        !merged.contains_key(*key) && !value.is_null()
    });
    let taken = taken.map(|(key, _)| (key.clone(), Value::Null));
    let given = merged.iter().map(|(key, value)| {
        let value = match defaults.get(key) {
            Some(default) => overrides(default, value),
            None => value.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(given.chain(taken).collect())
}

/// Returns whether the schema of the values forbids the data of templates. Helm reports a schema that cannot be read.
fn is_closed(package: &Package) -> bool {
    let schema = package.get(SCHEMA);
    let schema = schema.and_then(|file| entrance::from_slice::<Value>(&file.bytes).ok());
    schema.is_some_and(|schema| schema::refuses(&schema, TEMPLATE_DATA))
}

/// Returns whether a file of a chart mentions the data of templates. Markdown files and archives do not count.
#[must_use]
pub fn mentions_template_data(package: &Package) -> bool {
    let is_read = |path: &str| !path.ends_with(".md") && !path.ends_with(".tgz");
    let mut files = package.files().iter();
    files.any(|file| {
        is_read(&file.path) && memmem::find(&file.bytes, TEMPLATE_DATA.as_bytes()).is_some()
    })
}

/// Reads the map in a file of the package; `None` if the file does not exist.
fn read_map(
    package: &Package,
    file: &'static str,
) -> Result<Option<Map<String, Value>>, ChartError> {
    let Some(found) = package.get(file) else {
        return Ok(None);
    };
    let options = YamlOptions {
        duplicate_keys: DuplicateKeys::LastWins,
        // Versions must stay text; in `values.yaml`, only quoted numbers are text.
        floats: if file == VALUES {
            FloatReading::Number
        } else {
            FloatReading::Text
        },
    };
    // Like helm, read only the first document.
    match documents(&found.bytes, &options).next() {
        None => Ok(Some(Map::new())),
        Some(Ok(document)) => match document.value {
            Value::Object(map) => Ok(Some(map)),
            Value::Null => Ok(Some(Map::new())),
            _ => Err(content_error(
                file,
                "it is not a map, as in `name: value`".to_owned(),
            )),
        },
        Some(Err(error)) => Err(ChartError::Yaml {
            file,
            line: error.line,
            problem: error.problem,
        }),
    }
}

/// Reads the description with its white space folded, at most as long as a catalogue can have it.
fn read_description(about: &Map<String, Value>) -> ChartDescription {
    let text = |name: &str| about.get(name).and_then(Value::as_str);
    let folded = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").chars().take(MAX_DESCRIPTION).collect()
    };
    let description = text("description").map(folded);
    let url = |name: &str| {
        let is_web = |url: &&str| url.starts_with("https://") || url.starts_with("http://");
        let is_line = |url: &&str| !url.contains(|c: char| c.is_whitespace() || c.is_control());
        let url = text(name).filter(is_web).filter(is_line);
        url.map(str::to_owned)
    };
    ChartDescription {
        description: description.filter(|text: &String| !text.is_empty()),
        home: url("home"),
        icon: url("icon"),
    }
}

fn dependencies(
    file: &'static str,
    about: &Map<String, Value>,
) -> Result<Vec<ChartDependency>, ChartError> {
    let list = match about.get("dependencies") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(content_error(file, "dependencies is not a list".to_owned())),
    };
    let read = list.iter().enumerate().map(|(index, dependency)| {
        let text = |name| dependency.get(name).and_then(Value::as_str);
        let name = text("name").filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| content_error(file, format!("dependencies[{index}].name is missing")))?;
        Ok(ChartDependency {
            name: name.to_owned(),
            version: text("version").unwrap_or_default().to_owned(),
            repository: text("repository").unwrap_or_default().to_owned(),
            alias: text("alias").map(str::to_owned),
        })
    });
    read.collect()
}

fn content_error(file: &'static str, problem: String) -> ChartError {
    ChartError::Content { file, problem }
}

/// Returns the name of the chart in an unpacked archive of `charts/`.
#[must_use]
pub fn chart_name(package: &Package) -> Option<String> {
    let about = read_map(package, CHART).ok()??;
    about.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// Returns whether a dependency is a folder in `charts/`, whatever the name of the folder.
fn is_unpacked(package: &Package, name: &str) -> bool {
    package.files().iter().any(|file| {
        let path = file.path.strip_prefix("charts/");
        let inside = path.and_then(|path| path.split_once('/'));
        matches!(inside, Some((_, CHART))) && has_name(&file.bytes, name)
    })
}

fn has_name(chart: &[u8], name: &str) -> bool {
    let options = YamlOptions {
        duplicate_keys: DuplicateKeys::LastWins,
        floats: FloatReading::Text,
    };
    matches!(
        documents(chart, &options).next(),
        Some(Ok(document)) if document.value.get("name").and_then(Value::as_str) == Some(name)
    )
}

/// Returns a path relative to the chart, without `.` and `..`, or `None` if it leads out.
fn relative_path(path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains(['\\', '%']) {
        return None;
    }
    normal_path(path).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests;
