//! The last response for a URL in the cache: its content, its `ETag` and its date.

use common::manifest::digest::sha256_trimmed;
use reqwest::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use url::Url;

use crate::SourceAccess;
use crate::cache::{CacheNote, SourceCache};
use crate::http::{CacheCondition, hash_url};

use super::{FetchedDocument, UrlError};

/// The last response for one URL to one reader. Content that one Secret may read is not returned to other
/// readers.
pub struct LastAnswer<'a> {
    cache: &'a SourceCache,
    key: String,
    last: Option<(CacheNote, Vec<u8>)>,
}

impl<'a> LastAnswer<'a> {
    /// Reads the last response from the cache; `identity` identifies the reader.
    pub fn load(url: &str, identity: &str, access: &SourceAccess<'a>) -> Self {
        let key = format!("{url}\n{identity}");
        let last = || access.cache.lookup("url", &key);
        let then = access
            .hash
            .and_then(|hash| access.cache.lookup("url", &hash_key(&key, hash)));
        Self {
            cache: access.cache,
            last: then.or_else(last),
            key,
        }
    }

    /// The `ETag` of the last response.
    pub fn etag(&self) -> Option<&str> {
        self.last.as_ref()?.0.etag.as_deref()
    }

    /// The conditional headers that ask whether the content has changed. They are only valid for the URL of
    /// the last response, because a redirect to another URL leads to another document.
    pub fn condition(&self) -> Option<CacheCondition> {
        let (note, _) = self.last.as_ref()?;
        let headers = [
            (IF_NONE_MATCH, &note.etag),
            (IF_MODIFIED_SINCE, &note.last_modified),
        ];
        let headers = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?.parse().ok()?)));
        Some(CacheCondition {
            url: note.url.clone()?,
            headers: headers.collect(),
        })
    }

    /// Returns the last response as a document, if there is one.
    pub fn document(self, location: &str) -> Option<FetchedDocument> {
        let (note, bytes) = self.last?;
        Some(FetchedDocument {
            bytes,
            location: note.location.unwrap_or_else(|| location.to_owned()),
        })
    }

    /// Returns the last response when no request may be sent.
    pub fn offline(self, location: &str) -> Result<FetchedDocument, UrlError> {
        self.document(location).ok_or_else(|| UrlError::Offline {
            location: location.to_owned(),
        })
    }

    /// Stores a new response, with the URL after redirects if there can be any.
    pub fn store(
        &self,
        document: &FetchedDocument,
        url: Option<&Url>,
        etag: Option<String>,
        last_modified: Option<String>,
    ) {
        let note = CacheNote {
            digest: self.cache.put(&document.bytes),
            resolved: None,
            etag,
            last_modified,
            location: Some(document.location.clone()),
            url: url.map(hash_url),
        };
        self.cache.set_note("url", &self.key, &note);
        // The next response replaces the note above. A rollback finds this content by its hash.
        let hash = sha256_trimmed(&document.bytes);
        self.cache
            .set_note("url", &hash_key(&self.key, &hash), &note);
    }
}

/// The key of the response with this `manifestHash`.
fn hash_key(key: &str, hash: &str) -> String {
    format!("{key}\nsha256:{hash}")
}
