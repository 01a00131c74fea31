//! Detects what a loop and another client keep setting, fields of objects and the record that they share, so that the loop stops before
//! this becomes a fight (semantics 20.8).

use std::collections::BTreeMap;
use std::time::Duration;

use addons_engine::standing::{ReconcileState, record_state};
use addons_engine::{Report, Settled, Settlement, events};
use addons_operation::{Context, OperationError};
use addons_plan::closing::AnnotationChange;
use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, field_manager};
use common::manifest::key::ObjectKey;
use tokio::time::Instant;

/// This many repairs of one field against one manager ...
const REPAIRS: usize = 3;
/// ... in this time are a fight.
const WITHIN: Duration = Duration::from_secs(600);
/// How long the installation is left alone after that.
pub const TRUCE: Duration = Duration::from_secs(3600);
/// The same for installations that others rely on: editing them must not prevent their repair.
pub(crate) const GUARD_TRUCE: Duration = Duration::from_secs(60);

/// The repairs of a loop.
#[derive(Debug, Default)]
pub struct Fights {
    repairs: BTreeMap<InstallationName, BTreeMap<Repair, Vec<Instant>>>,
    /// What this loop last wrote into the records that other tools share.
    written: BTreeMap<InstallationName, String>,
}

/// A field that was taken back from a manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Repair {
    key: ObjectKey,
    field: String,
    manager: String,
}

impl Fights {
    /// Records the fields that were taken back according to a report, and whether the record that another tool shares was: `shared` is its
    /// change by the operation, if there is such a record. Returns a message about the first one that was taken back too often.
    pub fn record_repairs(
        &mut self,
        name: &InstallationName,
        shared: Option<&AnnotationChange>,
        report: &Report,
        now: Instant,
    ) -> Option<String> {
        let taken = report
            .settled
            .iter()
            .filter(|settled| settled.settlement == Settlement::Taken);
        let taken = taken.map(Repair::from_settled);
        let taken: Vec<Repair> = taken.chain(self.record_shared(name, shared)).collect();
        let repairs = self.repairs.entry(name.clone()).or_default();
        for all in repairs.values_mut() {
            all.retain(|at| now.duration_since(*at) < WITHIN);
        }
        repairs.retain(|_, all| !all.is_empty());
        let mut fight = None;
        for repair in taken {
            let all = repairs.entry(repair.clone()).or_default();
            all.push(now);
            if all.len() >= REPAIRS && fight.is_none() {
                fight = Some(repair.to_message(name, all.len()));
            }
        }
        if fight.is_some() {
            // The count begins again when the loop tries again.
            repairs.clear();
        }
        fight
    }

    /// Remembers what the operation wrote into a shared record. Returns a repair if another client had written something else since our
    /// last write.
    fn record_shared(
        &mut self,
        name: &InstallationName,
        change: Option<&AnnotationChange>,
    ) -> Option<Repair> {
        let change = change.filter(|change| !change.is_current())?;
        let after = change.after.clone()?;
        let before = self.written.insert(name.clone(), after)?;
        let is_taken = change.before.as_ref() != Some(&before);
        is_taken.then(|| Repair {
            key: ObjectKey {
                kind: "Namespace".to_owned(),
                name: change.namespace.clone(),
                ..ObjectKey::default()
            },
            field: format!("metadata.annotations[{}]", change.key),
            manager: "another client".to_owned(),
        })
    }

    /// Forgets an installation that was deleted.
    pub(crate) fn forget(&mut self, name: &InstallationName) {
        self.repairs.remove(name);
        self.written.remove(name);
    }
}

/// Records that another manager keeps setting a field back: as a condition and, if that is new, as an Event.
///
/// # Errors
/// Those of the requests.
pub async fn record_contested(
    ctx: &Context,
    record: &AddonInstallation,
    message: String,
) -> Result<(), OperationError> {
    let cluster = ctx.home().await?;
    let standing = ReconcileState::Contested { message };
    if record_state(cluster, record, &standing).await?.is_some()
        && let Some(happened) = standing.into_event()
    {
        let reporter = &ctx.settings().holder;
        events::publish(cluster, record, &happened, reporter).await?;
    }
    Ok(())
}

impl Repair {
    fn from_settled(settled: &Settled) -> Self {
        Self {
            key: settled.key.clone(),
            field: settled.conflict.field.clone(),
            manager: settled.conflict.manager.clone(),
        }
    }

    fn to_message(&self, name: &InstallationName, times: usize) -> String {
        format!(
            "{}: {} was taken back {times} times in {} minutes: {} and {} set it; look: kubectl addons diff {} -n {}",
            self.key,
            self.field,
            WITHIN.as_secs() / 60,
            self.manager,
            field_manager(&name.namespace, &name.name),
            name.name,
            name.namespace
        )
    }
}

#[cfg(test)]
mod tests {
    use addons_plan::conflicts::Conflict;

    use super::*;

    fn taken(field: &str, manager: &str, settlement: Settlement) -> Settled {
        Settled {
            key: ObjectKey {
                kind: "ConfigMap".to_owned(),
                namespace: Some("shop".to_owned()),
                name: "one".to_owned(),
                ..ObjectKey::default()
            },
            conflict: Conflict {
                field: field.to_owned(),
                manager: manager.to_owned(),
                time: None,
                live: None,
                ours: None,
            },
            settlement,
        }
    }

    fn name() -> InstallationName {
        InstallationName {
            namespace: "shop".to_owned(),
            name: "set".to_owned(),
        }
    }

    /// `(minute, field, manager)` of repairs, and after which of them it is a fight.
    #[track_caller]
    fn check(repairs: &[(u64, &str, &str)], expected: Option<usize>) {
        let (mut fights, begun) = (Fights::default(), Instant::now());
        let fight = repairs.iter().position(|(minute, field, manager)| {
            let report = Report {
                settled: vec![taken(field, manager, Settlement::Taken)],
                ..Report::default()
            };
            let now = begun + Duration::from_secs(60 * minute);
            fights.record_repairs(&name(), None, &report, now).is_some()
        });
        assert_eq!(fight, expected, "{repairs:?}");
    }

    #[test]
    fn three_repairs_of_one_field_against_one_manager_in_ten_minutes_are_a_fight() {
        check(&[(0, "a", "x"), (1, "a", "x"), (2, "a", "x")], Some(2));
        check(&[(0, "a", "x"), (5, "a", "x"), (11, "a", "x")], None);
        check(&[(0, "a", "x"), (1, "a", "y"), (2, "b", "x")], None);
        check(
            &[(0, "a", "x"), (8, "a", "x"), (11, "a", "x"), (12, "a", "x")],
            Some(3),
        );
    }

    /// (what the annotation said before each operation; which of them is a fight). Each operation writes `ours`.
    #[test]
    fn a_shared_record_that_another_client_keeps_replacing_is_a_fight() {
        for (found, expected) in [
            (&["theirs", "theirs", "theirs", "theirs"][..], Some(3)),
            (&["theirs", "ours", "theirs", "theirs", "theirs"], Some(4)),
            (&["theirs", "theirs", "theirs"], None),
            (&["ours", "ours", "ours", "ours"], None),
        ] {
            let (mut fights, now) = (Fights::default(), Instant::now());
            let fight = found.iter().position(|before| {
                let change = AnnotationChange {
                    namespace: "kube-system".to_owned(),
                    key: "addons.k8s.io/dns".to_owned(),
                    before: Some((*before).to_owned()),
                    after: Some("ours".to_owned()),
                    nodes: Vec::new(),
                    node_mark: String::new(),
                };
                let said = fights.record_repairs(&name(), Some(&change), &Report::default(), now);
                let is_named = |said: &str| said.contains("addons.k8s.io/dns");
                said.as_deref().is_some_and(is_named)
            });
            assert_eq!(fight, expected, "{found:?}");
        }
    }

    #[test]
    fn both_managers_are_named_and_the_count_begins_again() {
        let (mut fights, now) = (Fights::default(), Instant::now());
        let report = |settlement| Report {
            settled: vec![taken("data.key", "kubectl-edit", settlement)],
            ..Report::default()
        };
        let left = report(Settlement::Left { autoscaler: None });
        for _ in 0..5 {
            assert_eq!(
                fights.record_repairs(&name(), None, &left, now),
                None,
                "it was not taken"
            );
        }
        let taken = report(Settlement::Taken);
        let said: Vec<_> = (0..4)
            .map(|_| fights.record_repairs(&name(), None, &taken, now))
            .collect();
        let sentence = said[2].as_deref().unwrap();
        for part in ["data.key", "kubectl-edit", &field_manager("shop", "set")] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(said[3].is_none());
    }
}
