//! Checks schemas of values: none may make helm read a file or an address outside of its chart.

use addons_render::chart::references;
use addons_render::package::Package;
use addons_sources::archive;

use super::HelmError;

/// Maximum nesting of charts in charts.
const NESTED: usize = 8;

/// Refuses a chart with a schema that refers to something outside of itself.
///
/// # Errors
/// [`HelmError::Schema`], or an archive cannot be read.
pub(super) fn check(chart: &Package) -> Result<(), HelmError> {
    let chart = super::chart_files(chart)?;
    check_files(&chart, "", NESTED)
}

fn check_files(chart: &Package, folder: &str, depth: usize) -> Result<(), HelmError> {
    for file in chart.files() {
        let path = || format!("{folder}{}", file.path);
        if references::is_schema(&file.path) {
            let checked = references::check(&file.bytes);
            checked.map_err(|problem| HelmError::Schema {
                file: path(),
                problem,
            })?;
        } else if references::is_chart(&file.path) {
            let nested = HelmError::Nested { file: path() };
            let depth = depth.checked_sub(1).ok_or(nested)?;
            let inner = archive::unpack(&file.bytes).map_err(HelmError::Archive)?;
            check_files(&inner, &format!("{}/", path()), depth)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use addons_render::package::PackagedFile;

    use super::*;

    fn chart(schema: &str) -> Package {
        let file = |path: &str, text: &str| PackagedFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let files = vec![
            file("Chart.yaml", "name: web"),
            file("charts/a/values.schema.json", schema),
        ];
        Package::from_folder(files).unwrap()
    }

    #[test]
    fn a_schema_of_a_chart_in_a_chart_is_judged() {
        assert!(check(&chart("{\"$ref\": \"#/definitions/a\"}")).is_ok());
        let refused = check(&chart("{\"$ref\": \"file:///etc/passwd\"}"));
        let said = refused.unwrap_err().to_string();
        let begins =
            "chart: charts/a/values.schema.json: $ref \"file:///etc/passwd\" leaves the chart";
        assert!(said.starts_with(begins), "{said}");
    }
}
