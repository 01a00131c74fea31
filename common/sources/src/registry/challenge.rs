//! How a registry wants requests to be authenticated, and what it wanted in the last run.

use http_auth::ChallengeRef;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use crate::cache::{Cache, Note};

/// Kind of the notes: the token server of a registry, which is public. Tokens are never written to disk.
const NOTES: &str = "registry-tokens";

/// What a registry asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A user name and a password.
    Basic,
    /// A token from a token server.
    Bearer {
        /// URL of the token server.
        realm: String,
        /// The registry's name there.
        service: String,
    },
}

impl Challenge {
    /// The first challenge that can be answered; a token before a password.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts: Vec<&str> = texts.filter_map(|value| value.to_str().ok()).collect();
        let mut is_basic = false;
        for text in texts {
            for read in http_auth::ChallengeParser::new(text) {
                // The rest of a malformed header cannot be read.
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

    /// The token server that the registry at `origin` named in the last run: asking it first saves a refused request.
    pub fn recall(cache: &Cache, origin: &str) -> Option<Self> {
        let note = cache.note(NOTES, origin)?;
        Some(Self::Bearer {
            realm: note.location?,
            service: note.resolved.unwrap_or_default(),
        })
    }

    /// Remembers it for the next run.
    pub fn remember(&self, cache: &Cache, origin: &str) {
        if let Self::Bearer { realm, service } = self
            && Self::recall(cache, origin).as_ref() != Some(self)
        {
            let note = Note {
                location: Some(realm.clone()),
                resolved: Some(service.clone()),
                ..Note::default()
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
