//! Verifies that fetched content is signed as its catalogue requires (semantics 11.5). The check uses the content of the source before it
//! is rendered, so that install, upgrade and the loop refuse the same.

use addons_render::chart::lock::PinnedDependency;
use addons_render::package::Package;
use addons_sources::signature::{SignatureError, SignerError, Subject, TrustedSigner};
use addons_sources::{
    FetchedPackage, SourceAccess, SourceError, image::ImageFetchError, signature,
};
use common::api::catalogue::{AddonCatalogue, SignaturePolicy, Source, SourceKind};
use common::api::installation::Signature;
use common::catalogue::{CatalogueEntry, Origin};
use common::manifest::digest::HashAlgorithm;

use super::VerifiedPackage;
use crate::context::Context;
use crate::error::{OperationError, Unvouched, UnvouchedReason};
use crate::render;
use crate::resolve::resolved::Resolved;

/// Why a reference to a registry is not verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyReferenceError {
    /// It is not signed, or not by an accepted signer.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The policy has no usable signer.
    #[error(transparent)]
    Signer(#[from] SignerError),
}

/// The result of a signature check.
#[derive(Debug, Default)]
pub(crate) struct SignatureResult {
    /// The signature to record.
    pub(crate) signature: Option<Signature>,
    /// What is wrong, if signatures are not required.
    pub(crate) warning: Option<String>,
}

/// Checks the signatures of content fetched from `source`, which may be in a private registry: the digest is the same everywhere.
///
/// # Errors
/// [`Unvouched`] if signatures are required; the registry cannot be reached.
pub(crate) async fn check_signature(
    resolved: &Resolved,
    source: &Source,
    fetched: &FetchedPackage,
    access: &SourceAccess<'_>,
) -> Result<SignatureResult, OperationError> {
    let Some(policy) = &resolved.entry.signature else {
        return Ok(SignatureResult::default());
    };
    let why = match vouch(&resolved.entry, policy, source, fetched, access).await {
        Ok(signature) => {
            return Ok(SignatureResult {
                signature: Some(signature),
                warning: None,
            });
        }
        Err(why) => why,
    };
    if !policy.required {
        return Ok(SignatureResult {
            signature: None,
            warning: Some(why.to_string()),
        });
    }
    Err(match why {
        UnvouchedReason::Signature(SignatureError::Registry(error)) => {
            SourceError::Image(ImageFetchError::Registry(error)).into()
        }
        why => unvouched_error(&resolved.entry, why),
    })
}

/// Checks the dependencies of a chart: they are fetched from where its lock file says, so only a hash of everything vouches for them.
///
/// # Errors
/// [`Unvouched`].
pub(crate) fn check_dependencies(
    resolved: &Resolved,
    parts: &[PinnedDependency],
    complete: &Package,
) -> Result<(), OperationError> {
    let entry = &resolved.entry;
    let is_required = (entry.signature.as_ref()).is_some_and(|policy| policy.required);
    if !is_required || pinned_sha256(entry).is_some() {
        return Ok(());
    }
    let why = UnvouchedReason::Parts {
        charts: super::describe_charts(parts),
        whole: complete.digest(),
    };
    Err(unvouched_error(entry, why))
}

/// Fetches an entry and verifies it by `policy`, or by the policy of its catalogue.
///
/// # Errors
/// Those of [`super::package`].
pub async fn verify(
    ctx: &Context,
    entry: &CatalogueEntry,
    policy: Option<&SignaturePolicy>,
) -> Result<VerifiedPackage, OperationError> {
    let mut resolved = render::resolve_uninstalled(ctx, entry);
    if let Some(policy) = policy {
        resolved.entry.signature = Some(policy.clone().into());
    }
    super::package(ctx, &resolved).await
}

/// Returns the field of a source that cannot be signed because it is not in a registry; `None` for any other source.
#[must_use]
pub fn unsignable_field(source: &Source) -> Option<&'static str> {
    let is_signable = match source.kind() {
        Ok(SourceKind::Docker(_)) => true,
        Ok(SourceKind::Helm(helm)) => helm.url.starts_with("oci://"),
        _ => false,
    };
    (!is_signable).then(|| source_field(source))
}

/// Verifies content in a registry: `HOST/PATH:TAG` or `HOST/PATH@sha256:…`.
///
/// # Errors
/// [`VerifyReferenceError`].
pub async fn verify_reference(
    ctx: &Context,
    reference: &str,
    plain_http: bool,
    policy: &SignaturePolicy,
) -> Result<Signature, VerifyReferenceError> {
    let subject = Subject::from_reference(reference, plain_http).map_err(SignatureError::from)?;
    let signer = TrustedSigner::new(policy)?;
    Ok(signature::verify(&subject, &signer, &ctx.access(&ctx.reach_of_opened())).await?)
}

/// Gives the entry of a revision the current policy of its catalogue, which may require signatures since (semantics 11.5).
///
/// # Errors
/// The catalogues cannot be read.
pub(crate) async fn with_current_policy(
    ctx: &Context,
    entry: CatalogueEntry,
) -> Result<CatalogueEntry, OperationError> {
    let Origin::Catalogue { name, .. } = &*entry.origin else {
        return Ok(entry);
    };
    let catalogues = ctx.readable_catalogues().await?.unwrap_or_default();
    let is_its_own = |object: &&AddonCatalogue| object.metadata.name.as_ref() == Some(name);
    let Some(object) = catalogues.iter().find(is_its_own) else {
        return Ok(entry);
    };
    Ok(apply_policy(object, entry))
}

/// Returns the entry with the policy that its catalogue has for it.
fn apply_policy(object: &AddonCatalogue, mut entry: CatalogueEntry) -> CatalogueEntry {
    let own = object.spec.signature.as_ref();
    let (None, Some(merged)) = (own, &entry.version.merged_from) else {
        entry.signature = own.cloned().map(Into::into);
        return entry;
    };
    let addons = object.spec.addons.iter();
    let versions = addons.flat_map(|addon| addon.versions.iter().map(move |it| (&addon.name, it)));
    let today = versions.filter_map(|(addon, version)| {
        let today = version.merged_from.as_ref()?;
        let is_listed = *addon == entry.addon
            && (&version.version, &version.id) == (&entry.version.version, &entry.version.id);
        (today.catalogue == merged.catalogue).then_some((is_listed, today.signature.as_ref()))
    });
    // Merged versions may have different policies. A version that is no longer listed gets one that requires signatures, if there is one.
    let requires = |policy: &SignaturePolicy| policy.required;
    let today = today.max_by_key(|(is_listed, policy)| (*is_listed, policy.is_some_and(requires)));
    if let Some((_, policy)) = today {
        entry.signature = policy.cloned().map(Into::into);
    }
    entry
}

/// Returns the catalogue that requires signatures for an add-on: one that lists it, or one of the `claimed` names.
pub(crate) fn find_requiring<'a>(
    catalogues: &'a [AddonCatalogue],
    addon: &str,
    claimed: &[&str],
) -> Option<&'a str> {
    catalogues.iter().find_map(|object| {
        let name = object.metadata.name.as_deref()?;
        let is_claimed = claimed.contains(&name);
        let addons = object.spec.addons.iter();
        let mut listed = addons
            .filter(|one| is_claimed || one.name == addon)
            .peekable();
        let is_asked = is_claimed || listed.peek().is_some();
        let mut versions = listed.flat_map(|one| &one.versions);
        let requires = |policy: &SignaturePolicy| policy.required;
        let is_required = object.spec.signature.as_ref().is_some_and(requires)
            || versions.any(|version| object.spec.signature_for(version).is_some_and(requires));
        (is_asked && is_required).then_some(name)
    })
}

async fn vouch(
    entry: &CatalogueEntry,
    policy: &SignaturePolicy,
    source: &Source,
    fetched: &FetchedPackage,
    access: &SourceAccess<'_>,
) -> Result<Signature, UnvouchedReason> {
    let subject = Subject::from_source(source, fetched.resolved.as_deref());
    let subject = subject.map_err(|error| UnvouchedReason::Signature(error.into()))?;
    let Some(subject) = subject else {
        let field = source_field(source);
        let hash = pinned_sha256(entry).ok_or(UnvouchedReason::Unsignable { field })?;
        return Ok(Signature::from_hash(hash));
    };
    let signer = TrustedSigner::new(policy).map_err(UnvouchedReason::Policy)?;
    let verified = signature::verify(&subject, &signer, access).await;
    verified.map_err(UnvouchedReason::Signature)
}

/// Returns the hash of an entry if it is a sha256. The hash check verifies that the content matches it.
fn pinned_sha256(entry: &CatalogueEntry) -> Option<&str> {
    let hash = entry.verifiable_hash()?;
    (HashAlgorithm::from_hash(hash) == Some(HashAlgorithm::Sha256)).then_some(hash)
}

fn source_field(source: &Source) -> &'static str {
    match source.kind() {
        Ok(SourceKind::Git(_)) => "source.git",
        Ok(SourceKind::Docker(_)) => "source.docker",
        Ok(SourceKind::Helm(_)) => "source.helm with an http(s) repository",
        Ok(SourceKind::Url(_)) => "source.url",
        Ok(SourceKind::Inline(_)) => "source.inline",
        Ok(SourceKind::Catalogue(_)) => "source.catalogue",
        Err(_) => "source",
    }
}

fn unvouched_error(entry: &CatalogueEntry, why: UnvouchedReason) -> OperationError {
    let origin = entry.origin.to_string();
    OperationError::Unvouched(Box::new(Unvouched { origin, why }))
}

#[cfg(test)]
mod tests;
