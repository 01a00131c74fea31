//! The file that a catalogue comes from, and its content (semantics 1.4).
//!
//! A catalogue by reference holds the digest of its file instead of the entries; every command that chooses from it reads the file.

pub mod md5;

use std::sync::Arc;

use addons_sources::credentials::Credentials;
use addons_sources::location::{self, LocatedCatalogue};
use addons_sources::pinned::{self, PinnedFile};
use addons_sources::{Reach, SourceAccess};
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec, CatalogueFrom, SourceKind};
use common::catalogue::select::SelectionRules;
use common::catalogue::{merged, reference, relative, size};
use common::manifest::digest;

use crate::context::Context;
use crate::error::{CatalogueFileError, OperationError, within};
use crate::event::Finding;

/// A catalogue by reference as it would be stored, and the content of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferredCatalogue {
    /// The object.
    pub object: AddonCatalogue,
    /// The object with the content of the file.
    pub content: AddonCatalogue,
}

/// Converts a catalogue that names its file into one by reference.
///
/// # Errors
/// The catalogue names no file, or the file cannot be read.
pub async fn make_reference(
    ctx: &Context,
    known: &AddonCatalogue,
) -> Result<ReferredCatalogue, OperationError> {
    let from = named_file(known)?;
    let name = known.metadata.name.as_deref().unwrap_or_default();
    let place = || format!("catalogue {name}");
    let file = within(fetch_file(ctx, known, from).await, place)?;
    let (spec, content) = within(to_reference(ctx, known, from, file), place)?;
    let of_spec = |spec| AddonCatalogue {
        spec,
        ..known.clone()
    };
    Ok(ReferredCatalogue {
        object: of_spec(spec),
        content: of_spec(content),
    })
}

/// Returns the file that a catalogue names.
///
/// # Errors
/// The catalogue names no file, or it cannot be read: then only the digest of its file was.
pub fn named_file(known: &AddonCatalogue) -> Result<&CatalogueFrom, CatalogueFileError> {
    let name = known.metadata.name.clone().unwrap_or_default();
    match (&known.spec.unreadable, &known.spec.from) {
        (Some(unreadable), _) => Err(CatalogueFileError::unreadable(name, unreadable)),
        (None, None) => Err(CatalogueFileError::NoFrom { name }),
        (None, Some(from)) => Ok(from),
    }
}

/// Checks that a catalogue fits into an object.
///
/// # Errors
/// [`CatalogueFileError::TooLarge`].
pub fn check_size(name: &str, spec: &AddonCatalogueSpec) -> Result<(), CatalogueFileError> {
    size::check(spec).map_err(|error| CatalogueFileError::TooLarge {
        name: name.to_owned(),
        error,
    })
}

/// Reads the file in its current state, with the credentials that the catalogue names.
///
/// # Errors
/// The file cannot be read.
pub async fn fetch_file(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
) -> Result<PinnedFile, OperationError> {
    let credentials = credentials(ctx, known, from).await?;
    let reach = Reach::cluster();
    let access = access(ctx, credentials.as_deref(), &reach);
    Ok(pinned::fetch(&from.to_source(), &access).await?)
}

/// Returns the spec of a catalogue by reference with the content of its file. The file must have the digest that the object names, and
/// add-ons with the names in the object.
pub(crate) async fn fetch_content(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
    digest: &str,
) -> Result<AddonCatalogueSpec, OperationError> {
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
    let credentials = credentials(ctx, known, from).await?;
    let reach = Reach::cluster();
    let access = access(ctx, credentials.as_deref(), &reach);
    let file = pinned::fetch_with_digest(&from.to_pinned_source(), digest, &access).await?;
    // The warnings were shown when the catalogue was added.
    let (spec, _) = merge_content(ctx.settings().rules, known, from, file)?;
    reference::check(&known.spec, &spec).map_err(CatalogueFileError::from)?;
    Ok(spec)
}

/// Returns the spec by reference, and the content of the file.
///
/// # Errors
/// The file has no such catalogue, or it cannot be read.
pub fn to_reference(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
    file: PinnedFile,
) -> Result<(AddonCatalogueSpec, AddonCatalogueSpec), OperationError> {
    let (digest, resolved) = (digest::sha256(&file.bytes), file.resolved.clone());
    let content = read_content(ctx, known, from, file)?;
    Ok((
        reference::to_reference(&content, &digest, resolved),
        content,
    ))
}

/// Returns the content of the file, and reports its warnings as findings.
///
/// # Errors
/// The file has no such catalogue, or it cannot be read.
pub fn read_content(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
    file: PinnedFile,
) -> Result<AddonCatalogueSpec, OperationError> {
    let (spec, warnings) = merge_content(ctx.settings().rules, known, from, file)?;
    for warning in warnings {
        ctx.report_finding(Finding::Index(warning));
    }
    Ok(spec)
}

/// Returns the commit, the digest of the image, or the sha256 of the file.
#[must_use]
pub fn revision(file: &PinnedFile) -> String {
    match &file.resolved {
        Some(resolved) => resolved.clone(),
        None => digest::sha256(&file.bytes),
    }
}

/// Returns the spec for the catalogue with the content of the file, and warnings.
fn merge_content(
    rules: SelectionRules,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
    file: PinnedFile,
) -> Result<(AddonCatalogueSpec, Vec<String>), OperationError> {
    let revision = revision(&file);
    // The base of a file read by URL is the requested URL, not the target of a redirect, which may be another host tomorrow.
    let location = match &from.url {
        Some(url) => url.manifest.clone(),
        None => file.location,
    };
    let mut one = find_catalogue(&file.bytes, &location, known)?;
    let mut warnings = md5::remove_hashes(rules, &mut one);
    warnings.append(&mut one.warnings);
    let mut spec = one.object.spec;
    if from.url.is_none() && spec.base_url.as_ref() == Some(&location) {
        spec.base_url = None;
    }
    relative::resolve(&mut spec, from, &revision).map_err(CatalogueFileError::from)?;
    let spec = AddonCatalogueSpec {
        addons: spec.addons,
        base_url: spec.base_url,
        from: Some(CatalogueFrom {
            digest: None,
            revision: None,
            ..from.clone()
        }),
        ..known.spec.clone()
    };
    Ok((spec, warnings))
}

/// Returns the only catalogue in the file, or the one with the name of the object.
fn find_catalogue(
    bytes: &[u8],
    location: &str,
    known: &AddonCatalogue,
) -> Result<LocatedCatalogue, OperationError> {
    let mut found = location::parse(bytes, location)?;
    let name = merged::name_in_file(&known.metadata);
    let count = found.len();
    let one = match count {
        1 => found.pop(),
        _ => found
            .into_iter()
            .find(|one| one.object.metadata.name.as_deref() == Some(name)),
    };
    Ok(one.ok_or_else(|| CatalogueFileError::NotInFile {
        location: location.to_owned(),
        name: name.to_owned(),
        found: count,
    })?)
}

async fn credentials(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
) -> Result<Option<Arc<Credentials>>, OperationError> {
    let source = from.to_source();
    let Some(auth) = source.kind().ok().and_then(SourceKind::auth) else {
        return Ok(None);
    };
    let namespace = known.metadata.namespace.as_deref().unwrap_or_default();
    Ok(Some(
        ctx.credentials(namespace, &auth.secret_ref.name).await?,
    ))
}

fn access<'a>(
    ctx: &'a Context,
    credentials: Option<&'a Credentials>,
    reach: &'a Reach,
) -> SourceAccess<'a> {
    SourceAccess {
        credentials,
        ..ctx.access(reach)
    }
}
