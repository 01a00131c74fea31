//! Turns relative manifests of a catalogue in a repository or an image into sources.
//!
//! In the cluster, a relative location cannot be resolved. Each relative manifest therefore becomes a source of its own, at the
//! revision that the catalogue was read at, so that the catalogue and its manifests always match (semantics 1.4).

use super::channel::{LocationError, resolve_manifest};
use crate::api::catalogue::with_digest;
use crate::api::catalogue::{
    AddonCatalogueSpec, CatalogueFrom, DockerSource, GitRef, GitSource, Method, Source,
};

/// Why a relative manifest cannot become a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelativeManifestError {
    /// The location cannot be resolved.
    #[error("{place}")]
    Location {
        /// The add-on and version, such as `web 1.0.0`.
        place: String,
        /// The reason.
        #[source]
        source: LocationError,
    },
    /// The location is outside of the repository or image.
    #[error("{place}: source.url.manifest: {manifest:?} leads out of the repository or image")]
    Outside {
        /// The add-on and version, such as `web 1.0.0`.
        place: String,
        /// The manifest as written.
        manifest: String,
    },
    /// The location is a chart archive.
    #[error(
        "{place}: source.url.manifest: {manifest:?} is a chart archive beside the catalogue; name the folder of the chart with \
         source.git or source.docker, or a repository of charts"
    )]
    Chart {
        /// The add-on and version, such as `web 1.0.0`.
        place: String,
        /// The manifest as written.
        manifest: String,
    },
}

/// Turns each relative manifest of a catalogue from a repository or an image into a source there, at `revision`: a commit, or the
/// digest of the image. A catalogue that was read by URL stays unchanged, because its manifests are resolved against its base URL.
///
/// # Errors
/// [`RelativeManifestError`].
pub fn resolve(
    spec: &mut AddonCatalogueSpec,
    from: &CatalogueFrom,
    revision: &str,
) -> Result<(), RelativeManifestError> {
    if from.url.is_some() || spec.base_url.is_some() {
        return Ok(());
    }
    for addon in &mut spec.addons {
        for version in &mut addon.versions {
            let Some(url) = &version.source.url else {
                continue;
            };
            let place = || format!("{} {}", addon.name, version.version);
            let manifest = || url.manifest.clone();
            if url.manifest.contains("://") {
                continue;
            }
            if version.template.method == Method::Helm {
                let (place, manifest) = (place(), manifest());
                return Err(RelativeManifestError::Chart { place, manifest });
            }
            let of_catalogue = catalogue_path(from).unwrap_or_default();
            let path = resolve_manifest(of_catalogue, &url.manifest);
            let path = path.map_err(|source| RelativeManifestError::Location {
                place: place(),
                source,
            })?;
            if path.split('/').any(|part| part == "..") {
                let (place, manifest) = (place(), manifest());
                return Err(RelativeManifestError::Outside { place, manifest });
            }
            version.source = to_source(from, revision, path);
        }
    }
    Ok(())
}

/// Returns the path of the catalogue's file in the repository or image.
fn catalogue_path(from: &CatalogueFrom) -> Option<&str> {
    let git = from.git.as_ref().and_then(|git| git.path.as_deref());
    git.or_else(|| from.docker.as_ref()?.path.as_deref())
}

fn to_source(from: &CatalogueFrom, revision: &str, path: String) -> Source {
    Source {
        git: from.git.as_ref().map(|git| GitSource {
            r#ref: Some(GitRef {
                commit: Some(revision.to_owned()),
                ..GitRef::default()
            }),
            path: Some(path.clone()),
            ..git.clone()
        }),
        docker: from.docker.as_ref().map(|docker| DockerSource {
            image: with_digest(&docker.image, revision),
            path: Some(path),
            ..docker.clone()
        }),
        ..Source::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The source of the only version, from a catalogue that was read at revision `sha256:1`.
    fn resolved(
        from: serde_json::Value,
        manifest: &str,
    ) -> Result<serde_json::Value, RelativeManifestError> {
        let version = json!({"version": "1.0.0", "source": {"url": {"manifest": manifest}}});
        let spec = json!({"addons": [{"name": "web", "versions": [version]}]});
        let mut spec: AddonCatalogueSpec = serde_json::from_value(spec).unwrap();
        let from: CatalogueFrom = serde_json::from_value(from).unwrap();
        resolve(&mut spec, &from, "sha256:1")?;
        Ok(serde_json::to_value(&spec.addons[0].versions[0].source).unwrap())
    }

    #[test]
    fn a_manifest_beside_a_catalogue_is_of_the_same_revision() {
        let auth = json!({"secretRef": {"name": "s"}});
        let git = json!({"git": {"remote": "https://h/r", "ref": {"branch": "main"}, "path": "c/all.yaml", "auth": auth}});
        let at = json!({"commit": "sha256:1"});
        for (from, manifest, expected) in [
            (
                git.clone(),
                "web/1.yaml",
                json!({"git": {"remote": "https://h/r", "ref": at, "path": "c/web/1.yaml", "auth": auth}}),
            ),
            (
                git.clone(),
                "../web.yaml",
                json!({"git": {"remote": "https://h/r", "ref": at, "path": "web.yaml", "auth": auth}}),
            ),
            (
                git.clone(),
                "https://h/web.yaml",
                json!({"url": {"manifest": "https://h/web.yaml"}}),
            ),
            (
                json!({"docker": {"image": "h:5000/c:1", "path": "all.yaml"}}),
                "web.yaml",
                json!({"docker": {"image": "h:5000/c@sha256:1", "path": "web.yaml"}}),
            ),
            (
                json!({"docker": {"image": "h:5000/c"}}),
                "web.yaml",
                json!({"docker": {"image": "h:5000/c@sha256:1", "path": "web.yaml"}}),
            ),
            (
                json!({"url": {"manifest": "https://h/all.yaml"}}),
                "web.yaml",
                json!({"url": {"manifest": "web.yaml"}}),
            ),
        ] {
            assert_eq!(resolved(from, manifest), Ok(expected), "{manifest}");
        }
        assert_eq!(
            resolved(git, "../../web.yaml"),
            Err(RelativeManifestError::Outside {
                place: "web 1.0.0".to_owned(),
                manifest: "../../web.yaml".to_owned(),
            })
        );
    }
}
