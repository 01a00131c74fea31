//! How a registry requires requests to be authenticated, also as remembered from the last run.

use http_auth::ChallengeRef;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use crate::cache::{CacheNote, SourceCache};

/// The kind of the cache notes that record the token server of a registry, which is public. Tokens are never
/// written to disk.
const NOTES: &str = "registry-tokens";

/// The credentials that a registry requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A user name and a password.
    Basic,
    /// A token from a token server.
    Bearer {
        /// The URL of the token server.
        realm: String,
        /// The name of the registry at the token server.
        service: String,
    },
}

impl Challenge {
    /// Parses the challenges of a response and returns one that can be answered. A token is preferred to a
    /// password.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts: Vec<&str> = texts.filter_map(|value| value.to_str().ok()).collect();
        let mut is_basic = false;
        for text in texts {
            for read in http_auth::ChallengeParser::new(text) {
                // The rest of a malformed header cannot be parsed.
                let Ok(read) = read else { break };
                if read.scheme.eq_ignore_ascii_case("bearer") {
                    let parameter = |name: &str| parameter(&read, name);
                    if let Some(realm) = parameter("realm") {
                        let service = parameter("service").unwrap_or_default();
                        return Some(Self::Bearer { realm, service });
                    }
                }
                is_basic |= read.scheme.eq_ignore_ascii_case("basic");
            }
        }
        is_basic.then_some(Self::Basic)
    }

    /// Returns the token server that the registry at `origin` named in the last run. Requesting a token first
    /// saves a refused request.
    pub fn recall(cache: &SourceCache, origin: &str) -> Option<Self> {
        let note = cache.note(NOTES, origin)?;
        Some(Self::Bearer {
            realm: note.location?,
            service: note.resolved.unwrap_or_default(),
        })
    }

    /// Stores the token server for the next run.
    pub fn remember(&self, cache: &SourceCache, origin: &str) {
        if let Self::Bearer { realm, service } = self
            && Self::recall(cache, origin).as_ref() != Some(self)
        {
            let note = CacheNote {
                location: Some(realm.clone()),
                resolved: Some(service.clone()),
                ..CacheNote::default()
            };
            cache.set_note(NOTES, origin, &note);
        }
    }
}

fn parameter(challenge: &ChallengeRef<'_>, name: &str) -> Option<String> {
    let mut parameters = challenge.params.iter();
    let found = parameters.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.to_unescaped())
}
