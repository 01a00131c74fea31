//! Rules for sources: a source that cannot be read is reported when it is written, not when it is fetched.

use super::versions;
use crate::rules::location::{
    CREDENTIALS, check_ssh_remote, check_url, is_loopback, is_unencrypted,
};
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{AddonCatalogue, GitRef, Source, SourceKind, UrlSource};
use common::catalogue::check_hash;
use common::image::without_user;

/// The number of hex digits of a commit id.
const COMMIT: usize = 40;

/// Locations must have a scheme that their source reads, contain no credentials (which belong in Secrets, semantics 16.2), and stay
/// inside the source.
#[must_use]
pub fn unreadable_sources(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    for (place, _, version) in versions(catalogue) {
        let place = format!("{place}.source");
        for (field, message) in find_wrong_fields(&version.source, &place) {
            let field = format!("{place}.{field}");
            problems.push(AdmissionProblem::invalid("source", field, message));
        }
    }
    problems
}

/// The same rules for the source of the catalogue itself, which in addition must be on a server: other clients could not read a file on
/// this machine (semantics 1.3).
#[must_use]
pub fn unreadable_from(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let Some(from) = &catalogue.spec.from else {
        return Vec::new();
    };
    let mut wrong = find_wrong_fields(&from.to_source(), "spec.from");
    if from.url.as_ref().is_some_and(is_on_no_server) {
        let why = "a catalogue in a cluster comes from a server: write an absolute URL";
        wrong.push(("url.manifest", why.to_owned()));
    }
    let problems = wrong.into_iter();
    let problem =
        |(field, why)| AdmissionProblem::invalid("source", format!("spec.from.{field}"), why);
    problems.map(problem).collect()
}

/// Returns whether only this machine could read a file, or whether its location is relative.
pub(crate) fn is_on_no_server(url: &UrlSource) -> bool {
    let scheme = url.manifest.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case("file"))
}

/// Returns the wrong fields of the source at `place`, and what is wrong with each.
fn find_wrong_fields(source: &Source, place: &str) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    // The schema reports sources with no kind or with several.
    let Ok(kind) = source.kind() else {
        return wrong;
    };
    match kind {
        SourceKind::Git(git) => {
            let schemes = ["https", "http", "ssh", "file"];
            let why =
                check_location(&git.remote, &schemes).or_else(|| check_ssh_remote(&git.remote));
            wrong.extend(why.map(|why| ("git.remote", why)));
            let name = git.r#ref.as_ref().and_then(check_ref);
            wrong.extend(name.map(|why| ("git.ref", why.to_owned())));
            wrong.extend(check_path(git.path.as_deref()).map(|why| ("git.path", why)));
        }
        SourceKind::Docker(docker) => {
            wrong.extend(check_image(&docker.image).map(|why| ("docker.image", why)));
            wrong.extend(check_path(docker.path.as_deref()).map(|why| ("docker.path", why)));
        }
        SourceKind::Helm(helm) => {
            wrong.extend(check_repository(&helm.url).map(|why| ("helm.url", why)));
            wrong.extend(check_present(&helm.chart).map(|why| ("helm.chart", why)));
            if helm.plain_http && !helm.url.starts_with("oci://") {
                let why =
                    "it applies only to oci:// URLs; other URLs start with http:// or https://";
                wrong.push(("helm.plainHTTP", why.to_owned()));
            }
            if helm.digest.is_some() && !helm.url.starts_with("oci://") {
                let why =
                    "it names a manifest in a registry; a repository is verified with manifestHash";
                wrong.push(("helm.digest", why.to_owned()));
            }
        }
        SourceKind::Url(url) => {
            let schemes = ["https", "http", "s3", "gs", "az", "azure", "file"];
            let why =
                check_location(&url.manifest, &schemes).map(|why| match oci_image(&url.manifest) {
                    Some(image) => {
                        format!("oci:// is not read here; write {place}.docker.image: {image}")
                    }
                    None => why,
                });
            wrong.extend(why.map(|why| ("url.manifest", why)));
        }
        SourceKind::Inline(_) => {}
        SourceKind::Catalogue(of) => {
            wrong.extend(check_present(&of.name).map(|why| ("catalogue.name", why)));
        }
    }
    if let Some(why) = kind
        .auth()
        .and_then(|auth| check_present(&auth.secret_ref.name))
    {
        let field = match kind {
            SourceKind::Git(_) => "git.auth.secretRef.name",
            SourceKind::Docker(_) => "docker.auth.secretRef.name",
            SourceKind::Helm(_) => "helm.auth.secretRef.name",
            SourceKind::Url(_) | SourceKind::Inline(_) | SourceKind::Catalogue(_) => {
                "url.auth.secretRef.name"
            }
        };
        wrong.push((field, why));
    }
    wrong
}

/// Returns why a ref does not name anything that git can find.
fn check_ref(name: &GitRef) -> Option<&'static str> {
    let given: Vec<&String> = [&name.branch, &name.tag, &name.commit]
        .into_iter()
        .flatten()
        .collect();
    let [one] = given[..] else {
        return Some("exactly one of branch, tag and commit is wanted");
    };
    if one.trim().is_empty() {
        return Some("a value is required");
    }
    let is_id = |commit: &String| {
        commit.len() == COMMIT && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_short = name.commit.as_ref().is_some_and(|commit| !is_id(commit));
    is_short.then_some("a commit has 40 hex digits, as git rev-parse prints them")
}

/// Returns why an image cannot be read. A registry does not accept a password before the host, and it would be recorded and shown
/// (semantics 16.2).
fn check_image(image: &str) -> Option<String> {
    let why = "an image is HOST/PATH:TAG or HOST/PATH@sha256:DIGEST and holds no credentials: put them into a Secret, and name \
               that in auth.secretRef";
    check_present(image).or_else(|| (without_user(image) != image).then(|| why.to_owned()))
}

/// Returns why a URL is not a chart repository. The path of a folder is never read as one.
fn check_repository(url: &str) -> Option<String> {
    let schemes = ["https", "http", "oci"];
    check_location(url, &schemes).or_else(|| {
        let is_url = url.contains("://");
        (!is_url).then(|| "a repository of charts is at https://, http:// or oci://".to_owned())
    })
}

/// Returns the image that an `oci://` location names, which a docker source reads.
fn oci_image(location: &str) -> Option<&str> {
    let (scheme, image) = location.split_once("://")?;
    let is_image = scheme.eq_ignore_ascii_case("oci") && !image.is_empty() && !image.contains('@');
    is_image.then_some(image)
}

/// Returns why a location cannot be used.
fn check_location(text: &str, schemes: &[&str]) -> Option<String> {
    let why = check_url(text, schemes)?;
    let is_secret = why == CREDENTIALS;
    Some(
        why + if is_secret {
            ", and name that in auth.secretRef"
        } else {
            ""
        },
    )
}

fn check_present(text: &str) -> Option<String> {
    text.trim()
        .is_empty()
        .then(|| "a value is required".to_owned())
}

/// Warns about sources that are read without TLS and not verified: anyone on the network path decides what is installed.
#[must_use]
pub fn warn_unencrypted(catalogue: &AddonCatalogue) -> Vec<String> {
    let risky = versions(catalogue).filter_map(|(place, name, version)| {
        let is_verified = check_hash(version).is_ok() && version.manifest_hash.as_deref().is_some_and(|hash| !hash.is_empty());
        if is_verified {
            return None;
        }
        let field = unencrypted_field(&version.source)?;
        Some(format!(
            "{place}.source.{field}: {name} is read without TLS, and no manifestHash verifies it: whoever is on the way decides \
             what is installed"
        ))
    });
    risky.collect()
}

/// Returns the field that makes a source be read without TLS.
fn unencrypted_field(source: &Source) -> Option<&'static str> {
    let is_remote = |reference: &str| !is_loopback(reference.split('/').next().unwrap_or_default());
    let (field, is_clear) = match source.kind().ok()? {
        SourceKind::Git(git) => ("git.remote", is_unencrypted(&git.remote)),
        SourceKind::Docker(docker) => (
            "docker.plainHTTP",
            docker.plain_http && is_remote(&docker.image),
        ),
        SourceKind::Helm(helm) if helm.url.starts_with("oci://") => {
            let reference = helm.url.trim_start_matches("oci://");
            ("helm.plainHTTP", helm.plain_http && is_remote(reference))
        }
        SourceKind::Helm(helm) => ("helm.url", is_unencrypted(&helm.url)),
        SourceKind::Url(url) => ("url.manifest", is_unencrypted(&url.manifest)),
        SourceKind::Inline(_) | SourceKind::Catalogue(_) => return None,
    };
    is_clear.then_some(field)
}

fn check_path(path: Option<&str>) -> Option<String> {
    let leaves = path?.split('/').any(|part| part == "..");
    leaves.then(|| "a path stays inside of its source: write it without ..".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::catalogue;

    #[test]
    fn a_catalogue_comes_from_a_server() {
        let said = |from: serde_json::Value| {
            let mut catalogue = catalogue("a", json!([]));
            catalogue.spec.from = serde_json::from_value(from).unwrap();
            let problems = unreadable_from(&catalogue);
            let mut said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            said.pop().unwrap_or_default()
        };
        let url = "spec.from.url.manifest: a catalogue in a cluster comes from a server: write an absolute URL";
        for (from, expected) in [
            (json!({"git": {"remote": "https://h/r"}}), ""),
            (json!({"docker": {"image": "h/i:1"}}), ""),
            (json!({"url": {"manifest": "https://h/a.yaml"}}), ""),
            (json!({"url": {"manifest": "a.yaml"}}), url),
            (json!({"url": {"manifest": "file:///a.yaml"}}), url),
            (
                json!({"url": {"manifest": "oci://h/a:1"}}),
                "spec.from.url.manifest: oci:// is not read here; write spec.from.docker.image: h/a:1",
            ),
            (
                json!({"git": {"remote": "https://h/r", "path": "../a"}}),
                "spec.from.git.path: a path stays inside of its source: write it without ..",
            ),
        ] {
            assert_eq!(said(from.clone()), expected, "{from}");
        }
    }

    #[test]
    fn what_no_source_can_read() {
        for (source, expected) in [
            (
                json!({"git": {"remote": "https://h/r", "ref": {"tag": "v1"}, "path": "a/b"}}),
                &[][..],
            ),
            (json!({"git": {"remote": "git@h:r"}}), &[]),
            (json!({"git": {"remote": "$(id)@h:r"}}), &["git.remote"]),
            (json!({"git": {"remote": "ssh://git@h/r"}}), &[]),
            (json!({"git": {"remote": "git://h/r"}}), &["git.remote"]),
            (
                json!({"git": {"remote": "ssh://git:pw@h/r"}}),
                &["git.remote"],
            ),
            (
                json!({"git": {"remote": "https://token@h/r", "ref": {}}}),
                &["git.remote", "git.ref"],
            ),
            (
                json!({"git": {"remote": "https://h/r", "ref": {"tag": "a", "branch": "b"}, "path": "a/../../b"}}),
                &["git.ref", "git.path"],
            ),
            (
                json!({"docker": {"image": "h/i", "path": "../a"}}),
                &["docker.path"],
            ),
            (
                json!({"helm": {"url": "oci://h/charts", "chart": "a"}}),
                &[],
            ),
            (
                json!({"helm": {"url": "s3://h/charts", "chart": "a"}}),
                &["helm.url"],
            ),
            (
                json!({"helm": {"url": "https://u:p@h/charts", "chart": "a"}}),
                &["helm.url"],
            ),
            (json!({"url": {"manifest": "../a.yaml"}}), &[]),
            (json!({"url": {"manifest": "s3://bucket/a@b.yaml"}}), &[]),
            (
                json!({"url": {"manifest": "ftp://h/a.yaml"}}),
                &["url.manifest"],
            ),
            (json!({"inline": {"manifest": "https://u:p@h"}}), &[]),
            (
                json!({"git": {"remote": "", "ref": {"branch": ""}}}),
                &["git.remote", "git.ref"],
            ),
            (
                json!({"git": {"remote": "https://h/r", "ref": {"commit": "0123abc"}}}),
                &["git.ref"],
            ),
            (
                json!({"git": {"remote": "https://h/r", "ref": {"commit": "0123456789abcdef0123456789abcdef01234567"}}}),
                &[],
            ),
            (json!({"docker": {"image": ""}}), &["docker.image"]),
            (
                json!({"helm": {"url": "charts", "chart": ""}}),
                &["helm.url", "helm.chart"],
            ),
            (
                json!({"helm": {"url": "https://", "chart": "a", "plainHTTP": true}}),
                &["helm.url", "helm.plainHTTP"],
            ),
            (
                json!({"helm": {"url": "oci://h/c", "chart": "a", "plainHTTP": true}}),
                &[],
            ),
            (
                json!({"url": {"manifest": "a.yaml", "auth": {"secretRef": {"name": ""}}}}),
                &["url.auth.secretRef.name"],
            ),
        ] {
            let read = serde_json::from_value(source.clone()).unwrap();
            let wrong = find_wrong_fields(&read, "source").into_iter();
            let fields: Vec<_> = wrong.map(|(field, _)| field).collect();
            assert_eq!(fields, expected, "{source}");
        }
    }

    #[test]
    fn an_image_holds_no_credentials() {
        for (image, is_refused) in [
            ("h:5000/i:1@sha256:a", false),
            ("u:geheim@h:5000/i:1", true),
            ("u:geheim@h:5000/i@sha256:a", true),
        ] {
            let source = serde_json::from_value(json!({"docker": {"image": image}})).unwrap();
            let wrong = find_wrong_fields(&source, "source");
            let fields: Vec<_> = wrong.iter().map(|(field, _)| *field).collect();
            let expected: &[&str] = if is_refused { &["docker.image"] } else { &[] };
            assert_eq!(fields, expected, "{image}");
            assert!(!format!("{wrong:?}").contains("geheim"), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_read_in_the_clear_and_verified_by_nothing() {
        let clear = json!({"url": {"manifest": "http://h/m.yaml"}});
        for (version, field) in [
            (json!({"source": clear}), Some("url.manifest")),
            (
                json!({"source": clear, "manifestHash": "a".repeat(64)}),
                None,
            ),
            (
                json!({"source": clear, "manifestHash": ""}),
                Some("url.manifest"),
            ),
            (
                json!({"source": {"url": {"manifest": "https://h/m.yaml"}}}),
                None,
            ),
            (
                json!({"source": {"git": {"remote": "http://h/r"}}}),
                Some("git.remote"),
            ),
            (
                json!({"source": {"docker": {"image": "h/i", "plainHTTP": true}}}),
                Some("docker.plainHTTP"),
            ),
            (
                json!({"source": {"docker": {"image": "localhost:5000/i", "plainHTTP": true}}}),
                None,
            ),
            (
                json!({"source": {"helm": {"url": "oci://h/c", "chart": "a", "plainHTTP": true}}}),
                Some("helm.plainHTTP"),
            ),
            (
                json!({"source": {"helm": {"url": "http://h/c", "chart": "a"}}}),
                Some("helm.url"),
            ),
            (
                json!({"source": {"inline": {"manifest": "http://h"}}}),
                None,
            ),
        ] {
            let mut version = version;
            version["version"] = json!("1.0.0");
            let risky = warn_unencrypted(&catalogue(
                "c",
                json!([{"name": "a", "versions": [version]}]),
            ));
            let expected = field.map(|field| {
                format!("spec.addons[0].versions[0].source.{field}: a is read without TLS")
            });
            let is_as_expected = match (risky.as_slice(), &expected) {
                ([], None) => true,
                ([one], Some(expected)) => one.starts_with(expected.as_str()),
                _ => false,
            };
            assert!(is_as_expected, "{version}: {risky:?}");
        }
    }
}
