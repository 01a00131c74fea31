//! Decides about releases in all clusters together: an add-on that is dropped in several of them waits for a person (semantics 14.6).

use std::collections::BTreeSet;

use addons_distribution::core_set::look::ClusterLook;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{is_guarded, is_released};
use common::api::names::InstallationName;

use super::due::DueCoreChange;

/// The releases in all clusters, certain and possible ones.
pub(super) struct Releases<'a> {
    /// The number of clusters with a release that no person has made.
    clusters: usize,
    /// Core installations of clusters whose core set is unknown: what is dropped elsewhere may be dropped there as well.
    undecided: Vec<&'a AddonInstallation>,
}

impl<'a> Releases<'a> {
    /// Collects the releases. `lost`: the records of each cluster that could not be looked at; `None` if they could not be read either.
    pub(super) fn from_looks(
        looks: impl IntoIterator<Item = &'a ClusterLook>,
        lost: impl IntoIterator<Item = Option<&'a [AddonInstallation]>>,
    ) -> Self {
        let mut all = Self {
            clusters: 0,
            undecided: Vec::new(),
        };
        for look in looks {
            if look.releases() {
                all.clusters += 1;
            }
            if look.is_unknown() {
                all.add_undecided(&look.records);
            }
        }
        for records in lost {
            match records {
                Some(records) => all.add_undecided(records),
                None => all.clusters += 1,
            }
        }
        all
    }

    fn add_undecided(&mut self, records: &'a [AddonInstallation]) {
        let may_drop_out = |record: &&AddonInstallation| {
            is_guarded(record) && !is_released(record) && !record.spec.suspend
        };
        self.undecided.extend(records.iter().filter(may_drop_out));
    }

    /// Returns whether the release of a record affects several clusters, or may do so.
    pub(super) fn affects_several(&self, record: &AddonInstallation) -> bool {
        let is_same = |one: &&AddonInstallation| one.metadata.name == record.metadata.name;
        self.clusters > 1 || self.undecided.iter().any(is_same)
    }

    /// Returns the undecided records that wait for a person from now on, because records with their names wait elsewhere. Otherwise they
    /// would be released one by one, as soon as it is known that they were dropped. `due`: what is due for all records.
    pub(super) fn also_waiting<'d>(
        &self,
        due: impl IntoIterator<Item = &'d (InstallationName, DueCoreChange<'d>)>,
    ) -> Vec<&'a AddonInstallation> {
        let due = due.into_iter().filter(|(_, due)| due.needs_person());
        let waiting: BTreeSet<&str> = due.map(|(name, _)| name.name.as_str()).collect();
        let mut records = self.undecided.clone();
        records.retain(|record| {
            let name = record.metadata.name.as_deref();
            name.is_some_and(|name| waiting.contains(name))
        });
        records
    }
}

#[cfg(test)]
mod tests {
    use addons_clusters::core_set::{CoreSet, UnknownCoreSet};
    use addons_distribution::core_set::ClusterCore;
    use addons_distribution::core_set::look::CoreSetState;
    use common::api::installation::AddonInstallationSpec;
    use common::api::installation::core_guard::add_guard;

    use super::*;

    fn dns(is_of_set: bool) -> AddonInstallation {
        let spec = AddonInstallationSpec {
            core_addon: true,
            ..AddonInstallationSpec::default()
        };
        let mut record = AddonInstallation::new("dns", spec);
        if is_of_set {
            add_guard(&mut record);
        }
        record
    }

    fn look(set: Result<CoreSet, UnknownCoreSet>) -> ClusterLook {
        let decisions = Vec::new();
        ClusterLook {
            records: vec![dns(true)],
            state: CoreSetState::Found(ClusterCore { decisions, set }),
        }
    }

    #[test]
    fn what_may_drop_out_elsewhere_is_not_released_here() {
        let here = look(Ok(CoreSet::default()));
        let unknown = look(Err(UnknownCoreSet::NotEvaluated));
        let guarded: &[AddonInstallation] = &[dns(true)];
        let by_hand: &[AddonInstallation] = &[dns(false)];
        let of = |also: Option<&ClusterLook>, lost: Vec<Option<&[AddonInstallation]>>| {
            let looks = std::iter::once(&here).chain(also);
            let releases = Releases::from_looks(looks, lost);
            let waits = releases.affects_several(&dns(true));
            let name = InstallationName {
                namespace: "here".to_owned(),
                name: "dns".to_owned(),
            };
            let record = &dns(true);
            let due = [(name, DueCoreChange::Release { record, waits })];
            (waits, releases.also_waiting(&due).len())
        };
        assert_eq!(of(None, Vec::new()), (false, 0));
        assert_eq!(of(Some(&here), Vec::new()), (true, 0));
        assert_eq!(of(Some(&unknown), Vec::new()), (true, 1));
        assert_eq!(of(None, vec![Some(guarded)]), (true, 1));
        assert_eq!(of(None, vec![Some(by_hand)]), (false, 0));
        assert_eq!(of(None, vec![None]), (true, 0));
    }
}
