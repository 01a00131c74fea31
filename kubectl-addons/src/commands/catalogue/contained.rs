//! Catalogues from files are stored with their manifests in them: what lies on the disk of one user is nothing that a
//! cluster can refer to (semantics 16: no `file:` in cluster catalogues).

use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::{AddonCatalogue, InlineSource, Source};
use common::catalogue::channel::resolve_manifest;
use common::manifest::digest;

use crate::source::{Access, url};

/// What an object may take in the cluster: etcd refuses requests over 1.5 MiB.
const MAX_BYTES: usize = 1 << 20;

/// Puts the manifests of a catalogue from a file into the catalogue, verified; one from a server stays as it is.
///
/// # Errors
/// A manifest that cannot be read, has another hash than its entry says, or is no text; more than fits into an object.
pub async fn contain(object: &mut AddonCatalogue, access: &Access<'_>) -> Result<()> {
    let Some(base) = object
        .spec
        .base_url
        .clone()
        .filter(|base| base.starts_with("file:"))
    else {
        return Ok(());
    };
    let mut bytes = 0;
    for addon in &mut object.spec.addons {
        for version in &mut addon.versions {
            let Some(url) = &version.source.url else {
                continue;
            };
            let location = resolve_manifest(&base, &url.manifest)?;
            if location.contains("://") && !location.starts_with("file:") {
                continue;
            }
            let name = || format!("{} {}", addon.name, version.version);
            let fetched = url::fetch(&location, access).await.with_context(name)?;
            if let Some(expected) = &version.manifest_hash {
                digest::verify(&fetched.bytes, expected)
                    .with_context(|| format!("{}: {location}", name()))?;
            }
            bytes += fetched.bytes.len();
            ensure!(
                bytes <= MAX_BYTES,
                "{base}: its manifests take more than {} MiB, which is too much for one object of the cluster; \
                 put them on a web server and add the catalogue from there",
                MAX_BYTES >> 20
            );
            let manifest = String::from_utf8(fetched.bytes)
                .with_context(|| format!("{location} is no text"))?;
            version.source = Source {
                inline: Some(InlineSource { manifest }),
                ..Source::default()
            };
        }
    }
    object.spec.base_url = None;
    Ok(())
}
