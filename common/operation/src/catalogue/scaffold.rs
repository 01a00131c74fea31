//! Creates the catalogue entry for a chart, a folder or a manifest.

mod folders;
mod location;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use addons_render::chart::ChartDescription;
use addons_render::package::Package;
use addons_render::text::{RenderedText, invalid_templates, values_file};
use addons_sources::archive;
use addons_sources::registry::chart;
use addons_sources::url::{self, UrlError};
use addons_sources::{FetchedPackage, SourceError};
use common::api::catalogue::{
    AddonTemplate, AddonVersion, CatalogueClass, Constraints, HelmSource, Method, Source, UrlSource,
};
use common::api::installation::AddonFrom;
use common::api::names::API_VERSION;
use common::catalogue::author::{Author, Typed};
use common::catalogue::{CatalogueEntry, Origin, channel};
use common::manifest::parse::{ManifestError, ManifestOptions};
use serde_json::Value;

use crate::context::Context;
use crate::error::OperationError;
use crate::fetch::{self, VerifiedPackage};
use crate::render;

pub use text::{ObjectFacts, Scaffold, catalogue_text};

use location::read_location;
use text::read_object_facts;

/// The version of a chart in git that gets its own at a release.
const PLACEHOLDER: &str = "0.0.0";

/// Why there is no entry.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The source cannot be read.
    #[error(transparent)]
    Operation(Box<OperationError>),
    /// The source is neither a chart nor manifests nor templates.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Templates are not valid.
    #[error("{0}")]
    Template(String),
    /// The version is not known.
    #[error(
        "{from}: its version is not known: neither Chart.yaml nor the label app.kubernetes.io/version nor the name of the \
         file or a folder has it"
    )]
    NoVersion {
        /// The source, as given.
        from: String,
    },
    /// The source is a catalogue or an index, and not an add-on.
    #[error("{from}: it is a catalogue, which lists add-ons")]
    Catalogue {
        /// The source, as given.
        from: String,
    },
    /// The source has no object.
    #[error("{from}: it holds no object")]
    Empty {
        /// The source, as given.
        from: String,
    },
}

impl From<OperationError> for ScaffoldError {
    fn from(error: OperationError) -> Self {
        Self::Operation(Box::new(error))
    }
}

impl From<UrlError> for ScaffoldError {
    fn from(error: UrlError) -> Self {
        OperationError::from(error).into()
    }
}

impl From<SourceError> for ScaffoldError {
    fn from(error: SourceError) -> Self {
        OperationError::from(error).into()
    }
}

/// The source to list in a catalogue.
#[derive(Clone, Copy, Debug)]
pub struct ScaffoldRequest<'a> {
    /// A path or a URL, which the catalogue names as given; `oci://HOST/PATH/CHART:VERSION` is a chart in a registry.
    pub from: &'a Typed,
    /// The name of a chart in the Helm repository at `from`.
    pub chart: Option<&'a str>,
    /// The version to write instead of the one found; for a chart in a repository, the version to take.
    pub version: Option<&'a str>,
    /// Whether the registry speaks HTTP without TLS.
    pub plain_http: bool,
}

impl ScaffoldRequest<'_> {
    /// Returns the chart in a registry or repository, or `None` for any other source.
    fn helm_source(&self) -> Option<HelmSource> {
        let source = |url: &str, chart: &str, version: Option<&str>| HelmSource {
            url: url.to_owned(),
            chart: chart.to_owned(),
            // Tags cannot contain the + of a version.
            version: version.map(|version| version.replace('_', "+")),
            plain_http: self.plain_http,
            ..HelmSource::default()
        };
        if let Some(chart) = self.chart {
            return Some(source(self.from, chart, self.version));
        }
        let path = self.from.strip_prefix("oci://")?;
        let (parent, last) = path.rsplit_once('/').unwrap_or((path, ""));
        let (last, digest) = match last.split_once('@') {
            Some((last, digest)) => (last, Some(digest)),
            None => (last, None),
        };
        let (chart, tag) = match last.split_once(':') {
            Some((chart, tag)) => (chart, Some(tag)),
            None => (last, None),
        };
        let mut chart = source(&format!("oci://{parent}"), chart, self.version.or(tag));
        chart.digest = digest.map(str::to_owned);
        Some(chart)
    }

    /// Returns the source as an installation would name it, before anything is read.
    pub(crate) fn unread(&self) -> AddonFrom {
        let helm = self.helm_source();
        AddonFrom {
            url: match helm {
                Some(_) => None,
                None => url_source(self.from).url,
            },
            helm,
            ..AddonFrom::default()
        }
    }
}

/// Returns the packages to list for a location: those in a local folder that holds several charts or versions, else the location itself.
#[must_use]
pub fn list_packages(from: &Typed) -> Vec<Typed> {
    let path = Path::new(&**from);
    let is_local = !from.contains("://") && path.is_dir();
    match folders::list_packages(path).filter(|_| is_local) {
        Some(found) => found.iter().map(|one| from.join(one)).collect(),
        None => vec![from.clone()],
    }
}

/// Returns the entry for a source, to list in a catalogue.
///
/// # Errors
/// [`ScaffoldError`].
pub async fn scaffold_entry(
    ctx: &Context,
    wanted: &ScaffoldRequest<'_>,
) -> Result<Scaffold, ScaffoldError> {
    let found = read_source(ctx, wanted).await?;
    if found.version.version.is_empty() {
        let from = wanted.from.to_string();
        return Err(ScaffoldError::NoVersion { from });
    }
    Ok(found)
}

/// Reads a source, and returns its entry with the hash of the content. The version is empty if neither the request nor the source says one.
///
/// # Errors
/// [`ScaffoldError`].
pub(crate) async fn read_source(
    ctx: &Context,
    wanted: &ScaffoldRequest<'_>,
) -> Result<Scaffold, ScaffoldError> {
    if let Some(source) = wanted.helm_source() {
        return scaffold_chart(ctx, source, wanted.from).await;
    }
    let from = wanted.from;
    let location = url::absolute_exact(from)?;
    let reach = ctx.reach_of_typed(from);
    let access = ctx.access(&reach);
    let fetched = match url::read_local(&location, &access).await? {
        Some(folder) => folder,
        None => FetchedPackage::from(url::fetch(&location, &access).await?),
    };
    let files = archive::unpack_package(fetched.package).map_err(SourceError::Archive)?;
    let about = read_package(ctx, from, &location, files)?;
    let found = wanted.version.map(str::to_owned).or(about.version);
    let mut version = AddonVersion {
        version: found.unwrap_or_default(),
        default_namespace: about.objects.namespace,
        constraints: about.constraints,
        template: AddonTemplate {
            method: about.method,
            ..AddonTemplate::default()
        },
        source: url_source(&location),
        ..AddonVersion::default()
    };
    let verified = fetch_verified(ctx, &about.addon, &version, from).await?;
    version.manifest_hash = Some(verified.manifest_hash);
    version.source = url_source(from);
    Ok(Scaffold {
        addon: about.addon,
        about: about.chart,
        version,
        images: about.objects.images,
        folder_version: about.folder_version,
    })
}

/// Returns the entry for a chart in a registry or repository, in the version that was found there.
async fn scaffold_chart(
    ctx: &Context,
    mut source: HelmSource,
    from: &Typed,
) -> Result<Scaffold, ScaffoldError> {
    // What the tag names now counts, not what it named when it was read last.
    chart::forget(&source, &ctx.access(&ctx.reach_of_typed(from))).await;
    let of = |helm: &HelmSource| Source {
        helm: Some(helm.clone()),
        ..Source::default()
    };
    let mut version = AddonVersion {
        template: AddonTemplate {
            method: Method::Helm,
            ..AddonTemplate::default()
        },
        source: of(&source),
        ..AddonVersion::default()
    };
    let verified = fetch_verified(ctx, &source.chart, &version, from).await?;
    if source.url.starts_with("oci://") {
        let resolved = verified.fetched.resolved.as_deref();
        let digest = resolved.and_then(|resolved| resolved.split_once('@'));
        source.digest = digest.map(|(_, digest)| digest.to_owned());
    }
    let files = archive::unpack_package(verified.fetched.package).map_err(SourceError::Archive)?;
    let chart = addons_helm::read_chart(&files).map_err(OperationError::from)?;
    source.version = Some(chart.version.clone());
    version.source = of(&source);
    version.constraints = chart.constraints();
    version.version = chart.version;
    version.manifest_hash = Some(verified.manifest_hash);
    Ok(Scaffold {
        addon: chart.name,
        about: chart.about,
        version,
        images: BTreeSet::new(),
        folder_version: None,
    })
}

/// Replaces the versions of charts that say nothing by those of their folders `NAME/VERSION`: 0.0.0, and one version for several charts of an
/// add-on, as projects have them in git before a release. Returns the add-ons whose versions were replaced.
pub fn take_folder_versions(versions: &mut [Scaffold]) -> BTreeSet<String> {
    let mut counts = BTreeMap::<_, usize>::new();
    for one in versions.iter() {
        let key = (one.addon.clone(), one.version.version.clone());
        *counts.entry(key).or_default() += 1;
    }
    let mut replaced = BTreeSet::new();
    for one in versions {
        let key = (one.addon.clone(), one.version.version.clone());
        let is_shared = counts.get(&key).is_some_and(|count| *count > 1);
        if !is_shared && one.version.version.trim_start_matches('v') != PLACEHOLDER {
            continue;
        }
        if let Some(version) = one.folder_version.clone() {
            one.version.version = version;
            replaced.insert(key.0);
        }
    }
    replaced
}

fn is_catalogue(object: &Value) -> bool {
    object["kind"] == "AddonCatalogue" && object["apiVersion"] == API_VERSION
}

fn url_source(manifest: &str) -> Source {
    Source {
        url: Some(UrlSource {
            manifest: manifest.to_owned(),
            auth: None,
        }),
        ..Source::default()
    }
}

/// What the files of a package say about the add-on.
struct PackageFacts {
    addon: String,
    version: Option<String>,
    method: Method,
    constraints: Constraints,
    /// What the chart says, if it is one.
    chart: ChartDescription,
    /// What its objects say.
    objects: ObjectFacts,
    /// The version that folders `NAME/VERSION` say.
    folder_version: Option<String>,
}

fn read_package(
    ctx: &Context,
    from: &str,
    location: &str,
    files: Package,
) -> Result<PackageFacts, ScaffoldError> {
    let place = read_location(from, location);
    let folder_version = place.version.clone().filter(|_| place.is_by_folders);
    if files.get("Chart.yaml").is_some() {
        let chart = addons_helm::read_chart(&files).map_err(OperationError::from)?;
        return Ok(PackageFacts {
            constraints: chart.constraints(),
            addon: chart.name,
            version: Some(chart.version),
            method: Method::Helm,
            chart: chart.about,
            objects: ObjectFacts::default(),
            folder_version,
        });
    }
    let is_template = values_file(&files).is_some();
    let options = ManifestOptions {
        duplicate_keys: ctx.duplicate_keys(),
        ..ManifestOptions::default()
    };
    let parsed = RenderedText::from_manifests(files.clone()).parse_objects(from, &options);
    let has_actions = || {
        let mut files = files.files().iter();
        files.any(|file| file.bytes.windows(2).any(|pair| pair == b"{{"))
    };
    match parsed {
        Ok(parsed) if !is_template => {
            if parsed.manifests.is_empty() {
                let from = from.to_owned();
                return Err(ScaffoldError::Empty { from });
            }
            let mut kinds = parsed.manifests.iter();
            if kinds.any(|one| channel::is_index(&one.object) || is_catalogue(&one.object)) {
                let from = from.to_owned();
                return Err(ScaffoldError::Catalogue { from });
            }
            let told = read_object_facts(&parsed.manifests);
            let is_by_folders = place.is_by_folders;
            let (name, version) = (told.name.clone(), told.version.clone());
            Ok(PackageFacts {
                addon: name.filter(|_| !is_by_folders).unwrap_or(place.name),
                version: version.filter(|_| !is_by_folders).or(place.version),
                method: Method::Manifest,
                constraints: Constraints::default(),
                chart: ChartDescription::default(),
                objects: told,
                folder_version,
            })
        }
        Err(error) if !is_template && !has_actions() => Err(error.into()),
        _ => match invalid_templates(&files, from).into_iter().next() {
            Some((place, problem)) => Err(ScaffoldError::Template(format!("{place}: {problem}"))),
            None => Ok(PackageFacts {
                addon: place.name,
                version: place.version,
                method: Method::GoTemplate,
                constraints: Constraints::default(),
                chart: ChartDescription::default(),
                objects: ObjectFacts::default(),
                folder_version,
            }),
        },
    }
}

/// Fetches the package, with the hash that an installation will verify.
async fn fetch_verified(
    ctx: &Context,
    addon: &str,
    version: &AddonVersion,
    from: &Typed,
) -> Result<VerifiedPackage, OperationError> {
    let entry = CatalogueEntry {
        addon: addon.to_owned(),
        description: None,
        support: None,
        class: CatalogueClass::default(),
        deprecated: None,
        version: version.clone(),
        origin: Arc::new(Origin::Index {
            location: "file:///".to_owned(),
        }),
        base_url: None,
        registry: None,
        signature: None,
        place: String::new(),
        author: Author::Typed(from.clone()),
    };
    match fetch::package(ctx, &render::resolve_uninstalled(ctx, &entry)).await {
        Err(OperationError::Within { error, .. }) => Err(*error),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_versions_of_charts_that_have_none_of_their_own() {
        let chart = |addon: &str, version: &str, folder: Option<&str>| Scaffold {
            addon: addon.to_owned(),
            version: AddonVersion {
                version: version.to_owned(),
                ..AddonVersion::default()
            },
            folder_version: folder.map(str::to_owned),
            ..Scaffold::default()
        };
        let mut versions = [
            chart("feature", "0.2.1", Some("v0.18.3")),
            chart("feature", "0.2.1", Some("v0.19.0")),
            chart("cert", "v0.0.0", Some("v1.21.1")),
            chart("web", "1.2.0", Some("v9.0.0")),
            chart("db", "0.0.0", None),
        ];
        let replaced = take_folder_versions(&mut versions);
        let found = versions.each_ref().map(|one| one.version.version.as_str());
        assert_eq!(found, ["v0.18.3", "v0.19.0", "v1.21.1", "1.2.0", "0.0.0"]);
        assert_eq!(replaced, ["cert", "feature"].map(str::to_owned).into());
    }

    #[test]
    fn a_chart_of_a_registry_is_named_as_helm_names_it() {
        let helm = |from, chart, version| {
            let wanted = ScaffoldRequest {
                from: &Typed::on_command_line(from),
                chart,
                version,
                plain_http: false,
            };
            let found = wanted.helm_source()?;
            Some((found.url, found.chart, found.version.unwrap_or_default()))
        };
        let owned = |url: &str, chart: &str, version: &str| {
            Some((url.to_owned(), chart.to_owned(), version.to_owned()))
        };
        for (from, chart, version, expected) in [
            (
                "oci://h:5000/a/web:1.2.3",
                None,
                None,
                owned("oci://h:5000/a", "web", "1.2.3"),
            ),
            (
                "oci://h/web:1.0_b",
                None,
                None,
                owned("oci://h", "web", "1.0+b"),
            ),
            (
                "oci://h/web",
                None,
                Some("2.0.0"),
                owned("oci://h", "web", "2.0.0"),
            ),
            ("oci://h:5000", None, None, owned("oci://h:5000", "", "")),
            (
                "https://h/charts",
                Some("web"),
                None,
                owned("https://h/charts", "web", ""),
            ),
            ("https://h/web-1.0.0.tgz", None, None, None),
            ("charts/web", None, None, None),
        ] {
            assert_eq!(helm(from, chart, version), expected, "{from}");
        }
    }
}
