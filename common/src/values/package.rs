//! The values that a package brings: defaults under all other layers (semantics 9).

use super::layers::Values;
use super::{ValuesError, read};
use crate::render::package::Package;

/// The file of a folder that holds them; it is not rendered.
pub const FILE: &str = "values.yaml";

/// The defaults of a package: `values.yaml` at the root of a folder, or of the one chart in it. A single file has none.
///
/// # Errors
/// [`ValuesError`]: they are no map.
pub fn defaults(package: &Package) -> Result<Values, ValuesError> {
    let Some(path) = file_of(package) else {
        return Ok(Values::default());
    };
    let bytes = package.get(&path).map(|file| file.bytes.as_slice());
    let values = read(bytes.unwrap_or_default(), &path)?;
    Ok(Values::of_package(&path, values))
}

/// Where the defaults lie; archives of charts hold one folder.
fn file_of(package: &Package) -> Option<String> {
    if package.as_file().is_some() {
        return None;
    }
    if package.get(FILE).is_some() {
        return Some(FILE.to_owned());
    }
    let mut charts = package.files().iter().filter_map(|file| {
        let (folder, name) = file.path.split_once('/')?;
        (name == "Chart.yaml").then(|| format!("{folder}/{FILE}"))
    });
    charts.next().filter(|path| package.get(path).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::package::File;

    fn folder(files: &[(&str, &str)]) -> Package {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        });
        Package::folder(files.collect()).unwrap()
    }

    #[test]
    fn defaults_lie_at_the_root_of_the_package_or_chart() {
        let cm = ("templates/cm.yaml", "a: {{ .Values.a }}");
        for (package, source, values) in [
            (
                folder(&[("values.yaml", "a: 1"), cm]),
                "values.yaml of the package",
                json!({"a": 1}),
            ),
            (
                folder(&[("web/Chart.yaml", ""), ("web/values.yaml", "a: 2")]),
                "web/values.yaml of the package",
                json!({"a": 2}),
            ),
            (folder(&[cm]), "", json!({})),
            (folder(&[("web/Chart.yaml", "")]), "", json!({})),
            // Not at the root, and not of a chart.
            (folder(&[("deep/values.yaml", "a: 3")]), "", json!({})),
            (
                Package::file("values.yaml", b"a: 4".to_vec()),
                "",
                json!({}),
            ),
        ] {
            let found = defaults(&package).unwrap();
            assert_eq!((found.source(), found.values()), (source, &values));
        }
        let error = defaults(&folder(&[("values.yaml", "- a")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "values.yaml:1: values are one map, as in `replicas: 3`"
        );
    }
}
