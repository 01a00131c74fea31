//! Rules for sources: what no source can read is reported before it is fetched.

use super::versions;
use crate::admission::verdict::Problem;
use crate::api::catalogue::{AddonCatalogue, Source, SourceKind};

/// Locations have a scheme that their source reads, no credentials (those are Secrets, semantics 16), and stay inside.
#[must_use]
pub fn unreadable_sources(catalogue: &AddonCatalogue) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (place, _, version) in versions(catalogue) {
        for (field, message) in wrong(&version.source) {
            let field = format!("{place}.source.{field}");
            problems.push(Problem::invalid("source", field, message));
        }
    }
    problems
}

/// The wrong fields, and what is wrong with them.
fn wrong(source: &Source) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    // The schema reports sources with no kind or with several.
    let Ok(kind) = source.kind() else {
        return wrong;
    };
    match kind {
        SourceKind::Git(git) => {
            let schemes = ["https", "http", "ssh", "file"];
            wrong.extend(location(&git.remote, &schemes).map(|why| ("git.remote", why)));
            if let Some(name) = &git.r#ref {
                let given = [&name.branch, &name.tag, &name.commit];
                if given.into_iter().flatten().count() != 1 {
                    let why = "exactly one of branch, tag and commit is wanted";
                    wrong.push(("git.ref", why.to_owned()));
                }
            }
            wrong.extend(outside(git.path.as_deref()).map(|why| ("git.path", why)));
        }
        SourceKind::Docker(docker) => {
            wrong.extend(outside(docker.path.as_deref()).map(|why| ("docker.path", why)));
        }
        SourceKind::Helm(helm) => {
            let schemes = ["https", "http", "oci"];
            wrong.extend(location(&helm.url, &schemes).map(|why| ("helm.url", why)));
        }
        SourceKind::Url(url) => {
            let schemes = ["https", "http", "s3", "gs", "az", "azure", "file"];
            wrong.extend(location(&url.manifest, &schemes).map(|why| ("url.manifest", why)));
        }
        SourceKind::Inline(_) => {}
    }
    wrong
}

/// Why a location cannot be used; one without a scheme is a path, or a host in the form of ssh.
fn location(text: &str, schemes: &[&str]) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    if !schemes.contains(&scheme.to_ascii_lowercase().as_str()) {
        let schemes = schemes.join("://, ");
        return Some(format!("{scheme}:// is not read here, but {schemes}://"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, _) = authority.rsplit_once('@')?;
    // With ssh the user is part of the address.
    let is_secret = user.contains(':') || !scheme.eq_ignore_ascii_case("ssh");
    is_secret.then(|| {
        "a URL holds no credentials: put them into a Secret, and name that in auth.secretRef"
            .to_owned()
    })
}

fn outside(path: Option<&str>) -> Option<String> {
    let leaves = path?.split('/').any(|part| part == "..");
    leaves.then(|| "a path stays inside of its source: write it without ..".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_source_can_read() {
        for (source, expected) in [
            (
                json!({"git": {"remote": "https://h/r", "ref": {"tag": "v1"}, "path": "a/b"}}),
                &[][..],
            ),
            (json!({"git": {"remote": "git@h:r"}}), &[]),
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
        ] {
            let read = serde_json::from_value(source.clone()).unwrap();
            let fields: Vec<_> = wrong(&read).into_iter().map(|(field, _)| field).collect();
            assert_eq!(fields, expected, "{source}");
        }
    }

    #[test]
    fn the_words_name_the_schemes_and_no_credentials() {
        assert_eq!(
            location("ftp://h/a", &["https", "s3"]).unwrap(),
            "ftp:// is not read here, but https://, s3://"
        );
        let said = location("https://user:geheim@h/a", &["https"]).unwrap();
        assert!(
            !said.contains("geheim") && said.contains("auth.secretRef"),
            "{said}"
        );
    }
}
