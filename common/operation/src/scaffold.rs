//! From a chart, a folder or a manifest to the entry of a catalogue that lists it.

mod text;

use std::sync::Arc;

use addons_sources::archive;
use addons_sources::url::{self, UrlError};
use addons_sources::{Fetched, SourceError};
use common::api::catalogue::{AddonVersion, CatalogueClass, Method, Source, Template, UrlSource};
use common::catalogue::{Entry, Origin};
use common::manifest::parse::{ManifestError, Options};
use common::render::package::Package;
use common::render::text::{Text, invalid_templates, values_file};

use crate::context::Context;
use crate::error::OperationError;
use crate::fetch;
use crate::render;

pub use text::{Scaffold, Told, text};

use text::{named, told};

/// Why there is no entry.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// It cannot be read.
    #[error(transparent)]
    Operation(Box<OperationError>),
    /// Neither a chart nor manifests nor templates.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Templates that are not valid.
    #[error("{0}")]
    Template(String),
    /// Nothing says which version it is.
    #[error(
        "{from}: its version is not known: neither Chart.yaml nor the label app.kubernetes.io/version nor the name of the \
         file has it; give it with --version"
    )]
    NoVersion {
        /// As given.
        from: String,
    },
    /// Nothing is in it.
    #[error("{from}: it holds no object")]
    Empty {
        /// As given.
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

/// The entry of what lies at `from`: a path or a URL, which the catalogue names as it is given. `version`: instead of the one that
/// is found there.
///
/// # Errors
/// [`ScaffoldError`].
pub async fn entry(
    ctx: &Context,
    from: &str,
    version: Option<&str>,
) -> Result<Scaffold, ScaffoldError> {
    let location = url::absolute_of(from)?;
    let access = ctx.access();
    let fetched = match url::folder(&location, &access)? {
        Some(folder) => folder,
        None => Fetched::from(url::fetch(&location, &access).await?),
    };
    let files = archive::files(fetched.package).map_err(SourceError::Archive)?;
    let about = about(ctx, from, files)?;
    let found = version.map(str::to_owned).or(about.version);
    let Some(version) = found else {
        let from = from.to_owned();
        return Err(ScaffoldError::NoVersion { from });
    };
    let mut version = AddonVersion {
        version,
        default_namespace: about.told.namespace,
        template: Template {
            method: about.method,
            ..Template::default()
        },
        source: source(&location),
        ..AddonVersion::default()
    };
    version.manifest_hash = Some(hash(ctx, &about.addon, &version).await?);
    version.source = source(from);
    Ok(Scaffold {
        addon: about.addon,
        version,
        images: about.told.images,
    })
}

fn source(manifest: &str) -> Source {
    Source {
        url: Some(UrlSource {
            manifest: manifest.to_owned(),
            auth: None,
        }),
        ..Source::default()
    }
}

/// What a package says of itself.
struct About {
    addon: String,
    version: Option<String>,
    method: Method,
    /// What its objects say.
    told: Told,
}

fn about(ctx: &Context, from: &str, files: Package) -> Result<About, ScaffoldError> {
    if files.get("Chart.yaml").is_some() {
        let chart = addons_helm::chart(&files).map_err(OperationError::from)?;
        return Ok(About {
            addon: chart.name,
            version: Some(chart.version),
            method: Method::Helm,
            told: Told::default(),
        });
    }
    let (stem, of_name) = named(from);
    let of_name = of_name.map(str::to_owned);
    let is_template = values_file(&files).is_some();
    let options = Options {
        duplicate_keys: ctx.duplicate_keys(),
        ..Options::default()
    };
    let parsed = Text::plain(files.clone()).objects(from, &options);
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
            let told = told(&parsed.manifests);
            Ok(About {
                addon: told.name.clone().unwrap_or_else(|| stem.to_owned()),
                version: told.version.clone().or(of_name),
                method: Method::Manifest,
                told,
            })
        }
        Err(error) if !is_template && !has_actions() => Err(error.into()),
        _ => match invalid_templates(&files, from).into_iter().next() {
            Some((place, problem)) => Err(ScaffoldError::Template(format!("{place}: {problem}"))),
            None => Ok(About {
                addon: stem.to_owned(),
                version: of_name,
                method: Method::GoTemplate,
                told: Told::default(),
            }),
        },
    }
}

/// The hash that an installation will verify.
async fn hash(
    ctx: &Context,
    addon: &str,
    version: &AddonVersion,
) -> Result<String, OperationError> {
    let entry = Entry {
        addon: addon.to_owned(),
        description: None,
        support: None,
        class: CatalogueClass::default(),
        version: version.clone(),
        origin: Arc::new(Origin::Index {
            location: "file:///".to_owned(),
        }),
        base_url: None,
        registry: None,
        signature: None,
        place: String::new(),
    };
    let package = fetch::package(ctx, &render::uninstalled(ctx, &entry)).await;
    match package {
        Ok(verified) => Ok(verified.manifest_hash),
        Err(OperationError::Within { error, .. }) => Err(*error),
        Err(error) => Err(error),
    }
}
