//! The contents of a repository that are in the cache.
//!
//! A digest means the same content for everyone, but not everyone may read it (semantics 16): who only knows the digest of a manifest or
//! of a layer does not get what a Secret opened for somebody else. So what a reader got is noted, and only this is read from the cache.

use common::image::Image;

use super::{repository, seen_by};
use crate::Access;
use crate::cache::{Cache, Note};

/// The kind of the notes in the cache.
const NOTES: &str = "registry";

/// What one reader got from a repository.
#[derive(Clone)]
pub struct Contents<'a> {
    cache: &'a Cache,
    /// The repository, and who reads it: see [`seen_by`].
    reader: String,
}

impl<'a> Contents<'a> {
    /// Those of a repository.
    pub fn new(reference: &Image, plain_http: bool, access: &Access<'a>) -> Self {
        let reader = format!(
            "{}{}",
            repository(reference),
            seen_by(reference, plain_http, access)
        );
        Self {
            cache: access.cache,
            reader,
        }
    }

    /// The content with that sha256, if this reader got it before.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let (note, bytes) = self.cache.noted(NOTES, &self.key(digest))?;
        (note.digest == digest).then_some(bytes)
    }

    /// Keeps what this reader got. Call it only after the digest was verified: otherwise a server could claim content that it never
    /// sent.
    pub fn put(&self, bytes: &[u8]) {
        let note = Note {
            digest: self.cache.put(bytes),
            ..Note::default()
        };
        self.cache.set_note(NOTES, &self.key(&note.digest), &note);
    }

    fn key(&self, digest: &str) -> String {
        format!("{digest} {}", self.reader)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use common::catalogue::author::Typed;

    use super::*;
    use crate::Reach;
    use crate::registry::reference;

    fn contents<'a>(
        cache: &'a Cache,
        image: &str,
        plain_http: bool,
        reach: &'a Reach,
    ) -> Contents<'a> {
        let access = Access {
            cache,
            offline: true,
            hash: None,
            reach,
            credentials: None,
            kustomize: None,
        };
        Contents::new(&reference(image).unwrap(), plain_http, &access)
    }

    #[test]
    fn what_one_reader_got_is_in_the_cache_for_this_reader_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().join("cache")));
        let bytes = b"a layer";
        let opened = Arc::default();
        let typed = Reach::typed(
            &Typed::on_command_line("oci://r.example/private:1"),
            &opened,
        );
        let tenant = Reach::tenant();
        contents(&cache, "r.example/private:1", false, &typed).put(bytes);
        let digest = cache.put(bytes);
        for (image, plain_http, reach, expected) in [
            ("r.example/private:1", false, &typed, true),
            ("r.example/private:2", false, &typed, true),
            ("r.example/public:1", false, &typed, false),
            ("r.example/private:1", true, &typed, false),
            ("r.example/private:1", false, &tenant, false),
        ] {
            let found = contents(&cache, image, plain_http, reach).get(&digest);
            assert_eq!(found.is_some(), expected, "{image} {plain_http} {reach:?}");
        }
    }
}
