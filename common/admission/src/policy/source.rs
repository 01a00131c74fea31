//! Where an add-on is read from. A location that parsers could read in several ways has no known host (semantics 19.5).

use url::Url;

use super::PolicyCandidate;
use common::address::is_safe_argument;
use common::api::catalogue::SourceKind;
use common::catalogue::channel::resolve_manifest;
use common::catalogue::{CatalogueEntry, Origin};
use common::image::Image;
use common::registry::Registry;

/// A place that something is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourcePlace {
    /// `HOST[:PORT]` in lower case, or `SCHEME://BUCKET`.
    Host(String),
    /// The reader's own machine.
    Machine,
    /// The host cannot be determined.
    Unreadable,
}

/// Something that is read, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceRead {
    /// The field of the installation that leads there.
    pub(super) field: &'static str,
    /// What is read, for messages: `the index`, `web 1.2.0`.
    pub(super) what: String,
    /// The place that it is read from.
    pub(super) place: SourcePlace,
}

/// Returns everything that is read for a candidate, as far as known. Inline content of a catalogue is not read from anywhere.
pub(super) fn list_reads(candidate: &PolicyCandidate<'_>) -> Vec<SourceRead> {
    let spec = &candidate.installation.spec;
    let reference = &spec.addon_ref;
    let mut all = Vec::new();
    if let Some(index) = &reference.index {
        all.push(SourceRead {
            field: "spec.addonRef.index",
            what: "the index".to_owned(),
            place: location_place(index),
        });
    }
    if reference.directory.is_some() {
        all.push(SourceRead {
            field: "spec.addonRef.directory",
            what: "a directory".to_owned(),
            place: SourcePlace::Machine,
        });
        return all;
    }
    let Some(entry) = candidate.entry else {
        return all;
    };
    let registry = spec.registry.as_deref().or(entry.registry.as_deref());
    if let Some(place) = entry_place(entry, registry) {
        all.push(SourceRead {
            field: "spec.addonRef",
            what: format!("{} {}", entry.addon, entry.version.version)
                .trim_end()
                .to_owned(),
            place,
        });
    }
    all
}

/// Returns where the source of an entry is read, after its rewrite to a private registry.
fn entry_place(entry: &CatalogueEntry, registry: Option<&str>) -> Option<SourcePlace> {
    if matches!(*entry.origin, Origin::Directory { .. }) {
        return Some(SourcePlace::Machine);
    }
    let mut source = entry.version.source.clone();
    if let Some(registry) = registry {
        let moved = registry.parse::<Registry>().ok();
        match moved.and_then(|registry| registry.rewrite_source(&source).ok()) {
            Some(moved) => source = moved.source,
            None => return Some(SourcePlace::Unreadable),
        }
    }
    Some(match source.kind() {
        Ok(SourceKind::Inline(_) | SourceKind::Catalogue(_)) => return None,
        Ok(SourceKind::Git(git)) => git_place(&git.remote),
        Ok(SourceKind::Docker(docker)) => image_place(&docker.image),
        Ok(SourceKind::Helm(helm)) => match helm.url.strip_prefix("oci://") {
            Some(path) => image_place(path),
            None => location_place(&helm.url),
        },
        Ok(SourceKind::Url(url)) => {
            let base = entry.base_url.as_deref().unwrap_or_default();
            match resolve_manifest(base, &url.manifest) {
                Ok(location) => location_place(&location),
                Err(_) => SourcePlace::Unreadable,
            }
        }
        // The schema refuses such a source, and so does the fetcher.
        Err(_) => SourcePlace::Unreadable,
    })
}

/// Returns the place of a URL, or of a path on the reader's machine.
fn location_place(location: &str) -> SourcePlace {
    let Some((_, rest)) = location.split_once("://") else {
        return SourcePlace::Machine;
    };
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
    let Some(url) = Url::parse(location)
        .ok()
        .filter(|_| rest.chars().all(is_plain))
    else {
        return SourcePlace::Unreadable;
    };
    let bucket = url.host_str().unwrap_or_default();
    let host = bucket.to_ascii_lowercase();
    match url.scheme() {
        "file" => SourcePlace::Machine,
        _ if host.is_empty() => SourcePlace::Unreadable,
        scheme @ ("s3" | "gs") => SourcePlace::Host(format!("{scheme}://{bucket}")),
        "az" | "azure" => SourcePlace::Host(format!("az://{bucket}")),
        "http" | "https" | "ssh" => {
            let port = url
                .port()
                .filter(|port| !(url.scheme() == "ssh" && *port == 22));
            SourcePlace::Host(port.map_or(host.clone(), |port| format!("{host}:{port}")))
        }
        _ => SourcePlace::Unreadable,
    }
}

/// Returns the place of a URL, of `USER@HOST:PATH`, or of a path on the reader's machine.
fn git_place(remote: &str) -> SourcePlace {
    if remote.contains("://") {
        return location_place(remote);
    }
    let Some((authority, _)) = remote
        .split_once(':')
        .filter(|(before, _)| !before.contains('/'))
    else {
        return SourcePlace::Machine;
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    if !is_safe_argument(host) {
        return SourcePlace::Unreadable;
    }
    SourcePlace::Host(host.to_ascii_lowercase())
}

fn image_place(image: &str) -> SourcePlace {
    match Image::parse(image) {
        Ok(image) => SourcePlace::Host(image.host.to_ascii_lowercase()),
        Err(_) => SourcePlace::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::catalogue;
    use common::catalogue::Catalogue;

    fn host(text: &str) -> Option<SourcePlace> {
        Some(SourcePlace::Host(text.to_owned()))
    }

    fn entry(base: &str, source: &Value) -> CatalogueEntry {
        let versions = json!([{"version": "1.0.0", "source": source}]);
        let mut object = catalogue("c", json!([{"name": "web", "versions": versions}]));
        object.spec.base_url = Some(base.to_owned());
        Catalogue::from_objects(&[object]).entries.remove(0)
    }

    #[test]
    fn each_source_has_one_host() {
        let git = |remote: &str| json!({"git": {"remote": remote}});
        let helm = |url: &str| json!({"helm": {"url": url, "chart": "a"}});
        let url = |manifest: &str| json!({"url": {"manifest": manifest}});
        for (source, expected) in [
            (git("https://Git.example.com/r"), host("git.example.com")),
            (
                git("https://git.example.com:8443/r"),
                host("git.example.com:8443"),
            ),
            (
                git("ssh://git@git.example.com:22/r"),
                host("git.example.com"),
            ),
            (git("git@git.example.com:r"), host("git.example.com")),
            (git("/srv/r"), Some(SourcePlace::Machine)),
            (
                json!({"docker": {"image": "ghcr.io/a/b:1"}}),
                host("ghcr.io"),
            ),
            (json!({"docker": {"image": "a/b:1"}}), host("docker.io")),
            (helm("oci://ghcr.io/charts"), host("ghcr.io")),
            (
                helm("https://charts.example.com/x"),
                host("charts.example.com"),
            ),
            (url("s3://Bucket/a.yaml"), host("s3://Bucket")),
            (url("azure://box/a.yaml"), host("az://box")),
            (url("file:///a.yaml"), Some(SourcePlace::Machine)),
            (url("a.yaml"), host("base.example.com")),
            (json!({"inline": {"manifest": ""}}), None),
        ] {
            let entry = entry("https://base.example.com/c/index.yaml", &source);
            assert_eq!(entry_place(&entry, None), expected, "{source}");
        }
    }

    #[test]
    fn a_private_registry_is_the_host_of_what_moves_there() {
        let image = json!({"docker": {"image": "a/b:1"}});
        for (registry, expected) in [
            ("mirror.example.com/x", host("mirror.example.com")),
            ("mirror", Some(SourcePlace::Unreadable)),
        ] {
            let entry = entry("", &image);
            assert_eq!(entry_place(&entry, Some(registry)), expected, "{registry}");
        }
    }

    /// What browsers, git and runtimes read differently must not pass for an allowed host.
    #[test]
    fn no_spelling_hides_the_host() {
        let base = "https://base.example.com/c/index.yaml";
        for manifest in [
            r"https://evil.test\@base.example.com/a",
            r"\\evil.test\a",
            "//evil.test/a",
            "http:/evil.test/a",
            "http:evil.test/a",
            "HTTPS://evil.test/a",
            "https://base.example.com@evil.test/a",
            "https://base.example.com%2F@evil.test/a",
            "https://evil.test\t/a",
            "https://evil.test/ https://base.example.com",
            "ftp://base.example.com/a",
        ] {
            let entry = entry(base, &json!({"url": {"manifest": manifest}}));
            let place = entry_place(&entry, None);
            assert_ne!(place, host("base.example.com"), "{manifest}");
        }
        for remote in [
            r"https://evil.test\@base.example.com/r",
            "evil.test:base.example.com",
            "git@evil.test:base.example.com/r",
            "base.example.com@evil.test:r",
            "base.example.com/../r",
        ] {
            assert_ne!(
                Some(git_place(remote)),
                host("base.example.com"),
                "{remote}"
            );
        }
    }
}
