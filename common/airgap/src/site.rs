//! The names at the site of everything in an archive, and the catalogue of the site.
//!
//! The names are those that `--registry` makes from the names in catalogues and objects, so an installation finds everything by the same
//! rewrite as for any mirror. A source that is in no registry (a manifest by URL, a folder in git, a chart of a Helm repository) becomes an
//! artifact below [`HOST`]. This host does not exist; only the rewrite turns the name into a real location.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, DockerSource, MergedFrom, Source, SourceKind,
};
use common::api::names::installation_name;
use common::catalogue::{CatalogueEntry, Origin};
use common::image::{Image, ImageError};
use common::oci::layout::NamedManifest;
use common::registry::Registry;

/// The host of artifacts that exist only in archives.
pub const HOST: &str = "export.kubectl-addons.dev";
/// The repository of catalogues.
const CATALOGUES: &str = "kubectl-addons/catalogue";
/// The tag of images that name neither tag nor digest, as in every container runtime.
const DEFAULT_TAG: &str = "latest";

/// Why an image of an archive has no name at the site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Two images would have the same name.
    #[error(
        "{first} and {second} are different images, and both would be {name}: export the add-ons that need them to archives of \
         their own, and import those to different paths"
    )]
    Same {
        /// The name at the site.
        name: String,
        /// The first image.
        first: String,
        /// The second image.
        second: String,
    },
    /// The registry does not accept the name.
    #[error(
        "{image} cannot be imported: {why}; import the archive to a shorter path than {registry}"
    )]
    Invalid {
        /// The name in the archive.
        image: String,
        /// The registry of the site.
        registry: String,
        /// What is wrong with the name in that registry.
        why: ImageError,
    },
}

/// An image of an archive and its name at the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteTarget<'a> {
    /// The image as the archive names it.
    pub named: &'a NamedManifest,
    /// Its name at the site.
    pub image: Image,
}

/// Returns the names at the site.
///
/// # Errors
/// [`NameError`]. An image that was skipped would be missing when an add-on is installed.
pub fn list_targets<'a>(
    named: &'a [NamedManifest],
    registry: &Registry,
) -> Result<Vec<SiteTarget<'a>>, NameError> {
    let mut known = BTreeMap::<String, &NamedManifest>::new();
    let mut targets = Vec::with_capacity(named.len());
    for one in named {
        let image = site_image(&one.image, registry).map_err(|why| NameError::Invalid {
            image: one.image.to_string(),
            registry: registry.to_string(),
            why,
        })?;
        let name = image.to_string();
        match known.get(&name) {
            Some(first) if first.descriptor.digest != one.descriptor.digest => {
                return Err(NameError::Same {
                    name,
                    first: first.image.to_string(),
                    second: one.image.to_string(),
                });
            }
            Some(_) => continue,
            None => drop(known.insert(name, one)),
        }
        targets.push(SiteTarget { named: one, image });
    }
    Ok(targets)
}

/// Returns the name of an image at the site.
///
/// # Errors
/// [`ImageError`] if the path is too long.
pub fn site_image(image: &Image, registry: &Registry) -> Result<Image, ImageError> {
    Image::parse(&registry.rewrite(&image.to_string())?)
}

/// Parses an image as container runtimes pull it: the default tag is `latest`, and a digest takes precedence over a tag.
///
/// # Errors
/// [`ImageError`].
pub fn parse_pulled_image(text: &str) -> Result<Image, ImageError> {
    let mut image = Image::parse(text)?;
    match (&image.digest, &image.tag) {
        (Some(_), _) => image.tag = None,
        (None, None) => image.tag = Some(DEFAULT_TAG.to_owned()),
        (None, Some(_)) => {}
    }
    Ok(image)
}

/// Returns the name of the artifact with the files of an add-on, by its digest.
#[must_use]
pub fn package_image(addon: &str, digest: &str) -> Image {
    Image {
        host: HOST.to_owned(),
        repository: format!("kubectl-addons/packages/{}", installation_name(addon)),
        tag: None,
        digest: Some(digest.to_owned()),
    }
}

/// Returns the name of the catalogue of an archive, derived from the file name of the archive.
#[must_use]
pub fn catalogue_name(file: &str) -> Image {
    let stem = file.strip_suffix(".tar").unwrap_or(file);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let tag: String = stem.chars().filter(|c| allowed(*c)).take(100).collect();
    let tag = tag.trim_start_matches(['.', '-']);
    Image {
        host: HOST.to_owned(),
        repository: CATALOGUES.to_owned(),
        tag: Some(if tag.is_empty() { DEFAULT_TAG } else { tag }.to_owned()),
        digest: None,
    }
}

/// Returns whether this is the name of an archive's catalogue.
#[must_use]
pub fn is_catalogue(image: &Image) -> bool {
    image.host == HOST && image.repository == CATALOGUES
}

/// Returns the source for an artifact with the files of an add-on; `file` if it is a single file.
#[must_use]
pub fn package_source(image: &Image, file: Option<&str>) -> Source {
    Source {
        docker: Some(DockerSource {
            image: image.to_string(),
            path: file.map(str::to_owned),
            ..DockerSource::default()
        }),
        ..Source::default()
    }
}

/// Returns a registry source as the site uses it: without its credentials Secret, which does not exist there, and at the version in the
/// archive.
#[must_use]
pub fn site_source(source: &Source, version: Option<&str>) -> Source {
    let mut kept = source.clone();
    if let Some(docker) = &mut kept.docker {
        (docker.auth, docker.plain_http) = (None, false);
    }
    if let Some(helm) = &mut kept.helm {
        (helm.auth, helm.plain_http) = (None, false);
        helm.version = version.map(str::to_owned).or(helm.version.take());
    }
    kept
}

/// Returns the image, or the chart at this version, of a source in a registry.
///
/// # Errors
/// [`ImageError`].
pub fn registry_image(source: &Source, version: &str) -> Result<Option<Image>, ImageError> {
    match source.kind() {
        Ok(SourceKind::Docker(docker)) => parse_pulled_image(docker.image.trim()).map(Some),
        Ok(SourceKind::Helm(helm)) => {
            let Some(path) = helm.url.strip_prefix("oci://") else {
                return Ok(None);
            };
            let (path, tag) = (path.trim_end_matches('/'), version.replace('+', "_"));
            let image = Image::parse(&format!("{path}/{}:{tag}", helm.chart))?;
            Ok(Some(Image {
                digest: helm.digest.clone(),
                ..image
            }))
        }
        _ => Ok(None),
    }
}

/// Returns whether the source is an artifact that exists only in an archive. Such artifacts are not signed: the site verifies their
/// `manifestHash` instead.
fn is_package(source: &Source) -> bool {
    let image = source.docker.as_ref().map(|docker| docker.image.as_str());
    image.is_some_and(|image| image.starts_with(&format!("{HOST}/")))
}

/// Returns the name of the catalogue of an entry; for an index, the name of its file.
fn origin_name(origin: &Origin) -> String {
    let location = match origin {
        Origin::Catalogue { name, .. } => return name.clone(),
        Origin::Index { location } | Origin::Installation { location } => location,
        Origin::Directory { path } => path,
    };
    let location = location.split(['?', '#']).next().unwrap_or_default();
    let name = location.trim_end_matches('/').rsplit('/').next();
    name.unwrap_or_default().to_owned()
}

/// Returns the catalogue of the site: the exported versions, each with its source at the site and the signature policy of its catalogue.
#[must_use]
pub fn site_catalogue(
    name: &str,
    entries: impl IntoIterator<Item = (CatalogueEntry, Source)>,
) -> AddonCatalogue {
    let mut addons = Vec::<Addon>::new();
    for (entry, source) in entries {
        let mut version = entry.version;
        version.merged_from = match is_package(&source) {
            true => None,
            false => entry.signature.map(|policy| MergedFrom {
                catalogue: origin_name(&entry.origin),
                registry: None,
                signature: Some(Arc::unwrap_or_clone(policy)),
            }),
        };
        version.source = source;
        version.deprecated = entry.deprecated;
        match addons.iter_mut().find(|addon| addon.name == entry.addon) {
            Some(addon) => addon.versions.push(version),
            None => addons.push(Addon {
                name: entry.addon,
                description: entry.description,
                support: entry.support,
                versions: vec![version],
                ..Addon::default()
            }),
        }
    }
    let spec = AddonCatalogueSpec {
        addons,
        ..AddonCatalogueSpec::default()
    };
    AddonCatalogue::new(name, spec)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use common::oci::manifest::{Descriptor, IMAGE};

    fn named(name: &str, digit: &str) -> NamedManifest {
        NamedManifest {
            image: parse_pulled_image(name).unwrap(),
            descriptor: Descriptor {
                media_type: IMAGE.to_owned(),
                digest: format!("sha256:{}", digit.repeat(64)),
                size: 1,
            },
        }
    }

    #[test]
    fn names_are_those_of_the_rewrite() {
        let registry: Registry = "mirror.example.org/site".parse().unwrap();
        let digest = format!("sha256:{}", "a".repeat(64));
        for (name, expected) in [
            ("nginx", "mirror.example.org/site/library/nginx:latest"),
            ("quay.io/a/b:1", "mirror.example.org/site/a/b:1"),
            (
                &format!("quay.io/a/b:1@{digest}"),
                &format!("mirror.example.org/site/a/b@{digest}"),
            ),
        ] {
            let image = parse_pulled_image(name).unwrap();
            assert_eq!(site_image(&image, &registry).unwrap().to_string(), expected);
        }
        let catalogue = site_image(&catalogue_name("my site.tar"), &registry).unwrap();
        let expected = "mirror.example.org/site/kubectl-addons/catalogue:mysite";
        assert_eq!(catalogue.to_string(), expected);
        assert_eq!(catalogue_name(".tar").tag.as_deref(), Some("latest"));
    }

    #[test]
    fn one_name_is_one_image() {
        let registry: Registry = "m.example".parse().unwrap();
        let same = [named("quay.io/a/b:1", "a"), named("ghcr.io/a/b:1", "a")];
        assert_eq!(list_targets(&same, &registry).unwrap().len(), 1);
        let other = [named("quay.io/a/b:1", "a"), named("ghcr.io/a/b:1", "b")];
        let error = list_targets(&other, &registry).unwrap_err();
        let expected = NameError::Same {
            name: "m.example/a/b:1".to_owned(),
            first: "quay.io/a/b:1".to_owned(),
            second: "ghcr.io/a/b:1".to_owned(),
        };
        assert_eq!(error, expected);
    }

    #[test]
    fn nothing_is_left_out() {
        let long = format!("quay.io/{}:1", "a".repeat(251));
        let named = [named("quay.io/a/b:1", "a"), named(&long, "b")];
        let registry: Registry = "m.example/sit".parse().unwrap();
        assert_eq!(list_targets(&named, &registry).unwrap().len(), 2);
        let registry: Registry = "m.example/site".parse().unwrap();
        let error = list_targets(&named, &registry).unwrap_err().to_string();
        assert!(error.starts_with(&long), "{error}");
        let expected = "its repository has more than 255 characters; import the archive to a shorter path than m.example/site";
        assert!(error.ends_with(expected), "{error}");
    }

    #[test]
    fn sources_of_the_site() {
        let secret = json!({"secretRef": {"name": "s"}});
        for (source, version, image, kept_as) in [
            (
                json!({"docker": {"image": "quay.io/a/b", "path": "x", "auth": secret, "plainHTTP": true}}),
                None,
                Some("quay.io/a/b:latest"),
                json!({"docker": {"image": "quay.io/a/b", "path": "x"}}),
            ),
            (
                json!({"helm": {"url": "oci://ghcr.io/org/", "chart": "c", "version": ">1", "auth": secret}}),
                Some("1.2.0+b"),
                Some("ghcr.io/org/c:1.2.0_b"),
                json!({"helm": {"url": "oci://ghcr.io/org/", "chart": "c", "version": "1.2.0+b"}}),
            ),
            (
                json!({"inline": {"manifest": "a"}}),
                None,
                None,
                json!({"inline": {"manifest": "a"}}),
            ),
        ] {
            let source: Source = serde_json::from_value(source).unwrap();
            let found = registry_image(&source, version.unwrap_or_default()).unwrap();
            assert_eq!(found.map(|it| it.to_string()).as_deref(), image);
            let kept = serde_json::to_value(site_source(&source, version)).unwrap();
            assert_eq!(kept, kept_as);
        }
    }
}
