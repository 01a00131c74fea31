//! The last answer for a URL: its content, its `ETag` and its date.

use common::manifest::digest::sha256_trimmed;
use reqwest::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use url::Url;

use crate::Access;
use crate::cache::{Cache, Note};
use crate::http::{Condition, hashed};

use super::{Document, UrlError};

/// The last answer for one URL to one identity: what one Secret may read is not shown to others.
pub struct Known<'a> {
    cache: &'a Cache,
    key: String,
    last: Option<(Note, Vec<u8>)>,
}

impl<'a> Known<'a> {
    /// Looks into the cache; `identity` is the Secret, or another name for who asks.
    pub fn of(url: &str, identity: &str, access: &Access<'a>) -> Self {
        let key = format!("{url}\n{identity}");
        let last = || access.cache.noted("url", &key);
        let then = access
            .hash
            .and_then(|hash| access.cache.noted("url", &of_hash(&key, hash)));
        Self {
            cache: access.cache,
            last: then.or_else(last),
            key,
        }
    }

    /// The `ETag` of the last answer.
    pub fn etag(&self) -> Option<&str> {
        self.last.as_ref()?.0.etag.as_deref()
    }

    /// The headers that ask whether the last answer has changed. They are only for its URL: another redirect leads to another
    /// document, whatever its date.
    pub fn condition(&self) -> Option<Condition> {
        let (note, _) = self.last.as_ref()?;
        let headers = [
            (IF_NONE_MATCH, &note.etag),
            (IF_MODIFIED_SINCE, &note.last_modified),
        ];
        let headers = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?.parse().ok()?)));
        Some(Condition {
            url: note.url.clone()?,
            headers: headers.collect(),
        })
    }

    /// The last answer, if there is one.
    pub fn document(self, location: &str) -> Option<Document> {
        let (note, bytes) = self.last?;
        Some(Document {
            bytes,
            location: note.location.unwrap_or_else(|| location.to_owned()),
        })
    }

    /// The last answer, where no server may be asked.
    pub fn offline(self, location: &str) -> Result<Document, UrlError> {
        self.document(location).ok_or_else(|| UrlError::Offline {
            location: location.to_owned(),
        })
    }

    /// Keeps a new answer, and the URL that it came from, where that may differ from the one that was asked.
    pub fn keep(
        &self,
        document: &Document,
        url: Option<&Url>,
        etag: Option<String>,
        last_modified: Option<String>,
    ) {
        let note = Note {
            digest: self.cache.put(&document.bytes),
            resolved: None,
            etag,
            last_modified,
            location: Some(document.location.clone()),
            url: url.map(hashed),
        };
        self.cache.set_note("url", &self.key, &note);
        // The next answer replaces the note, and a rollback asks for this one.
        let hash = sha256_trimmed(&document.bytes);
        self.cache
            .set_note("url", &of_hash(&self.key, &hash), &note);
    }
}

/// The key of an answer that a `manifestHash` names.
fn of_hash(key: &str, hash: &str) -> String {
    format!("{key}\nsha256:{hash}")
}
