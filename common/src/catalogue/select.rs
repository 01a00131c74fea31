//! Which entry fits a cluster, and why every other one was passed over (product.md 3, semantics 3 and 11).

use std::fmt;

use semver::Version;
use serde::Serialize;

use super::replaces::{Recorded, channels, documented};
use super::{Catalogue, Entry, Origin};
use crate::version::constraint::Constraint;
use crate::version::range::Range;
use crate::version::tolerant;

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
///
/// With [`Rules::Auto`] the documented rules hold where any fitting entry has a version: then entries without one cannot be
/// chosen before it. Today's kops indexes carry no version at all, and the rules of kops 1.22 hold.
#[must_use]
pub fn select(catalogue: &Catalogue, request: &Request<'_>, facts: &ClusterFacts, rules: Rules) -> Selection {
    let mut rejections = Vec::new();
    let mut warnings = Vec::new();
    let mut fitting: Vec<&Entry> = Vec::new();
    for entry in catalogue.entries.iter().filter(|entry| entry.addon == request.addon) {
        match misfit(entry, request, facts) {
            None => fitting.push(entry),
            Some(reason) => {
                if matches!(reason, Reason::UnreadableRange { .. }) {
                    warnings.push(format!("{} {} in {}: {reason}; it is passed over", entry.addon, entry.place, entry.origin));
                }
                rejections.push(Rejection { entry: entry.clone(), reason });
            }
        }
    }
    let versioned = fitting.iter().any(|entry| !entry.version.version.is_empty());
    let rules = match rules {
        Rules::Auto if versioned => Rules::Documented,
        Rules::Auto => Rules::Channels,
        forced => forced,
    };
    let mut chosen: Option<&Entry> = None;
    for entry in fitting {
        let Some(best) = chosen else {
            chosen = Some(entry);
            continue;
        };
        let (old, new) = (recorded(best), recorded(entry));
        let wins = if rules == Rules::Channels { channels(old, new) } else { documented(old, new) };
        let (winner, loser) = if wins { (entry, best) } else { (best, entry) };
        chosen = Some(winner);
        let tie = rules == Rules::Documented && same_version(winner, loser);
        if tie && wins {
            warnings.push(format!(
                "{} {} stands at {} and at {}; the later one is taken",
                entry.addon, entry.version.version, best.place, entry.place
            ));
        }
        let reason = if tie || rules == Rules::Channels {
            Reason::LaterEntryWins { id: winner.version.id.clone() }
        } else {
            Reason::Newer { than: winner.version.version.clone() }
        };
        rejections.push(Rejection { entry: loser.clone(), reason });
    }
    // What lost against an entry that lost later itself is told against the one that won.
    if let Some(best) = chosen {
        for rejection in &mut rejections {
            if let Reason::Newer { than } = &mut rejection.reason {
                than.clone_from(&best.version.version);
            }
        }
    }
    rejections.sort_by(|a, b| order(&b.entry).cmp(&order(&a.entry)));
    Selection { chosen: chosen.cloned(), rules, rejections, warnings }
}

/// Why an entry cannot be chosen at all.
fn misfit(entry: &Entry, request: &Request<'_>, facts: &ClusterFacts) -> Option<Reason> {
    let asked = |asked: Option<&str>, is: bool| asked.is_none() || is;
    let is_version = request.version.is_some_and(|version| is_same(version, &entry.version.version));
    let is_id = request.id == Some(entry.version.id.as_str());
    let is_catalogue = match (&*entry.origin, request.catalogue) {
        (Origin::Catalogue { name, .. }, Some(asked)) => name == asked,
        _ => false,
    };
    if !asked(request.version, is_version) || !asked(request.id, is_id) || !asked(request.catalogue, is_catalogue) {
        return Some(Reason::NotAskedFor);
    }
    let constraints = &entry.version.constraints;
    let kubernetes = facts.kubernetes.as_ref().map(released);
    let kkp = facts.kkp.as_ref();
    blang("kubernetesVersion", constraints.kubernetes_version.as_deref(), kubernetes.as_ref())
        .or_else(|| masterminds("k8sVersion", constraints.k8s_version.as_deref(), kubernetes.as_ref()))
        .or_else(|| masterminds("kkpVersion", constraints.kkp_version.as_deref(), kkp))
}

/// The cluster's pre-release is dropped, so that 1.6.0-beta.1 matches >=1.6.0 (semantics 3).
fn released(version: &Version) -> Version {
    Version::new(version.major, version.minor, version.patch)
}

fn blang(field: &'static str, range: Option<&str>, version: Option<&Version>) -> Option<Reason> {
    let (range, version) = (range.filter(|range| !range.trim().is_empty())?, version?);
    match Range::parse(range) {
        Ok(parsed) if parsed.matches(version) => None,
        Ok(_) => Some(Reason::DoesNotMatch { field, range: range.to_owned(), version: version.to_string() }),
        Err(error) => Some(Reason::UnreadableRange { field, range: range.to_owned(), error: error.to_string() }),
    }
}

fn masterminds(field: &'static str, range: Option<&str>, version: Option<&Version>) -> Option<Reason> {
    let (range, version) = (range.filter(|range| !range.trim().is_empty())?, version?);
    match Constraint::parse(range) {
        Ok(parsed) if parsed.matches(version) => None,
        Ok(_) => Some(Reason::DoesNotMatch { field, range: range.to_owned(), version: version.to_string() }),
        Err(error) => Some(Reason::UnreadableRange { field, range: range.to_owned(), error: error.to_string() }),
    }
}

fn recorded(entry: &Entry) -> Recorded<'_> {
    let version = &entry.version;
    Recorded {
        version: Some(version.version.as_str()).filter(|version| !version.is_empty()),
        id: Some(&version.id),
        manifest_hash: version.manifest_hash.as_deref(),
        generation: 0,
    }
}

fn same_version(a: &Entry, b: &Entry) -> bool {
    is_same(&a.version.version, &b.version.version)
}

/// Equal as the duplicate rule reads versions (semantics 2): `v1`, `1` and `1.0.0` are equal.
fn is_same(a: &str, b: &str) -> bool {
    match (tolerant::parse(a), tolerant::parse(b)) {
        (Ok(a), Ok(b)) => a.cmp_precedence(&b).is_eq(),
        _ => a == b,
    }
}

/// Rejections are told best first: unreadable versions last.
fn order(entry: &Entry) -> (Option<Version>, &str) {
    (tolerant::parse(&entry.version.version).ok(), &entry.version.id)
}
