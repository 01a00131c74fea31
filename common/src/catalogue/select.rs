//! Chooses the entry that fits a cluster, and says why every other one was rejected (semantics 3, 11).

mod fit;

use std::fmt;
use std::sync::Arc;

use semver::{BuildMetadata, Version};
use serde::Serialize;

use super::{Catalogue, CatalogueEntry, Origin, replaces, version_label};
use crate::api::catalogue::Deprecation;
use crate::api::rules::RuleSet;
use crate::expression::profile::Profile;
use addons_versions::tolerant;

pub use fit::find_misfit;

/// The rules that choose between entries, and decide whether an installed one is due (semantics 11.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SelectionRules {
    /// Documented rules if the chosen entry has a version, otherwise channels rules.
    #[default]
    Auto,
    /// The highest semver, then id, then hash; never a downgrade.
    Documented,
    /// Rules of kops 1.22 and later: id, hash, generation. The version is not read.
    Channels,
}

impl SelectionRules {
    /// Returns the rules as a record stores them. A [`Selection`] never has `Auto`.
    #[must_use]
    pub fn to_rule_set(self) -> RuleSet {
        match self {
            Self::Documented => RuleSet::Documented,
            Self::Channels | Self::Auto => RuleSet::Channels,
        }
    }
}

impl From<RuleSet> for SelectionRules {
    fn from(rules: RuleSet) -> Self {
        match rules {
            RuleSet::Documented => Self::Documented,
            RuleSet::Channels => Self::Channels,
        }
    }
}

/// A request for an entry of an add-on.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryRequest<'a> {
    /// The name of the add-on.
    pub addon: &'a str,
    /// The exact version, compared tolerantly.
    pub version: Option<&'a str>,
    /// The exact id.
    pub id: Option<&'a str>,
    /// The name of the only AddonCatalogue to choose from.
    pub catalogue: Option<&'a str>,
}

/// The cluster that an entry must fit.
#[derive(Clone, Debug, Default)]
pub struct ClusterVersions {
    /// The version of Kubernetes, without its pre-release. If it is unknown, every range matches.
    pub kubernetes: Option<Version>,
    /// The version of KKP. If it is unknown, every constraint matches.
    pub kkp: Option<Version>,
    /// What expressions read. If nothing was read, every expression matches.
    pub profile: Option<Arc<Profile>>,
}

/// A [`Selection`] that borrows its entries.
#[derive(Clone, Debug)]
pub struct BorrowedSelection<'a> {
    /// The chosen entry.
    pub chosen: Option<&'a CatalogueEntry>,
    /// The rules that were applied: never `Auto`.
    pub rules: SelectionRules,
    /// Every rejected entry of the add-on, best first.
    pub rejections: Vec<(&'a CatalogueEntry, RejectionReason)>,
    /// Ties, unreadable ranges, and the deprecation of the chosen entry.
    pub warnings: Vec<String>,
}

/// The entry to install, and why the others were rejected.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// The chosen entry, or `None` if nothing fits.
    pub chosen: Option<CatalogueEntry>,
    /// The rules that were applied: never `Auto`.
    pub rules: SelectionRules,
    /// Every rejected entry of the add-on, best first.
    pub rejections: Vec<Rejection>,
    /// Ties, unreadable ranges, and the deprecation of the chosen entry.
    pub warnings: Vec<String>,
}

/// A rejected entry.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The entry.
    pub entry: CatalogueEntry,
    /// Why it was rejected. Its `Display` is the text that `show` prints.
    pub reason: RejectionReason,
}

/// Why an entry was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RejectionReason {
    /// `kubernetesVersion <1.30.0 does not match 1.36.3`
    DoesNotMatch {
        /// `kubernetesVersion`, `k8sVersion` or `kkpVersion`.
        field: &'static str,
        /// The range as written.
        range: String,
        /// The version of the cluster.
        version: String,
    },
    /// The range cannot be read. kops skips such entries with a warning.
    UnreadableRange {
        /// The field.
        field: &'static str,
        /// The range as written.
        range: String,
        /// What is wrong with it.
        error: String,
    },
    /// `constraints.expression provider == 'aws' is false: provider is gcp`
    ExpressionIsFalse {
        /// The expression as written.
        expression: String,
        /// The facts that it reads, for display; empty if there is nothing to show.
        facts: String,
    },
    /// The expression has no result in the cluster, because a fact is not known or because it is wrong.
    ExpressionFails {
        /// The expression as written.
        expression: String,
        /// Why.
        error: String,
    },
    /// The request is for another version, id or catalogue.
    NotAskedFor,
    /// It is deprecated, and an entry that is not fits as well: `deprecated since 2026-03-31: data loss`
    Deprecated(Deprecation),
    /// `0.9.0 is newer`
    Newer {
        /// The newer version.
        than: String,
    },
    /// A later entry with an equal version wins. Under the channels rules: a later entry with another id or hash wins.
    LaterEntryWins {
        /// The id of that entry; empty if it has none.
        id: String,
    },
    /// Only under the channels rules: an earlier entry has the same id and hash.
    EarlierEntryWins,
}

impl RejectionReason {
    /// Whether the entry is for other clusters.
    #[must_use]
    pub fn is_misfit(&self) -> bool {
        matches!(
            self,
            Self::DoesNotMatch { .. }
                | Self::ExpressionIsFalse { .. }
                | Self::ExpressionFails { .. }
        )
    }
}

impl fmt::Display for RejectionReason {
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
            Self::ExpressionIsFalse { expression, facts } => {
                write!(f, "constraints.expression {expression} is false")?;
                match facts.as_str() {
                    "" => Ok(()),
                    facts => write!(f, ": {facts}"),
                }
            }
            Self::ExpressionFails { expression, error } => {
                write!(
                    f,
                    "constraints.expression {expression} has no result: {error}"
                )
            }
            Self::NotAskedFor => f.write_str("another version was asked for"),
            Self::Deprecated(deprecation) => deprecation.fmt(f),
            Self::Newer { than } => write!(f, "{than} is newer"),
            Self::LaterEntryWins { id } if id.is_empty() => f.write_str("a later entry wins"),
            Self::LaterEntryWins { id } => write!(f, "the later entry with id {id} wins"),
            Self::EarlierEntryWins => {
                f.write_str("an earlier entry with the same id and hash wins")
            }
        }
    }
}

impl Selection {
    /// Returns the newest entry whose constraints exclude this cluster. Its reason names the clusters that it is for.
    #[must_use]
    pub fn newest_misfit(&self) -> Option<&Rejection> {
        self.rejections
            .iter()
            .find(|rejection| rejection.reason.is_misfit())
    }
}

/// Chooses an entry. The order of the entries matters only for ties, where the later entry wins (semantics 11.2).
///
/// `Auto` means the documented rules if any entry that fits has a version: then the chosen entry has one, too.
#[must_use]
pub fn select(
    catalogue: &Catalogue,
    request: &EntryRequest<'_>,
    facts: &ClusterVersions,
    rules: SelectionRules,
) -> Selection {
    let choice = choose(&catalogue.entries, request, facts, rules);
    let rejections = choice.rejections.into_iter();
    let rejections = rejections.map(|(entry, reason)| Rejection {
        entry: entry.clone(),
        reason,
    });
    Selection {
        chosen: choice.chosen.cloned(),
        rules: choice.rules,
        rejections: rejections.collect(),
        warnings: choice.warnings,
    }
}

/// Like [`select`], but borrows the entries instead of copying them.
#[must_use]
pub fn choose<'a>(
    entries: impl IntoIterator<Item = &'a CatalogueEntry>,
    request: &EntryRequest<'_>,
    facts: &ClusterVersions,
    rules: SelectionRules,
) -> BorrowedSelection<'a> {
    let mut fitting = Vec::new();
    let mut rejected = Vec::new();
    let mut warnings = Vec::new();
    let entries = entries.into_iter().enumerate();
    for (position, entry) in entries.filter(|(_, entry)| entry.addon == request.addon) {
        let candidate = EntryCandidate::new(entry, position);
        let reason = if request.asks_for(entry) {
            find_misfit(&entry.version.constraints, facts)
        } else {
            Some(RejectionReason::NotAskedFor)
        };
        match reason {
            None => fitting.push(candidate),
            Some(reason) => {
                if let RejectionReason::UnreadableRange { .. } = reason {
                    warnings.push(format!("{}: {}: {reason}", entry.origin, entry.place));
                }
                rejected.push((candidate, reason));
            }
        }
    }
    // A deprecated entry gives way to an older one that is not (semantics 1.9).
    if fitting.iter().any(|one| one.entry.deprecated.is_none()) {
        let deprecated = fitting.extract_if(.., |one| one.entry.deprecated.is_some());
        rejected.extend(deprecated.filter_map(|one| {
            let reason = RejectionReason::Deprecated(one.entry.deprecated.clone()?);
            Some((one, reason))
        }));
    }
    let rules = match rules {
        SelectionRules::Auto if fitting.iter().any(|one| one.rank > EntryRank::Unversioned) => {
            SelectionRules::Documented
        }
        SelectionRules::Auto => SelectionRules::Channels,
        forced => forced,
    };
    let best = find_best(&fitting, rules).map(|index| fitting.remove(index));
    if let Some(best) = &best {
        let ties = fitting.iter().filter(|other| other.rank == best.rank);
        let ties = ties.count();
        if ties > 0 && rules == SelectionRules::Documented {
            warnings.push(tie_warning(best.entry, ties));
        }
        let passed_over = fitting.into_iter().map(|other| {
            let reason = best.reason_against(&other, rules);
            (other, reason)
        });
        rejected.extend(passed_over);
        if let Some(deprecation) = &best.entry.deprecated {
            let CatalogueEntry { addon, version, .. } = best.entry;
            let version = version_label(&version.version, &version.id);
            warnings.push(format!("{addon} {version} is {deprecation}"));
        }
    }
    rejected.sort_by(|(a, _), (b, _)| (&b.rank, b.position).cmp(&(&a.rank, a.position)));
    let rejections = rejected.into_iter();
    let rejections = rejections.map(|(candidate, reason)| (candidate.entry, reason));
    BorrowedSelection {
        chosen: best.map(|best| best.entry),
        rules,
        rejections: rejections.collect(),
        warnings,
    }
}

/// Returns the index of the best candidate. Of equal ones, the last one wins.
fn find_best(fitting: &[EntryCandidate<'_>], rules: SelectionRules) -> Option<usize> {
    let candidates = fitting.iter().enumerate();
    let best = if rules == SelectionRules::Channels {
        // As in kops, a later candidate wins if its id or hash differs; otherwise the first one stays.
        candidates.reduce(|kept, later| {
            let (old, new) = (
                kept.1.entry.replacement_key(),
                later.1.entry.replacement_key(),
            );
            if replaces::is_channels_replacement(old, new) {
                later
            } else {
                kept
            }
        })
    } else {
        candidates.max_by(|(_, a), (_, b)| a.rank.cmp(&b.rank))
    };
    best.map(|(index, _)| index)
}

/// Returns the warning about several entries with the chosen version.
fn tie_warning(best: &CatalogueEntry, others: usize) -> String {
    let version = match best.version.version.as_str() {
        "" => "without version",
        version => version,
    };
    format!(
        "{} {version}: {} entries of this version fit; the last one is taken ({}: {}); ask for an id, or give them \
         different versions",
        best.addon,
        others + 1,
        best.origin,
        best.place,
    )
}

impl EntryRequest<'_> {
    /// Whether `entry` has the requested version, id and catalogue. A missing or empty field matches any.
    fn asks_for(&self, entry: &CatalogueEntry) -> bool {
        let wants = |wish: Option<&str>, is_met: &dyn Fn(&str) -> bool| {
            wish.filter(|wish| !wish.is_empty()).is_none_or(is_met)
        };
        wants(self.version, &|wish| {
            tolerant::is_same(wish, &entry.version.version)
        }) && wants(self.id, &|wish| wish == entry.version.id)
            && wants(
                self.catalogue,
                &|wish| matches!(&*entry.origin, Origin::Catalogue { name, .. } if name == wish),
            )
    }
}

/// An entry with the requested name, and its rank.
struct EntryCandidate<'a> {
    entry: &'a CatalogueEntry,
    rank: EntryRank,
    /// The position in the catalogue.
    position: usize,
}

impl<'a> EntryCandidate<'a> {
    fn new(entry: &'a CatalogueEntry, position: usize) -> Self {
        Self {
            entry,
            rank: EntryRank::new(&entry.version.version),
            position,
        }
    }

    /// Returns why `other` was rejected in favour of this candidate.
    fn reason_against(&self, other: &Self, rules: SelectionRules) -> RejectionReason {
        let version = &self.entry.version;
        if rules != SelectionRules::Channels && other.rank != self.rank {
            RejectionReason::Newer {
                than: version.version.clone(),
            }
        } else if other.position < self.position {
            RejectionReason::LaterEntryWins {
                id: version.id.clone(),
            }
        } else {
            RejectionReason::EarlierEntryWins
        }
    }
}

/// How new an entry is. Build metadata does not count (semantics 2.1), so entries can have equal ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryRank {
    /// The entry has no version.
    Unversioned,
    /// The version cannot be read. It never replaces a readable one.
    Unreadable,
    /// The version, without build metadata.
    Versioned(Version),
}

impl EntryRank {
    fn new(version: &str) -> Self {
        if version.is_empty() {
            return Self::Unversioned;
        }
        match tolerant::parse(version) {
            Ok(version) => Self::Versioned(Version {
                build: BuildMetadata::EMPTY,
                ..version
            }),
            Err(_) => Self::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests;
