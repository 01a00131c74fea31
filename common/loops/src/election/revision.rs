//! What the candidates of a Lease would lead with, if they differ: during an upgrade of several machines, each has the old or the new
//! state. The one that appeared last is the newest. The Lease keeps the order, so that it survives every change of the leader (semantics
//! 21.6).

use std::time::Duration;

use common::api::names::ANNOTATION_REVISIONS;
use k8s_openapi::api::coordination::v1::Lease;

/// The number of revisions that are kept. A candidate with an older one counts as new.
const KEPT: usize = 10;
/// How long a candidate leaves a free Lease to candidates with the next newer revision. They try every two seconds.
pub const PATIENCE_PER_REVISION: Duration = Duration::from_secs(15);

/// What a candidate would lead with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaderRevision {
    /// The same as every other candidate.
    #[default]
    Same,
    /// Nothing: it does not lead.
    Missing,
    /// An incomplete state: it leads if no other candidate has more.
    Partial,
    /// A complete state, by its digest.
    Whole(String),
}

/// The digests that candidates have had, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderRevisions(Vec<String>);

impl LeaderRevisions {
    /// Reads the digests from a Lease.
    pub fn from_lease(lease: &Lease) -> Self {
        let annotations = lease.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(ANNOTATION_REVISIONS));
        let digests = text.map(|text| text.split(',').map(str::to_owned).collect());
        Self(digests.unwrap_or_default())
    }

    /// Writes the digests into a Lease.
    pub fn write_to(&self, lease: &mut Lease) {
        if !self.0.is_empty() {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(ANNOTATION_REVISIONS.to_owned(), self.0.join(","));
        }
    }

    /// Returns how long a candidate leaves a free Lease to candidates with a newer revision: zero if no revision is newer, `None` if it
    /// never leads. If all others have gone back to an older one, no one takes the Lease before.
    pub fn patience(&self, own: &LeaderRevision) -> Option<Duration> {
        let newer = match own {
            LeaderRevision::Same => 0,
            LeaderRevision::Missing => return None,
            LeaderRevision::Partial => usize::from(!self.0.is_empty()),
            LeaderRevision::Whole(digest) => {
                let mut newest_first = self.0.iter().rev();
                newest_first
                    .position(|known| known == digest)
                    .unwrap_or_default()
            }
        };
        Some(PATIENCE_PER_REVISION * u32::try_from(newer).unwrap_or(u32::MAX))
    }

    /// Returns whether no candidate has had this revision.
    pub fn is_new(&self, own: &LeaderRevision) -> bool {
        matches!(own, LeaderRevision::Whole(digest) if !self.0.contains(digest))
    }

    /// Returns the digests with this one as the newest.
    pub fn with_newest(&self, own: &LeaderRevision) -> Self {
        let mut digests = self.0.clone();
        if let LeaderRevision::Whole(own) = own {
            digests.retain(|known| known != own);
            digests.push(own.clone());
        }
        let surplus = digests.len().saturating_sub(KEPT);
        Self(digests.split_off(surplus))
    }
}
