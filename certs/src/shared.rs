//! The content of the Secret in which all replicas keep the current authority, the next one, and the certificates of previous ones.
//!
//! | key | content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the authority that signs |
//! | `next.crt`, `next.key` | the authority that will sign once the API server trusts it |
//! | `previous-SECONDS.crt` | a former authority; the last certificate that it signed expires at this Unix time |
//!
//! Unusable data counts as missing, so the next write repairs a Secret that is empty, half-written or edited.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::authority::{self, Authority, IssueError};
use crate::rotation::{Lifetimes, RotationStep};

/// Subject of our authorities.
const COMMON_NAME: &str = "addons-webhook-ca";
const CURRENT: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
/// Prefix and suffix of the key of a previous certificate; between them is the Unix time until which it is announced.
const PREVIOUS: (&str, &str) = ("previous-", ".crt");

/// The authorities in the Secret.
#[derive(Debug, Default)]
pub struct SharedAuthorities {
    /// The authority that signs.
    pub current: Option<Authority>,
    /// The authority that will sign next.
    pub next: Option<Authority>,
    /// The authorities that do not sign any more.
    pub previous: BTreeSet<PreviousAuthority>,
    /// Whether the Secret lacks some of this: it was half-written, or has lost a certificate that this replica remembers.
    pub is_incomplete: bool,
}

/// The certificate of an authority that does not sign any more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PreviousAuthority {
    /// Expiry of the last certificate that it signed.
    pub until: Timestamp,
    /// Its own certificate, PEM.
    pub certificate_pem: String,
}

/// Data of a Secret. It is wiped from memory when dropped, because it contains keys.
pub type SecretData = BTreeMap<String, Zeroizing<Vec<u8>>>;

impl SharedAuthorities {
    /// Reads the data of the Secret, and skips what cannot be used at `now`.
    #[must_use]
    pub fn read(data: &SecretData, now: Timestamp) -> Self {
        let mut shared = Self::default();
        let text = |key: &str| std::str::from_utf8(data.get(key)?).ok();
        for ((certificate, key), place) in
            [(CURRENT, &mut shared.current), (NEXT, &mut shared.next)]
        {
            let Some(certificate) = text(certificate) else {
                continue;
            };
            *place = text(key)
                .and_then(|key| Authority::read(certificate, key).ok())
                .filter(|authority| !authority.life().is_expired(now));
            if place.is_none()
                && let Ok(life) = authority::read_life(certificate)
            {
                // The authority may have signed a certificate that is still served, although its key is lost.
                shared.is_incomplete = true;
                shared.previous.insert(PreviousAuthority {
                    until: life.end,
                    certificate_pem: certificate.to_owned(),
                });
            }
        }
        for key in data.keys() {
            if let Some(until) = parse_previous_key(key)
                && let Some(certificate) = text(key)
                && let Ok(life) = authority::read_life(certificate)
            {
                shared.previous.insert(PreviousAuthority {
                    until: until.min(life.end),
                    certificate_pem: certificate.to_owned(),
                });
            }
        }
        shared
    }

    /// Returns the data of the Secret with this content. Keys that are not ours stay.
    #[must_use]
    pub fn write(&self, before: &SecretData) -> SecretData {
        let is_ours = |key: &String| {
            let pairs = [CURRENT.0, CURRENT.1, NEXT.0, NEXT.1];
            pairs.contains(&key.as_str()) || parse_previous_key(key).is_some()
        };
        let mut data: SecretData = before
            .iter()
            .filter(|(key, _)| !is_ours(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut set = |key: &str, text: &str| {
            data.insert(key.to_owned(), Zeroizing::new(text.as_bytes().to_vec()));
        };
        for ((certificate, key), authority) in [(CURRENT, &self.current), (NEXT, &self.next)] {
            if let Some(authority) = authority {
                set(certificate, authority.certificate_pem());
                set(key, &authority.key_pem());
            }
        }
        let mut seconds = i64::MIN;
        for previous in &self.previous {
            // Authorities with the same expiry get different keys.
            seconds = previous.until.as_second().max(seconds.saturating_add(1));
            let key = format!("{}{seconds}{}", PREVIOUS.0, PREVIOUS.1);
            set(&key, &previous.certificate_pem);
        }
        data
    }

    /// Returns all certificates that the API server has to trust, as PEM. The text is the same for every replica.
    #[must_use]
    pub fn bundle(&self) -> String {
        let lines = self.certificates().flat_map(|pem| [pem.trim_end(), "\n"]);
        lines.collect()
    }

    /// Iterates over these certificates (PEM), the signing one first.
    pub fn certificates(&self) -> impl Iterator<Item = &str> {
        let signing = [&self.current, &self.next].into_iter().flatten();
        let previous = self.previous.iter();
        signing
            .map(Authority::certificate_pem)
            .chain(previous.map(|previous| previous.certificate_pem.as_str()))
    }

    /// Keeps announcing the authority that signed the certificate served here, if the Secret has lost it.
    pub fn keep_announcing(&mut self, certificate_pem: &str, until: Timestamp) {
        if self.certificates().all(|known| known != certificate_pem) {
            self.is_incomplete = true;
            self.previous.insert(PreviousAuthority {
                until,
                certificate_pem: certificate_pem.to_owned(),
            });
        }
    }

    /// Returns the content after the step that is due.
    ///
    /// # Errors
    /// [`IssueError`] if a new authority cannot be issued.
    pub fn advance(
        mut self,
        due: RotationStep,
        now: Timestamp,
        lifetimes: &Lifetimes,
    ) -> Result<Self, IssueError> {
        let issue = || Authority::new(COMMON_NAME, now, lifetimes.authority).map(Some);
        match due {
            RotationStep::Nothing | RotationStep::Tidy => {}
            RotationStep::First => self.current = issue()?,
            RotationStep::Prepare => self.next = issue()?,
            RotationStep::Promote => {
                let old = std::mem::replace(&mut self.current, self.next.take());
                if let Some(old) = old {
                    // Twice the lifetime of a certificate, because another replica may be signing one right now.
                    let until = now.checked_add(lifetimes.leaf * 2);
                    self.previous.insert(PreviousAuthority {
                        until: until.unwrap_or(old.life().end).min(old.life().end),
                        certificate_pem: old.certificate_pem().to_owned(),
                    });
                }
            }
        }
        self.previous.retain(|previous| previous.until > now);
        self.is_incomplete = false;
        Ok(self)
    }
}

/// Parses the time in the key of a previous certificate.
fn parse_previous_key(key: &str) -> Option<Timestamp> {
    let seconds = key.strip_prefix(PREVIOUS.0)?.strip_suffix(PREVIOUS.1)?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

#[cfg(test)]
mod tests;
