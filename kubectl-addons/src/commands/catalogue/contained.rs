//! Stores catalogues from files with their manifests in them, because a cluster cannot refer to files of one user's machine (semantics 16:
//! no `file:` in cluster catalogues).

use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::{AddonCatalogue, InlineSource, Method, Source};
use common::catalogue::local::local_location;
use common::manifest::digest;

use addons_sources::{SourceAccess, archive, url};

/// The most bytes that an object may have: etcd refuses requests over 1.5 MiB.
const MAX_BYTES: usize = 1 << 20;

/// Moves the manifests of a catalogue file into the catalogue, verified. `location` is where the catalogue was read. A catalogue from a
/// server is unchanged and may not name files of this machine, whatever its `baseURL` says.
///
/// # Errors
/// The catalogue has a source that only this machine can read and that cannot be stored: a repository, a chart, any source of a catalogue
/// from a server. Or a manifest cannot be read, has another hash than its entry says, or is not text, or the manifests are too large.
pub async fn inline_all(
    object: &mut AddonCatalogue,
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<()> {
    let base = object.spec.base_url.clone().unwrap_or_default();
    let is_file = location.starts_with("file:");
    ensure!(
        is_file || !base.starts_with("file:"),
        "{location}: spec.baseURL: {base} is on this machine, and the catalogue is not; remove baseURL"
    );
    let mut bytes = 0;
    for addon in &mut object.spec.addons {
        for version in &mut addon.versions {
            let name = || format!("{} {}", addon.name, version.version);
            let Some(location) = local_location(&version.source, &base).with_context(name)? else {
                continue;
            };
            let is_chart = version.template.method == Method::Helm;
            let is_folder = url::read_folder(&location, access)
                .with_context(name)?
                .is_some();
            let is_manifest = !is_chart && !is_folder && !archive::is_archive(&location);
            ensure!(
                version.source.url.is_some() && is_file && is_manifest,
                "{}: {location} is on this machine, where the cluster's other users cannot read it; \
                 put it on a server{}, or leave the catalogue in its file and install with --channel",
                name(),
                if is_chart {
                    ", in a chart repository or a registry"
                } else {
                    ""
                }
            );
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
            let manifest = String::from_utf8(fetched.bytes).ok();
            let manifest = manifest.with_context(|| {
                format!(
                    "{}: {location} is not UTF-8 text, so it cannot be a manifest",
                    name()
                )
            })?;
            version.source = Source {
                inline: Some(InlineSource { manifest }),
                ..Source::default()
            };
        }
    }
    if base.starts_with("file:") {
        object.spec.base_url = None;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use addons_sources::Reach;
    use addons_sources::cache::SourceCache;

    const FILE: &str = "file:///srv/c.yaml";

    /// What `catalogue add` says of a catalogue with one version that was read at a location.
    async fn said(location: &str, version: serde_json::Value) -> String {
        let base = match location.starts_with("file:") {
            true => location,
            false => "https://h/other/",
        };
        let addons = json!([{"name": "web", "versions": [version]}]);
        said_of(location, json!({"baseURL": base, "addons": addons})).await
    }

    /// What it says of a catalogue with this specification; empty where it accepts it.
    async fn said_of(location: &str, spec: serde_json::Value) -> String {
        let mut object: AddonCatalogue = serde_json::from_value(json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "c"},
            "spec": spec,
        }))
        .unwrap();
        let access = SourceAccess {
            cache: &SourceCache::new(None),
            offline: false,
            hash: None,
            reach: &Reach::cluster(),
            credentials: None,
            kustomize: None,
        };
        let refused = inline_all(&mut object, location, &access).await.err();
        refused.map_or_else(String::new, |error| error.to_string())
    }

    #[tokio::test]
    async fn a_cluster_cannot_read_repositories_and_charts_of_this_machine() {
        let helm = json!({"method": "helm"});
        for (template, source, location) in [
            (json!({}), json!({"git": {"remote": "../repo"}}), "../repo"),
            (
                helm.clone(),
                json!({"git": {"remote": "file:///srv/repo"}}),
                "file:///srv/repo",
            ),
            (
                helm.clone(),
                json!({"url": {"manifest": "web-1.0.0.tgz"}}),
                "file:///srv/web-1.0.0.tgz",
            ),
        ] {
            let version = json!({"version": "1", "template": template, "source": source});
            let said = said(FILE, version).await;
            let expected = format!("web 1: {location} is on this machine");
            assert!(
                said.starts_with(&expected) && said.contains("--channel"),
                "{said}"
            );
        }
        for source in [
            json!({"git": {"remote": "https://h/r"}}),
            json!({"url": {"manifest": "https://h/web.tgz"}}),
        ] {
            let version = json!({"version": "1", "template": helm, "source": source});
            assert_eq!(said(FILE, version).await, "");
        }
    }

    /// The bytes of a catalogue decide who wrote it, and not what they say of their origin.
    #[tokio::test]
    async fn a_catalogue_of_a_server_names_no_files() {
        let source = json!({"url": {"manifest": "file:///proc/self/environ"}});
        let version = json!({"version": "1", "source": source});
        for location in ["https://h/c.yaml", "s3://b/c.yaml", "oci://h/c:1"] {
            let said = said(location, version.clone()).await;
            assert!(said.contains("is on this machine"), "{location}: {said}");
        }
        let spec = json!({"baseURL": "file:///x", "addons": []});
        let said = said_of("https://h/c.yaml", spec).await;
        assert!(said.contains("spec.baseURL: file:///x"), "{said}");
    }
}
