//! The Secret in which all replicas keep one authority, the next one and the certificates of the previous ones.
//!
//! | key | content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the authority that signs |
//! | `next.crt`, `next.key` | the one that will sign, once the API server trusts it |
//! | `previous-SECONDS.crt` | one that signs no more; its last certificate has expired at this Unix time |
//!
//! What cannot be used counts as missing, so a Secret that is empty, half-written or edited is repaired by the next write.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::authority::{self, Authority, IssueError};
use crate::rotation::{Due, Lifetimes};

/// Subject of our authorities.
const COMMON_NAME: &str = "addons-webhook-ca";
const CURRENT: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
/// Around the Unix time until which a certificate is announced.
const PREVIOUS: (&str, &str) = ("previous-", ".crt");

/// Content of the Secret.
#[derive(Debug, Default)]
pub struct Shared {
    /// The authority that signs.
    pub current: Option<Authority>,
    /// The one that will sign next.
    pub next: Option<Authority>,
    /// Those that do not sign any more.
    pub previous: BTreeSet<Previous>,
    /// The Secret does not say all of this: it was half-written, or has lost a certificate that is remembered.
    pub is_incomplete: bool,
}

/// The certificate of an authority that does not sign any more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Previous {
    /// When the last certificate that it signed has expired.
    pub until: Timestamp,
    /// Its own, PEM.
    pub certificate_pem: String,
}

/// Data of a Secret; what is wiped when dropped holds keys.
pub type Data = BTreeMap<String, Zeroizing<Vec<u8>>>;

impl Shared {
    /// Takes from the data of the Secret what can be used at `now`.
    #[must_use]
    pub fn read(data: &Data, now: Timestamp) -> Self {
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
                .filter(|authority| !authority.life().is_over(now));
            if place.is_none()
                && let Ok(life) = authority::life(certificate)
            {
                // It may have signed what is served, although its key is lost.
                shared.is_incomplete = true;
                shared.previous.insert(Previous {
                    until: life.end,
                    certificate_pem: certificate.to_owned(),
                });
            }
        }
        for key in data.keys() {
            if let Some(until) = until(key)
                && let Some(certificate) = text(key)
                && let Ok(life) = authority::life(certificate)
            {
                shared.previous.insert(Previous {
                    until: until.min(life.end),
                    certificate_pem: certificate.to_owned(),
                });
            }
        }
        shared
    }

    /// The data of the Secret with this content; keys that are not ours stay.
    #[must_use]
    pub fn write(&self, before: &Data) -> Data {
        let is_ours = |key: &String| {
            let pairs = [CURRENT.0, CURRENT.1, NEXT.0, NEXT.1];
            pairs.contains(&key.as_str()) || until(key).is_some()
        };
        let mut data: Data = before
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
            // Two that end in one second get a key each.
            seconds = previous.until.as_second().max(seconds.saturating_add(1));
            let key = format!("{}{seconds}{}", PREVIOUS.0, PREVIOUS.1);
            set(&key, &previous.certificate_pem);
        }
        data
    }

    /// All certificates that the API server has to trust, PEM: the same text for every replica.
    #[must_use]
    pub fn bundle(&self) -> String {
        let lines = self.certificates().flat_map(|pem| [pem.trim_end(), "\n"]);
        lines.collect()
    }

    /// Each of these certificates, PEM, the one that signs first.
    pub fn certificates(&self) -> impl Iterator<Item = &str> {
        let signing = [&self.current, &self.next].into_iter().flatten();
        let previous = self.previous.iter();
        signing
            .map(Authority::certificate_pem)
            .chain(previous.map(|previous| previous.certificate_pem.as_str()))
    }

    /// Keeps the certificate of an authority announced that has signed what is served here, if the Secret has lost it.
    pub fn remember(&mut self, certificate_pem: &str, until: Timestamp) {
        if self.certificates().all(|known| known != certificate_pem) {
            self.is_incomplete = true;
            self.previous.insert(Previous {
                until,
                certificate_pem: certificate_pem.to_owned(),
            });
        }
    }

    /// The content after what is due was done.
    ///
    /// # Errors
    /// [`IssueError`] where no authority can be made.
    pub fn advance(
        mut self,
        due: Due,
        now: Timestamp,
        lifetimes: &Lifetimes,
    ) -> Result<Self, IssueError> {
        let issue = || Authority::new(COMMON_NAME, now, lifetimes.authority).map(Some);
        match due {
            Due::Nothing | Due::Tidy => {}
            Due::First => self.current = issue()?,
            Due::Prepare => self.next = issue()?,
            Due::Promote => {
                let old = std::mem::replace(&mut self.current, self.next.take());
                if let Some(old) = old {
                    // Twice the life of what it has just signed: another replica may be signing at this moment.
                    let until = now.checked_add(lifetimes.leaf * 2);
                    self.previous.insert(Previous {
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

/// The time in the key of a previous certificate.
fn until(key: &str) -> Option<Timestamp> {
    let seconds = key.strip_prefix(PREVIOUS.0)?.strip_suffix(PREVIOUS.1)?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

#[cfg(test)]
mod tests;
