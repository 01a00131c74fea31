//! Publishes a catalogue in a registry, together with the charts, folders and manifests of this machine that it lists.
//!
//! Each package of this machine becomes an artifact in the repository of the catalogue, and its source refers to the artifact by digest.
//! The catalogue itself is the file `catalogue.yaml` of an artifact, as in the archive of an export.

use addons_operation::context::Context;
use addons_operation::fetch;
use addons_operation::render::resolve_uninstalled;
use addons_render::package::{Package, PackagedFile};
use addons_sources::SourceAccess;
use addons_sources::cache::SourceCache;
use addons_sources::layout::{LayoutArchive, PartialArchive};
use addons_sources::registry::{RegistryAccessError, RegistryClient, reference};
use addons_sources::scratch::Scratch;
use addons_sources::signature::signing::SigningKey;
use addons_sources::signature::{self, SignatureError, Subject, TrustedSigner};
use common::api::catalogue::{AddonCatalogue, Source};
use common::catalogue::author::{Author, Typed};
use common::catalogue::local::local_location;
use common::catalogue::{Catalogue, CatalogueEntry, Origin, size};
use common::image::{Image, is_of_this_machine};
use common::oci::CATALOGUE_FILE;
use common::oci::layout::NamedManifest;
use common::oci::manifest::Descriptor;
use common::registry::Registry;

use super::export::{CATALOGUE_TYPE, PACKAGE_TYPE};
use super::push::ArchivePush;
use super::{AirgapError, AirgapProgress, ReportAirgapProgress, contents, site};

/// The maximum number of characters of a version in a tag. A tag has at most 128.
const MAX_VERSION: usize = 40;
/// Number of digits of the digest in a tag.
const SHORT: usize = 12;

/// What to publish, and where.
#[derive(Clone, Copy, Debug)]
pub struct PublishRequest<'a> {
    /// The catalogue as it was read, with its location as the base of relative manifests.
    pub catalogue: &'a AddonCatalogue,
    /// The location that the user typed.
    pub typed: &'a Typed,
    /// The absolute location.
    pub location: &'a str,
    /// The name of the catalogue in the registry, with a tag.
    pub target: &'a Image,
    /// The key that signs the catalogue and the packages.
    pub key: Option<&'a SigningKey>,
    /// Whether nothing is pushed.
    pub is_dry_run: bool,
}

/// What was published, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The packages, in the order of the catalogue.
    pub packages: Vec<PublishedPackage>,
    /// The catalogue.
    pub catalogue: PublishedArtifact,
    /// Number of signatures that the registry lacked.
    pub signatures: usize,
    /// Whether the catalogue is too large to be stored in a cluster other than by reference.
    pub is_large: bool,
}

/// A package in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPackage {
    /// The add-on.
    pub addon: String,
    /// Its version.
    pub version: String,
    /// The artifact with its files.
    pub artifact: PublishedArtifact,
}

/// An artifact in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedArtifact {
    /// The name with a tag: `HOST/PATH:TAG`.
    pub image: Image,
    /// `sha256:…`
    pub digest: String,
    /// Size of the content in bytes, before compression.
    pub bytes: u64,
    /// Whether the registry had it already, under this tag.
    pub was_there: bool,
    /// Whether it is signed with the key that was given.
    pub is_signed: bool,
}

impl PublishedArtifact {
    /// Returns the name with the digest instead of the tag: `HOST/PATH@sha256:…`.
    #[must_use]
    pub fn by_digest(&self) -> String {
        self.image.with_digest(&self.digest).to_string()
    }
}

/// Packs a catalogue and its local packages, and pushes and signs what the registry lacks. The catalogue is pushed last, so that it never
/// lists a package that is missing.
///
/// # Errors
/// [`AirgapError`]. Unless the registry refuses a push, nothing was pushed.
pub async fn publish(
    ctx: &Context,
    request: &PublishRequest<'_>,
    report: ReportAirgapProgress<'_>,
) -> Result<Published, AirgapError> {
    check_policy(request, report)?;
    check_registry(request)?;
    let scratch =
        Scratch::new("addons-publish-").map_err(|source| AirgapError::Scratch { source })?;
    let path = scratch.path().join("catalogue.tar");
    let mut partial = PartialArchive::open(&path)?;
    let (object, packages) = pack_sources(ctx, &mut partial, request).await?;
    let text = serde_saphyr::to_string(&object);
    let text = text.map_err(|error| AirgapError::Catalogue(error.to_string()))?;
    let bytes = text.len() as u64;
    let file = PackagedFile {
        path: CATALOGUE_FILE.to_owned(),
        bytes: text.into_bytes(),
    };
    let files = Package::from_folder(vec![file]).map_err(|source| AirgapError::Package {
        addon: CATALOGUE_FILE.to_owned(),
        source,
    })?;
    let catalogue = PackedArtifact {
        image: request.target.clone(),
        descriptor: partial.put_files(CATALOGUE_TYPE, &files)?,
        bytes,
    };
    let reach = ctx.reach_of_opened();
    let registry = TargetRegistry {
        access: ctx.access(&reach),
        signer: request.key.map(SigningKey::signer).transpose()?,
    };
    let mut published = Vec::with_capacity(packages.len() + 1);
    let (mut missing, mut signatures) = (Vec::new(), 0);
    let all = packages.iter().map(|one| &one.artifact).chain([&catalogue]);
    for artifact in all {
        let was_there = registry.has(artifact).await?;
        let was_signed = was_there && registry.is_signed(artifact).await?;
        if !was_there {
            missing.push(NamedManifest {
                image: artifact.image.clone(),
                descriptor: artifact.descriptor.clone(),
            });
        }
        if let (Some(key), false) = (request.key, was_signed) {
            let bundle = key.bundle(&artifact.descriptor.digest)?;
            let descriptor = partial.put_signature(&artifact.descriptor, &bundle)?;
            let image = request.target.with_digest(&descriptor.digest);
            missing.push(NamedManifest { image, descriptor });
            signatures += 1;
        }
        published.push(PublishedArtifact {
            image: artifact.image.clone(),
            digest: artifact.descriptor.digest.clone(),
            bytes: artifact.bytes,
            was_there,
            is_signed: request.key.is_some(),
        });
    }
    partial.finish(&missing)?;
    if !request.is_dry_run {
        let archive = LayoutArchive::open(&path)?;
        let mut push = ArchivePush::new(&archive, registry.access, report);
        for one in &missing {
            push.push(&one.image, &one.descriptor).await?;
        }
    }
    let catalogue = published.pop();
    let packages = packages.into_iter().zip(published);
    let packages = packages.map(|(packed, artifact)| PublishedPackage {
        addon: packed.addon,
        version: packed.version,
        artifact,
    });
    Ok(Published {
        packages: packages.collect(),
        catalogue: catalogue.ok_or_else(|| AirgapError::Catalogue("it is missing".to_owned()))?,
        signatures,
        is_large: size::check(&object.spec).is_err(),
    })
}

/// Warns about a catalogue whose packages cannot be installed before they are signed, and refuses a key that its policy does not accept.
fn check_policy(
    request: &PublishRequest<'_>,
    report: ReportAirgapProgress<'_>,
) -> Result<(), AirgapError> {
    let Some(policy) = &request.catalogue.spec.signature else {
        return Ok(());
    };
    let Some(key) = request.key else {
        if policy.required {
            report(AirgapProgress::NotSigned);
        }
        return Ok(());
    };
    let (accepted, own) = (TrustedSigner::new(policy)?, key.signer()?);
    if accepted.to_string() == own.to_string() {
        return Ok(());
    }
    Err(AirgapError::OtherSigner {
        accepted: accepted.to_string(),
        own: own.to_string(),
    })
}

/// Refuses a target that the private registry of the catalogue would replace.
fn check_registry(request: &PublishRequest<'_>) -> Result<(), AirgapError> {
    let registry = request.catalogue.spec.registry.as_deref();
    // A rule of catalogues reports a registry that is not valid.
    let Some(registry) = registry.and_then(|text| text.parse::<Registry>().ok()) else {
        return Ok(());
    };
    let target = request.target.to_string();
    let rewritten = registry.rewrite(&target);
    match rewritten {
        Ok(rewritten) if rewritten == target => Ok(()),
        _ => Err(AirgapError::OtherRegistry {
            target,
            registry: registry.to_string(),
        }),
    }
}

/// An artifact in the archive.
struct PackedArtifact {
    /// Its name in the registry.
    image: Image,
    descriptor: Descriptor,
    /// Size of the files.
    bytes: u64,
}

/// A package of this machine in the archive.
struct PackedSource {
    addon: String,
    version: String,
    artifact: PackedArtifact,
}

/// Adds every source of this machine to the archive. Returns the catalogue that refers to them in the registry.
async fn pack_sources(
    ctx: &Context,
    partial: &mut PartialArchive,
    request: &PublishRequest<'_>,
) -> Result<(AddonCatalogue, Vec<PackedSource>), AirgapError> {
    let mut object = request.catalogue.clone();
    let base = object.spec.base_url.clone().unwrap_or_default();
    let origin = Origin::Index {
        location: request.location.to_owned(),
    };
    let mut entries = Catalogue::from_spec(&object.spec, origin)
        .entries
        .into_iter();
    let mut packed = Vec::new();
    for addon in &mut object.spec.addons {
        for (version, entry) in addon.versions.iter_mut().zip(&mut entries) {
            // A location that cannot be resolved is reported when it is fetched.
            if matches!(local_location(&version.source, &base), Ok(None)) {
                continue;
            }
            let entry = CatalogueEntry {
                author: Author::Typed(request.typed.clone()),
                // The content is signed in the registry, not here.
                signature: None,
                ..entry
            };
            let verified = fetch::package(ctx, &resolve_uninstalled(ctx, &entry)).await?;
            let files = &verified.fetched.package;
            let folder = contents::to_folder(&entry.addon, files)?;
            let descriptor = partial.put_files(PACKAGE_TYPE, &folder)?;
            let sizes = files.files().iter().map(|file| file.bytes.len() as u64);
            let image = package_image(request.target, &entry, &descriptor.digest);
            version.source = package_source(&image, &descriptor.digest, files);
            // A chart may have become complete with the charts of its lock file.
            version.manifest_hash = Some(files.digest());
            packed.push(PackedSource {
                addon: entry.addon,
                version: entry.version.version,
                artifact: PackedArtifact {
                    image,
                    descriptor,
                    bytes: sizes.sum(),
                },
            });
        }
    }
    if base.starts_with("file:") {
        object.spec.base_url = None;
    }
    // It comes from the registry now.
    object.spec.from = None;
    object.status = None;
    Ok((object, packed))
}

/// Returns the name of a package in the repository of the catalogue. Its tag protects it from the garbage collection of registries, and never
/// moves, because it contains a part of the digest.
fn package_image(target: &Image, entry: &CatalogueEntry, digest: &str) -> Image {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let version = entry.version.version.chars();
    let version = version.map(|c| if allowed(c) { c } else { '_' });
    let version: String = version.take(MAX_VERSION).collect();
    let hex = digest.trim_start_matches("sha256:");
    let hex: String = hex.chars().take(SHORT).collect();
    Image {
        tag: Some(format!("{}-{version}-{hex}", entry.addon)),
        digest: None,
        ..target.clone()
    }
}

fn package_source(image: &Image, digest: &str, files: &Package) -> Source {
    let file = files.as_file().map(|file| file.path.as_str());
    let mut source = site::package_source(&image.with_digest(digest), file);
    if let Some(docker) = &mut source.docker {
        docker.plain_http = is_of_this_machine(&image.host);
    }
    source
}

/// The registry in its state before the push.
struct TargetRegistry<'a> {
    access: SourceAccess<'a>,
    signer: Option<TrustedSigner>,
}

impl TargetRegistry<'_> {
    /// Whether the registry has an artifact under its tag.
    async fn has(&self, artifact: &PackedArtifact) -> Result<bool, RegistryAccessError> {
        let reference = reference(&artifact.image.to_string())?;
        let plain_http = is_of_this_machine(&reference.host);
        let mut client = RegistryClient::open(&reference, plain_http, &self.access)?;
        client.request_push();
        let tag = artifact.image.tag.as_deref().unwrap_or_default();
        let found = client.find_digest(tag).await?;
        Ok(found.as_ref() == Some(&artifact.descriptor.digest))
    }

    /// Whether the owner of the key has signed an artifact. The registry is asked, because a signature in the cache may no longer be there.
    async fn is_signed(&self, artifact: &PackedArtifact) -> Result<bool, RegistryAccessError> {
        let Some(signer) = &self.signer else {
            return Ok(false);
        };
        let image = artifact.image.with_digest(&artifact.descriptor.digest);
        let plain_http = is_of_this_machine(&image.host);
        let subject = Subject::from_reference(&image.to_string(), plain_http)?;
        let cache = SourceCache::new(None);
        let access = SourceAccess {
            cache: &cache,
            ..self.access
        };
        match signature::verify(&subject, signer, &access).await {
            Ok(_) => Ok(true),
            Err(SignatureError::Registry(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }
}
