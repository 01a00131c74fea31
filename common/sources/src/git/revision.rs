//! Parses the ref and the path of a source.

use common::api::catalogue::{GitRef, GitSource};

use super::GitProblem;
use super::objects::Oid;

/// The revision that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitRevision {
    /// The default branch of the server.
    Head,
    /// A branch, which moves.
    Branch(String),
    /// A tag, which can move.
    Tag(String),
    /// A commit, which never changes.
    Commit(Oid),
}

impl GitRevision {
    /// Parses the ref of a source.
    ///
    /// # Errors
    /// The ref has several fields or none, an abbreviated commit, or a name that git does not allow.
    pub fn parse(source: &GitSource) -> Result<Self, GitProblem> {
        let bad = |why: String| GitProblem::BadRef { why };
        let checked = |name: &String| {
            is_name(name)
                .then(|| name.clone())
                .ok_or_else(|| bad(format!("{name:?} is not a valid name of a branch or tag")))
        };
        let Some(GitRef {
            branch,
            tag,
            commit,
        }) = &source.r#ref
        else {
            return Ok(Self::Head);
        };
        match (branch, tag, commit) {
            (Some(name), None, None) => checked(name).map(Self::Branch),
            (None, Some(name), None) => checked(name).map(Self::Tag),
            (None, None, Some(id)) => Oid::parse(id)
                .map(Self::Commit)
                .ok_or_else(|| {
                    bad(format!(
                        "commit {id:?} is not a full commit id; give all 40 digits, as git rev-parse prints them"
                    ))
                }),
            _ => Err(bad("give exactly one of branch, tag and commit".to_owned())),
        }
    }

    /// The full name of the ref; `HEAD` for a commit.
    pub fn full_name(&self) -> String {
        match self {
            Self::Head | Self::Commit(_) => "HEAD".to_owned(),
            Self::Branch(name) => format!("refs/heads/{name}"),
            Self::Tag(name) => format!("refs/tags/{name}"),
        }
    }

    /// The kind of the ref for messages, the prefix of full names of this kind, and the name.
    pub fn parts(&self) -> Option<(&'static str, &'static str, &str)> {
        match self {
            Self::Head | Self::Commit(_) => None,
            Self::Branch(name) => Some(("branch", "refs/heads/", name)),
            Self::Tag(name) => Some(("tag", "refs/tags/", name)),
        }
    }

    /// The error for a ref that does not exist; `names` are those that do.
    pub fn missing(&self, names: &[&str]) -> GitProblem {
        match self.parts() {
            None => GitProblem::Unborn,
            Some((kind, _, name)) => GitProblem::Ref {
                kind,
                name: name.to_owned(),
                near: super::suggest_names(name, names),
            },
        }
    }
}

/// Whether git allows this name of a branch or tag (git-check-ref-format).
fn is_name(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let is_odd = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    name.split('/').all(is_part)
        && !name.contains(is_odd)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
}

/// Parses the path of a source into its parts. The whole tree has none.
///
/// # Errors
/// The path leads out of the tree.
pub fn parse_path(source: &GitSource) -> Result<Vec<String>, GitProblem> {
    let path = source.path.as_deref().unwrap_or_default();
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<String> = parts.map(str::to_owned).collect();
    if path.starts_with('/')
        || path.contains(['\\', '\0', '\n'])
        || parts.iter().any(|part| part == "..")
    {
        return Err(GitProblem::Outside {
            path: path.to_owned(),
        });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(
        branch: Option<&str>,
        tag: Option<&str>,
        commit: Option<&str>,
        path: &str,
    ) -> GitSource {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        GitSource {
            remote: "https://example.com/a".to_owned(),
            r#ref: Some(GitRef {
                branch: owned(branch),
                tag: owned(tag),
                commit: owned(commit),
            }),
            path: Some(path.to_owned()),
            auth: None,
        }
    }

    #[test]
    fn refs() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let of = |branch, tag, commit| GitRevision::parse(&source(branch, tag, commit, ""));
        assert_eq!(
            of(Some("a/b"), None, None).unwrap().full_name(),
            "refs/heads/a/b"
        );
        assert_eq!(
            of(None, Some("v1"), None).unwrap().full_name(),
            "refs/tags/v1"
        );
        assert!(matches!(
            of(None, None, Some(id)).unwrap(),
            GitRevision::Commit(_)
        ));
        for (branch, tag, commit) in [
            (None, None, None),
            (Some("a"), Some("b"), None),
            (Some("a"), None, Some(id)),
            (None, None, Some("0123456")),
            (Some("a b"), None, None),
            (Some("a\nb"), None, None),
            (Some("../a"), None, None),
            (Some("a/"), None, None),
            (Some("a.lock"), None, None),
            (Some("a@{1}"), None, None),
            (Some(""), None, None),
        ] {
            let error = of(branch, tag, commit).unwrap_err();
            assert!(
                matches!(error, GitProblem::BadRef { .. }),
                "{branch:?} {tag:?} {commit:?}"
            );
        }
    }

    #[test]
    fn paths() {
        let of = |text| parse_path(&source(None, None, None, text));
        for (text, want) in [
            ("", vec![]),
            (".", vec![]),
            ("a/b/", vec!["a", "b"]),
            ("./a//b", vec!["a", "b"]),
        ] {
            assert_eq!(of(text).unwrap(), want, "{text}");
        }
        for text in ["..", "../x", "a/../b", "/etc", "a\\b", "a\0"] {
            assert!(
                matches!(of(text), Err(GitProblem::Outside { .. })),
                "{text:?}"
            );
        }
    }
}
