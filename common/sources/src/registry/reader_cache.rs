//! The cached contents of a repository, by reader.
//!
//! A digest identifies the same content for all readers, but not all may read it (semantics 16). Knowing the
//! digest of a manifest or layer must not give access to what another reader fetched with a Secret. The cache
//! therefore has a note for each content that a reader fetched, and only these are read.

use common::image::Image;

use super::{reader_key, repository};
use crate::SourceAccess;
use crate::cache::{CacheNote, SourceCache};

/// The kind of the notes in the cache.
const NOTES: &str = "registry";

/// The cached contents that one reader fetched from a repository.
#[derive(Clone)]
pub struct ReaderCache<'a> {
    cache: &'a SourceCache,
    /// The repository and its reader; see [`reader_key`].
    reader: String,
}

impl<'a> ReaderCache<'a> {
    /// Returns the cached contents of a repository for the reader of `access`.
    pub fn new(reference: &Image, plain_http: bool, access: &SourceAccess<'a>) -> Self {
        let reader = format!(
            "{}{}",
            repository(reference),
            reader_key(reference, plain_http, access)
        );
        Self {
            cache: access.cache,
            reader,
        }
    }

    /// Returns the content with this sha256 if the reader fetched it before.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let (note, bytes) = self.cache.lookup(NOTES, &self.key(digest))?;
        (note.digest == digest).then_some(bytes)
    }

    /// Stores content that the reader fetched. Must only be called after the digest was verified; otherwise a
    /// server could claim content that it never sent.
    pub fn put(&self, bytes: &[u8]) {
        let note = CacheNote {
            digest: self.cache.put(bytes),
            ..CacheNote::default()
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
        cache: &'a SourceCache,
        image: &str,
        plain_http: bool,
        reach: &'a Reach,
    ) -> ReaderCache<'a> {
        let access = SourceAccess {
            cache,
            offline: true,
            hash: None,
            reach,
            credentials: None,
            kustomize: None,
        };
        ReaderCache::new(&reference(image).unwrap(), plain_http, &access)
    }

    #[test]
    fn cached_content_is_only_returned_to_the_reader_that_fetched_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SourceCache::new(Some(folder.path().join("cache")));
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
