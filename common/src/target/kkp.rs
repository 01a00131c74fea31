//! The version of KKP that manages a cluster. No object of the cluster has it, so it is an annotation of the namespace that stands
//! for the cluster (semantics 3).

use std::collections::BTreeMap;

use addons_versions::tolerant;
use semver::Version;

use crate::api::names::ANNOTATION_KKP_VERSION;

/// The annotation is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {ANNOTATION_KKP_VERSION}={text} of namespace {namespace} is not a version: write one like 2.28.3"
)]
pub struct KkpVersionError {
    /// The namespace.
    namespace: String,
    /// The annotation.
    text: String,
}

/// Returns the version in the annotations of a namespace, or `None` if the annotation is missing or empty. Then every constraint
/// matches.
///
/// # Errors
/// [`KkpVersionError`].
pub fn read_kkp_version(
    namespace: &str,
    annotations: &BTreeMap<String, String>,
) -> Result<Option<Version>, KkpVersionError> {
    let text = annotations
        .get(ANNOTATION_KKP_VERSION)
        .map(|text| text.trim());
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let version = tolerant::parse(text).map_err(|_| KkpVersionError {
        namespace: namespace.to_owned(),
        text: text.to_owned(),
    })?;
    Ok(Some(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_read_tolerantly_and_named_where_it_is_no_version() {
        let read = |text: &str| {
            let key = ANNOTATION_KKP_VERSION.to_owned();
            read_kkp_version("web", &BTreeMap::from([(key, text.to_owned())]))
        };
        assert_eq!(read("v2.28"), Ok(Some(Version::new(2, 28, 0))));
        assert_eq!(read(" "), Ok(None));
        assert_eq!(read_kkp_version("web", &BTreeMap::new()), Ok(None));
        let error = read("newest").unwrap_err().to_string();
        assert_eq!(
            error,
            "annotation kubectl-addons.dev/kkp-version=newest of namespace web is not a version: write one like 2.28.3"
        );
    }
}
