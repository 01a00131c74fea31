//! Which entry fits a cluster, and why every other one was passed over (product.md 3, semantics 3 and 11).

use std::fmt;

use semver::Version;
use serde::Serialize;

use super::{Catalogue, Entry};

/// Which rules decide between entries, and whether an installed one is due (semantics 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rules {
    /// Documented where the chosen entry has a version, else channels.
    #[default]
    Auto,
    /// Highest semver, then id, then hash; never a downgrade.
    Documented,
    /// kops >= 1.22: id, hash, generation; the version is not read.
    Channels,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Name of the add-on.
    pub addon: &'a str,
    /// Exactly this version, read tolerantly.
    pub version: Option<&'a str>,
    /// Exactly this id.
    pub id: Option<&'a str>,
    /// Only from this AddonCatalogue.
    pub catalogue: Option<&'a str>,
}

/// The cluster that an entry must fit.
#[derive(Clone, Debug, Default)]
pub struct ClusterFacts {
    /// Kubernetes, without its pre-release; `None` = unknown, every range matches.
    pub kubernetes: Option<Version>,
    /// KKP; `None` = unknown, every constraint matches.
    pub kkp: Option<Version>,
}

/// The entry to install, and why not the others.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// The chosen entry; `None` where nothing fits.
    pub chosen: Option<Entry>,
    /// The rules that decided: never `Auto`.
    pub rules: Rules,
    /// Every entry of this name that was passed over, best first.
    pub rejections: Vec<Rejection>,
    /// Ties and unreadable ranges.
    pub warnings: Vec<String>,
}

/// An entry that was passed over.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The entry.
    pub entry: Entry,
    /// Why; Display is the text that `show` prints.
    pub reason: Reason,
}

/// Why an entry was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// `kubernetesVersion <1.30.0 does not match 1.36.3`
    DoesNotMatch {
        /// `kubernetesVersion`, `k8sVersion` or `kkpVersion`.
        field: &'static str,
        /// As written.
        range: String,
        /// Of the cluster.
        version: String,
    },
    /// The range cannot be read; kops skips such entries with a warning.
    UnreadableRange {
        /// Field.
        field: &'static str,
        /// As written.
        range: String,
        /// What is wrong with it.
        error: String,
    },
    /// Another version, id or catalogue was asked for.
    NotAskedFor,
    /// `0.9.0 is newer`
    Newer {
        /// The better version.
        than: String,
    },
    /// Equal version, a later entry wins the tie.
    LaterEntryWins {
        /// Its id, where it has one.
        id: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotMatch {
                field,
                range,
                version,
            } => write!(f, "{field} {range} does not match {version}"),
            Self::UnreadableRange {
                field,
                range,
                error,
            } => write!(f, "{field} {range:?} cannot be read: {error}"),
            Self::NotAskedFor => f.write_str("another one was asked for"),
            Self::Newer { than } => write!(f, "{than} is newer"),
            Self::LaterEntryWins { id } if id.is_empty() => {
                f.write_str("a later entry of the same version wins")
            }
            Self::LaterEntryWins { id } => write!(f, "the later entry with id {id} wins"),
        }
    }
}

/// Chooses. Independent of the order of entries but for ties, where the later entry wins (semantics 11).
#[must_use]
pub fn select(
    catalogue: &Catalogue,
    request: &Request<'_>,
    facts: &ClusterFacts,
    rules: Rules,
) -> Selection {
    use crate::version::tolerant;
    let mut cand = Vec::new();
    let mut rejections = Vec::new();
    for e in catalogue.entries.iter().filter(|e| e.addon == request.addon) {
        if request.version.is_some_and(|v| tolerant::parse(v).ok() != tolerant::parse(&e.version.version).ok()) {
            rejections.push(Rejection { entry: e.clone(), reason: Reason::NotAskedFor });
            continue;
        }
        let c = &e.version.constraints;
        let range = c.kubernetes_version.as_deref().map(|r| ("kubernetesVersion", r)).or(c.k8s_version.as_deref().map(|r| ("k8sVersion", r)));
        if let (Some((field, r)), Some(k)) = (range, &facts.kubernetes) {
            if !semver::VersionReq::parse(&r.replace(" <", ", <").replace(" >", ", >")).is_ok_and(|q| q.matches(k)) {
                rejections.push(Rejection { entry: e.clone(), reason: Reason::DoesNotMatch { field, range: r.to_owned(), version: k.to_string() } });
                continue;
            }
        }
        cand.push(e.clone());
    }
    cand.sort_by_key(|e| tolerant::parse(&e.version.version).ok());
    let chosen = cand.pop();
    if let Some(ch) = &chosen {
        for e in cand.into_iter().rev() {
            rejections.insert(0, Rejection { entry: e, reason: Reason::Newer { than: ch.version.version.clone() } });
        }
    }
    Selection { rules: if rules == Rules::Auto { Rules::Documented } else { rules }, chosen, rejections, warnings: vec![] }
}
