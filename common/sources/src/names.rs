//! Titles of sources, lists of names in messages, and paths below other paths.

use common::api::catalogue::{GitRef, NotOneKind, Source, SourceKind};
use common::image::without_user;
use common::text::list_first;

use super::url::redact_location;

/// The title of a source in messages, without credentials: `git REMOTE@REF:PATH`, `image IMAGE:PATH`,
/// `chart CHART VERSION of URL`, a URL or `inline`.
pub fn title(source: &Source) -> String {
    let below = |path: &Option<String>| match path {
        Some(path) => format!(":{path}"),
        None => String::new(),
    };
    match source.kind() {
        Ok(SourceKind::Git(git)) => {
            let name = git.r#ref.as_ref().and_then(ref_name);
            let name = name.map(|name| format!("@{name}")).unwrap_or_default();
            let remote = redact_location(&git.remote);
            format!("git {remote}{name}{}", below(&git.path))
        }
        Ok(SourceKind::Docker(docker)) => {
            let image = without_user(&docker.image);
            format!("image {image}{}", below(&docker.path))
        }
        Ok(SourceKind::Helm(helm)) => {
            let version = helm.version.as_deref().unwrap_or_default();
            let chart = format!("{} {version}", helm.chart);
            format!("chart {} of {}", chart.trim(), redact_location(&helm.url))
        }
        Ok(SourceKind::Url(url)) => redact_location(&url.manifest),
        Ok(SourceKind::Inline(_)) => "inline".to_owned(),
        Ok(SourceKind::Catalogue(of)) => format!("AddonCatalogue {}/{}", of.namespace, of.name),
        Err(NotOneKind) => "not one source".to_owned(),
    }
}

fn ref_name(git_ref: &GitRef) -> Option<&str> {
    let GitRef {
        branch,
        tag,
        commit,
    } = git_ref;
    let name = branch.as_ref().or(tag.as_ref()).or(commit.as_ref());
    name.map(String::as_str)
}

/// Lists at most `most` names, as in `a, b and 3 more`. Returns `nothing` if there are none.
pub fn list_names<S: ToString>(
    names: impl ExactSizeIterator<Item = S>,
    most: usize,
    nothing: &str,
) -> String {
    match names.len() {
        0 => nothing.to_owned(),
        _ => list_first(names, most),
    }
}

/// Whether `path` is `folder` or below it. Every path is below the empty folder.
pub fn is_within(path: &str, folder: &str) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn titles_have_no_credentials() {
        for (source, expected) in [
            (
                json!({"git": {"remote": "https://u:p@h/r", "ref": {"tag": "v1"}, "path": "a/b"}}),
                "git https://h/r@v1:a/b",
            ),
            (json!({"git": {"remote": "https://h/r"}}), "git https://h/r"),
            (
                json!({"docker": {"image": "h/i:1", "path": "/a"}}),
                "image h/i:1:/a",
            ),
            (json!({"docker": {"image": "u:p@h/i:1"}}), "image …@h/i:1"),
            (
                json!({"helm": {"url": "oci://h/charts", "chart": "web", "version": "1.2.0"}}),
                "chart web 1.2.0 of oci://h/charts",
            ),
            (
                json!({"helm": {"url": "https://h/charts", "chart": "web"}}),
                "chart web of https://h/charts",
            ),
            (json!({"url": {"manifest": "a.yaml"}}), "a.yaml"),
            (
                json!({"url": {"manifest": "https://h/a.yaml?sig=1"}}),
                "https://h/a.yaml?...",
            ),
            (json!({"inline": {"manifest": "a: b"}}), "inline"),
        ] {
            let source: Source = serde_json::from_value(source).unwrap();
            assert_eq!(title(&source), expected);
        }
    }

    #[test]
    fn lists_are_short() {
        for (names, expected) in [
            (&[][..], "none"),
            (&["a"], "a"),
            (&["a", "b"], "a, b"),
            (&["a", "b", "c", "d"], "a, b and 2 more"),
        ] {
            assert_eq!(list_names(names.iter(), 2, "none"), expected);
        }
    }
}
