//! The commit and the path that a source names.

use common::api::catalogue::{GitRef, GitSource};

use super::Problem;
use super::objects::Oid;

/// What the ref of a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The main branch of the server.
    Head,
    /// A branch: followed.
    Branch(String),
    /// A tag, which can move too.
    Tag(String),
    /// A commit: fixed.
    Commit(Oid),
}

impl Wanted {
    /// Reads the ref of a source.
    ///
    /// # Errors
    /// Several fields or none, an abbreviated commit, or a name that git does not allow.
    pub fn of(source: &GitSource) -> Result<Self, Problem> {
        let bad = |why: String| Problem::BadRef { why };
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

    /// The full name of the ref; for a commit `HEAD`.
    pub fn full_name(&self) -> String {
        match self {
            Self::Head | Self::Commit(_) => "HEAD".to_owned(),
            Self::Branch(name) => format!("refs/heads/{name}"),
            Self::Tag(name) => format!("refs/tags/{name}"),
        }
    }

    /// The kind for messages, the prefix of its full names, and the name.
    pub fn parts(&self) -> Option<(&'static str, &'static str, &str)> {
        match self {
            Self::Head | Self::Commit(_) => None,
            Self::Branch(name) => Some(("branch", "refs/heads/", name)),
            Self::Tag(name) => Some(("tag", "refs/tags/", name)),
        }
    }

    /// The error for a ref that does not exist, with the names that do.
    pub fn missing(&self, names: &[&str]) -> Problem {
        match self.parts() {
            None => Problem::Unborn,
            Some((kind, _, name)) => Problem::Ref {
                kind,
                name: name.to_owned(),
                near: super::near(name, names),
            },
        }
    }
}

/// Whether git allows a name of a branch or tag (git-check-ref-format).
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

/// The parts of a path in the tree; empty for the whole tree.
///
/// # Errors
/// A path that leads out of it.
pub fn path(source: &GitSource) -> Result<Vec<String>, Problem> {
    let path = source.path.as_deref().unwrap_or_default();
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<String> = parts.map(str::to_owned).collect();
    if path.starts_with('/')
        || path.contains(['\\', '\0', '\n'])
        || parts.iter().any(|part| part == "..")
    {
        return Err(Problem::Outside {
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
        let of = |branch, tag, commit| Wanted::of(&source(branch, tag, commit, ""));
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
            Wanted::Commit(_)
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
                matches!(error, Problem::BadRef { .. }),
                "{branch:?} {tag:?} {commit:?}"
            );
        }
    }

    #[test]
    fn paths() {
        let of = |text| path(&source(None, None, None, text));
        for (text, want) in [
            ("", vec![]),
            (".", vec![]),
            ("a/b/", vec!["a", "b"]),
            ("./a//b", vec!["a", "b"]),
        ] {
            assert_eq!(of(text).unwrap(), want, "{text}");
        }
        for text in ["..", "../x", "a/../b", "/etc", "a\\b", "a\0"] {
            assert!(matches!(of(text), Err(Problem::Outside { .. })), "{text:?}");
        }
    }
}
