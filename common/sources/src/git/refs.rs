//! Parses the refs of a repository from the output of `git ls-remote` and `git show-ref`.

use super::GitProblem;
use super::objects::Oid;
use super::revision::GitRevision;

/// The suffix of the line with the commit of an annotated tag.
const PEELED: &str = "^{}";

/// The object that a ref names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedRef {
    /// The commit.
    pub commit: Oid,
    /// The object to request: the commit, or its annotated tag.
    pub want: Oid,
}

/// The names and objects of all refs.
#[derive(Debug)]
pub struct Refs(Vec<(String, Oid)>);

impl Refs {
    /// Parses lines of an id and a name. Names that are not UTF-8 are skipped.
    pub fn parse(listing: &[u8]) -> Self {
        let lines = listing.split(|byte| *byte == b'\n');
        let refs = lines.filter_map(|line| {
            let (id, name) = std::str::from_utf8(line).ok()?.split_once(['\t', ' '])?;
            Some((name.to_owned(), Oid::parse(id)?))
        });
        Self(refs.collect())
    }

    /// Finds the commit that a branch, a tag or HEAD names.
    ///
    /// # Errors
    /// The ref does not exist. The error lists names that do.
    pub fn find(&self, wanted: &GitRevision) -> Result<ResolvedRef, GitProblem> {
        let name = wanted.full_name();
        let Some(want) = self.get(&name) else {
            let prefix = wanted.parts().map(|(_, prefix, _)| prefix);
            let names = self.0.iter().filter_map(|(full, _)| {
                let name = full.strip_prefix(prefix?)?;
                (!name.ends_with(PEELED)).then_some(name)
            });
            return Err(wanted.missing(&names.collect::<Vec<_>>()));
        };
        let commit = self.get(&format!("{name}{PEELED}")).unwrap_or(want);
        Ok(ResolvedRef {
            commit: commit.clone(),
            want: want.clone(),
        })
    }

    /// Returns the objects of all refs without duplicates.
    pub fn tips(&self) -> Vec<Oid> {
        let named = self.0.iter().filter(|(name, _)| !name.ends_with(PEELED));
        let mut tips: Vec<Oid> = named.map(|(_, id)| id.clone()).collect();
        tips.sort_unstable();
        tips.dedup();
        tips
    }

    fn get(&self, name: &str) -> Option<&Oid> {
        let found = self.0.iter().find(|(full, _)| full == name);
        found.map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(40));
        let remote = format!(
            "{a}\tHEAD\n{a}\trefs/heads/main\n{b}\trefs/tags/v1\n{c}\trefs/tags/v1^{{}}\n{c}\trefs/tags/\u{fffd}\nx\n"
        );
        for listing in [remote.clone(), remote.replace('\t', " ")] {
            let refs = Refs::parse(listing.as_bytes());
            let named = |wanted: &GitRevision| {
                let named = refs.find(wanted)?;
                Ok::<_, GitProblem>((named.commit.to_string(), named.want.to_string()))
            };
            assert_eq!(named(&GitRevision::Head).unwrap(), (a.clone(), a.clone()));
            let tag = GitRevision::Tag("v1".to_owned());
            assert_eq!(named(&tag).unwrap(), (c.clone(), b.clone()));
            let gone = named(&GitRevision::Tag("v2".to_owned()))
                .unwrap_err()
                .to_string();
            assert_eq!(gone, "it has no tag \"v2\"; did you mean \"v1\"?");
            assert_eq!(refs.tips().len(), 3);
        }
        assert!(matches!(
            Refs::parse(b"").find(&GitRevision::Head),
            Err(GitProblem::Unborn)
        ));
    }
}
