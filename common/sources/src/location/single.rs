//! Reads a local folder or an archive as a catalogue of a single add-on: a chart or manifests.

use addons_render::chart::{Chart, ChartError};
use addons_render::package::Package;
use common::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, AddonTemplate, AddonVersion, Method, Source,
    UrlSource,
};
use common::manifest::is_manifest_file;

use super::{CatalogueError, LocatedCatalogue};
use crate::archive::{self, ArchiveError};
use crate::kustomize;
use crate::url::{self, UrlError};
use crate::{FetchedPackage, SourceAccess};

/// Why a folder or an archive is not an add-on.
#[derive(Debug, thiserror::Error)]
pub enum SingleAddonError {
    /// The location cannot be read.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The archive cannot be read.
    #[error("archive: {0}")]
    Archive(ArchiveError),
    /// The chart cannot be used.
    #[error("chart: {0}")]
    Chart(ChartError),
    /// It is a kustomization, which is not built here.
    #[error(
        "it is a kustomization, which only a command in a terminal builds, of a folder of its machine: write what \
         `kubectl kustomize` prints into a file, and name that"
    )]
    Kustomization,
    /// It has neither a catalogue nor a chart nor manifests.
    #[error(
        "it has neither catalogue.yaml nor addons.yaml, is not a chart, and has no manifests (*.yaml, *.yml, *.json)"
    )]
    Nothing,
}

/// Reads the add-on at a location. Returns `None` if this is neither a local folder nor an archive.
///
/// A chart gets the name and version of its Chart.yaml. Manifests get the name of the folder or file, no
/// version, and the digest of their content, so that a change is an update.
pub(super) async fn read(
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<Option<LocatedCatalogue>, CatalogueError> {
    let failed = |source| CatalogueError::SingleAddon {
        location: location.to_owned(),
        source,
    };
    let package = match url::read_local(location, access).await {
        Ok(Some(folder)) => folder.package,
        Ok(None) if archive::is_archive(location) => {
            let fetched = url::fetch(location, access).await?;
            FetchedPackage::from(fetched).package
        }
        Ok(None) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    };
    let addon = addon(package, location).map_err(failed)?;
    let spec = AddonCatalogueSpec {
        addons: vec![addon],
        ..AddonCatalogueSpec::default()
    };
    let object = AddonCatalogue::new("", spec);
    Ok(Some(LocatedCatalogue::new(
        object,
        Vec::new(),
        location.to_owned(),
    )))
}

fn addon(package: Package, location: &str) -> Result<Addon, SingleAddonError> {
    let hash = package.digest();
    let files = archive::unpack_package(package).map_err(SingleAddonError::Archive)?;
    let has = |name: &&str| files.get(name).is_some();
    let mut version = AddonVersion {
        source: Source {
            url: Some(UrlSource {
                manifest: location.to_owned(),
                auth: None,
            }),
            ..Source::default()
        },
        ..AddonVersion::default()
    };
    let mut description = None;
    let name = if has(&"Chart.yaml") {
        let chart = Chart::read(&files).map_err(SingleAddonError::Chart)?;
        version.constraints = chart.constraints();
        version.version = chart.version;
        description = chart.about.description;
        version.template = AddonTemplate {
            method: Method::Helm,
            ..AddonTemplate::default()
        };
        chart.name
    } else if kustomize::NAMES.iter().any(has) {
        return Err(SingleAddonError::Kustomization);
    } else {
        if !files
            .files()
            .iter()
            .any(|file| is_manifest_file(&file.path))
        {
            return Err(SingleAddonError::Nothing);
        }
        version.manifest_hash = Some(hash);
        stem(location).to_owned()
    };
    Ok(Addon {
        name,
        description,
        versions: vec![version],
        ..Addon::default()
    })
}

/// Returns the last part of a location, without the extension of an archive.
fn stem(location: &str) -> &str {
    let mut parts = location.rsplit('/');
    let last = parts.find(|part| !part.is_empty()).unwrap_or("addon");
    let last = last.strip_suffix(".tgz").unwrap_or(last);
    last.strip_suffix(".tar.gz").unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use addons_render::package::PackagedFile;

    fn folder(files: &[(&str, &str)]) -> Package {
        let files = files.iter().map(|(path, text)| PackagedFile {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        });
        Package::from_folder(files.collect()).unwrap()
    }

    #[test]
    fn a_folder_is_a_chart_or_manifests() {
        let chart = folder(&[("Chart.yaml", "name: web\nversion: 1.10\n"), ("a.yaml", "")]);
        let addon = addon(chart, "file:///srv/charts/x/").unwrap();
        let version = &addon.versions[0];
        assert_eq!((&*addon.name, &*version.version), ("web", "1.10"));
        assert_eq!(version.template.method, Method::Helm);
        assert_eq!(version.manifest_hash, None);
    }

    #[test]
    fn manifests_have_the_name_of_their_folder_and_a_digest() {
        let manifests = folder(&[("a.yaml", ""), ("README.md", "")]);
        let hash = manifests.digest();
        let addon = addon(manifests, "file:///srv/web/").unwrap();
        assert_eq!(addon.name, "web");
        assert_eq!(addon.versions[0].manifest_hash, Some(hash));
        assert_eq!(stem("https://h/web-1.0.0.tgz"), "web-1.0.0");
    }

    #[test]
    fn anything_else_is_refused() {
        for (files, words) in [
            (&[("README.md", "")][..], "has neither"),
            (
                &[("kustomization.yaml", ""), ("a.yaml", "")],
                "kubectl kustomize",
            ),
            (&[("Chart.yaml", "name: web\n")], "version is missing"),
        ] {
            let error = addon(folder(files), "file:///web").unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
