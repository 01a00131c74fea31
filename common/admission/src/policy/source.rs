//! Where an add-on is read from. A location that parsers could read in several ways has no known host (semantics 19.5).

use url::Url;

use super::Candidate;
use common::address::is_plain;
use common::api::catalogue::SourceKind;
use common::catalogue::channel::resolve_manifest;
use common::catalogue::{Entry, Origin};
use common::image::Image;
use common::registry::Registry;

/// A place that something is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `HOST[:PORT]` in lower case, or `SCHEME://BUCKET`.
    Host(String),
    /// The reader's own machine.
    Machine,
    /// The host cannot be determined.
    Unreadable,
}

/// Something that is read, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadFrom {
    /// The field of the installation that leads there.
    pub(super) field: &'static str,
    /// What is read, for messages: `the index`, `web 1.2.0`.
    pub(super) what: String,
    /// The place that it is read from.
    pub(super) place: Place,
}

/// Returns everything that is read for a candidate, as far as known. Inline content of a catalogue is not read from anywhere.
pub(super) fn read_from(candidate: &Candidate<'_>) -> Vec<ReadFrom> {
    let spec = &candidate.installation.spec;
    let reference = &spec.addon_ref;
    let mut all = Vec::new();
    if let Some(index) = &reference.index {
        all.push(ReadFrom {
            field: "spec.addonRef.index",
            what: "the index".to_owned(),
            place: of_location(index),
        });
    }
    if reference.directory.is_some() {
        all.push(ReadFrom {
            field: "spec.addonRef.directory",
            what: "a directory".to_owned(),
            place: Place::Machine,
        });
        return all;
    }
    let Some(entry) = candidate.entry else {
        return all;
    };
    let registry = spec.registry.as_deref().or(entry.registry.as_deref());
    if let Some(place) = of_entry(entry, registry) {
        all.push(ReadFrom {
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
fn of_entry(entry: &Entry, registry: Option<&str>) -> Option<Place> {
    if matches!(*entry.origin, Origin::Directory { .. }) {
        return Some(Place::Machine);
    }
    let mut source = entry.version.source.clone();
    if let Some(registry) = registry {
        let moved = registry.parse::<Registry>().ok();
        match moved.and_then(|registry| registry.rewrite_source(&source).ok()) {
            Some(moved) => source = moved.source,
            None => return Some(Place::Unreadable),
        }
    }
    Some(match source.kind() {
        Ok(SourceKind::Inline(_)) => return None,
        Ok(SourceKind::Git(git)) => of_git(&git.remote),
        Ok(SourceKind::Docker(docker)) => of_image(&docker.image),
        Ok(SourceKind::Helm(helm)) => match helm.url.strip_prefix("oci://") {
            Some(path) => of_image(path),
            None => of_location(&helm.url),
        },
        Ok(SourceKind::Url(url)) => {
            let base = entry.base_url.as_deref().unwrap_or_default();
            match resolve_manifest(base, &url.manifest) {
                Ok(location) => of_location(&location),
                Err(_) => Place::Unreadable,
            }
        }
        // The schema refuses such a source, and so does the fetcher.
        Err(_) => Place::Unreadable,
    })
}

/// Returns the place of a URL, or of a path on the reader's machine.
fn of_location(location: &str) -> Place {
    let Some((_, rest)) = location.split_once("://") else {
        return Place::Machine;
    };
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
    let Some(url) = Url::parse(location)
        .ok()
        .filter(|_| rest.chars().all(is_plain))
    else {
        return Place::Unreadable;
    };
    let bucket = url.host_str().unwrap_or_default();
    let host = bucket.to_ascii_lowercase();
    match url.scheme() {
        "file" => Place::Machine,
        _ if host.is_empty() => Place::Unreadable,
        scheme @ ("s3" | "gs") => Place::Host(format!("{scheme}://{bucket}")),
        "az" | "azure" => Place::Host(format!("az://{bucket}")),
        "http" | "https" | "ssh" => {
            let port = url
                .port()
                .filter(|port| !(url.scheme() == "ssh" && *port == 22));
            Place::Host(port.map_or(host.clone(), |port| format!("{host}:{port}")))
        }
        _ => Place::Unreadable,
    }
}

/// Returns the place of a URL, of `USER@HOST:PATH`, or of a path on the reader's machine.
fn of_git(remote: &str) -> Place {
    if remote.contains("://") {
        return of_location(remote);
    }
    let Some((authority, _)) = remote
        .split_once(':')
        .filter(|(before, _)| !before.contains('/'))
    else {
        return Place::Machine;
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    if !is_plain(host) {
        return Place::Unreadable;
    }
    Place::Host(host.to_ascii_lowercase())
}

fn of_image(image: &str) -> Place {
    match Image::parse(image) {
        Ok(image) => Place::Host(image.host.to_ascii_lowercase()),
        Err(_) => Place::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::catalogue;
    use common::catalogue::Catalogue;

    fn host(text: &str) -> Option<Place> {
        Some(Place::Host(text.to_owned()))
    }

    fn entry(base: &str, source: &Value) -> Entry {
        let versions = json!([{"version": "1.0.0", "source": source}]);
        let mut object = catalogue("c", json!([{"name": "web", "versions": versions}]));
        object.spec.base_url = Some(base.to_owned());
        Catalogue::of_objects(&[object]).entries.remove(0)
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
            (git("/srv/r"), Some(Place::Machine)),
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
            (url("file:///a.yaml"), Some(Place::Machine)),
            (url("a.yaml"), host("base.example.com")),
            (json!({"inline": {"manifest": ""}}), None),
        ] {
            let entry = entry("https://base.example.com/c/index.yaml", &source);
            assert_eq!(of_entry(&entry, None), expected, "{source}");
        }
    }

    #[test]
    fn a_private_registry_is_the_host_of_what_moves_there() {
        let image = json!({"docker": {"image": "a/b:1"}});
        for (registry, expected) in [
            ("mirror.example.com/x", host("mirror.example.com")),
            ("mirror", Some(Place::Unreadable)),
        ] {
            let entry = entry("", &image);
            assert_eq!(of_entry(&entry, Some(registry)), expected, "{registry}");
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
            let place = of_entry(&entry, None);
            assert_ne!(place, host("base.example.com"), "{manifest}");
        }
        for remote in [
            r"https://evil.test\@base.example.com/r",
            "evil.test:base.example.com",
            "git@evil.test:base.example.com/r",
            "base.example.com@evil.test:r",
            "base.example.com/../r",
        ] {
            assert_ne!(Some(of_git(remote)), host("base.example.com"), "{remote}");
        }
    }
}
