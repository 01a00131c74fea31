//! Stores catalogues from files with their manifests in them, because a cluster cannot refer to files of one user's machine (semantics 16:
//! no `file:` in cluster catalogues).

use anyhow::{Context as _, Result};
use common::api::catalogue::{AddonCatalogue, InlineSource, Method, Source};
use common::catalogue::local::local_location;
use common::catalogue::size::{self, CatalogueTooLarge};
use common::manifest::digest;
use common::text::list_first;

use addons_sources::{SourceAccess, archive, url};

/// How many sources an error names.
const NAMED: usize = 3;

/// Why a cluster cannot store a catalogue file.
#[derive(Debug, thiserror::Error)]
pub enum NotStorable {
    /// A catalogue from a server names this machine.
    #[error("{location}: {what} is on this machine, and the catalogue is not")]
    OfServer {
        /// Where the catalogue was read.
        location: String,
        /// The add-on and version with the location, or the field.
        what: String,
    },
    /// Charts, folders, archives or repositories on this machine.
    #[error("{}", describe_local(sources))]
    Local {
        /// The catalogue file, as it was typed.
        file: String,
        /// The add-ons with their versions, such as `web 1.0.0`, and the locations of their sources.
        sources: Vec<(String, String)>,
    },
    /// The catalogue is too large with its manifests in it.
    #[error("with the manifests beside it, {error}")]
    TooLarge {
        /// The catalogue file, as it was typed.
        file: String,
        /// Why.
        error: CatalogueTooLarge,
    },
}

fn describe_local(sources: &[(String, String)]) -> String {
    let why = "on this machine, where the cluster's other users cannot read";
    match sources {
        [(name, location)] => format!("{name}: {location} is {why} it"),
        all => format!(
            "{} sources are {why} them: {}",
            all.len(),
            list_first(all.iter().map(|(name, _)| name.as_str()), NAMED)
        ),
    }
}

/// Moves the manifests of a catalogue file into the catalogue, verified. `location` is where the catalogue was read, and `file` the
/// location as it was typed. A catalogue from a server is unchanged and may not name files of this machine, whatever its `baseURL` says.
///
/// # Errors
/// [`NotStorable`]: the catalogue has a source that only this machine can read and that cannot be stored (a repository, a chart, any source
/// of a catalogue from a server), or it is too large. Or a manifest cannot be read, has another hash than its entry says, or is not text.
pub async fn inline_all(
    object: &mut AddonCatalogue,
    (file, location): (&str, &str),
    access: &SourceAccess<'_>,
) -> Result<()> {
    let base = object.spec.base_url.clone().unwrap_or_default();
    let is_file = location.starts_with("file:");
    if !is_file {
        check_of_server(object, &base, location)?;
        return Ok(());
    }
    let sources = find_unstorable(object, &base, access)?;
    if !sources.is_empty() {
        let file = file.to_owned();
        return Err(NotStorable::Local { file, sources }.into());
    }
    for addon in &mut object.spec.addons {
        for version in &mut addon.versions {
            let name = || format!("{} {}", addon.name, version.version);
            let Some(location) = local_location(&version.source, &base).with_context(name)? else {
                continue;
            };
            let fetched = url::fetch(&location, access).await.with_context(name)?;
            if let Some(expected) = &version.manifest_hash {
                digest::verify(&fetched.bytes, expected)
                    .with_context(|| format!("{}: {location}", name()))?;
            }
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
    size::check(&object.spec).map_err(|error| NotStorable::TooLarge {
        file: file.to_owned(),
        error,
    })?;
    Ok(())
}

/// Refuses files of this machine in a catalogue from a server.
fn check_of_server(object: &AddonCatalogue, base: &str, location: &str) -> Result<()> {
    let refused = |what| NotStorable::OfServer {
        location: location.to_owned(),
        what,
    };
    if base.starts_with("file:") {
        return Err(refused(format!("spec.baseURL: {base}")).into());
    }
    for addon in &object.spec.addons {
        for version in &addon.versions {
            let name = || format!("{} {}", addon.name, version.version);
            if let Some(local) = local_location(&version.source, base).with_context(name)? {
                return Err(refused(format!("{}: {local}", name())).into());
            }
        }
    }
    Ok(())
}

/// Returns the sources of a catalogue file that only this machine can read, and that are not manifests.
fn find_unstorable(
    object: &AddonCatalogue,
    base: &str,
    access: &SourceAccess<'_>,
) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for addon in &object.spec.addons {
        for version in &addon.versions {
            let name = || format!("{} {}", addon.name, version.version);
            let Some(location) = local_location(&version.source, base).with_context(name)? else {
                continue;
            };
            let is_manifest = version.source.url.is_some()
                && version.template.method != Method::Helm
                && !archive::is_archive(&location)
                && !is_folder(&location, access);
            if !is_manifest {
                found.push((name(), location));
            }
        }
    }
    Ok(found)
}

/// Whether a location is a folder of this machine. One that cannot be read as a package is a folder as well.
fn is_folder(location: &str, access: &SourceAccess<'_>) -> bool {
    !matches!(url::read_folder(location, access), Ok(None))
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
        let refused = inline_all(&mut object, ("c.yaml", location), &access)
            .await
            .err();
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
            assert!(said.starts_with(&expected), "{said}");
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
