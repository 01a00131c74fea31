//! Finds problems of records and namespaces, and what deleted installations, interrupted operations and stopped reconcilers left behind.

use std::collections::{BTreeMap, BTreeSet};

use super::{DoctorFacts, DoctorProblem, Lease, NamespaceState, OwnedObject, take_fact};
use addons_plan::continuation::Continuation;
use addons_plan::found::list_open_releases;
use addons_plan::standing::object::ObjectHealth;
use addons_plan::standing::{self, Health, Standing, StandingState, assess_standing};
use common::api::conditions::{DRIFTED, find_raised};
use common::api::installation::core_guard::is_released;
use common::api::installation::{self, AddonInstallation, ClusterIdentity};
use common::api::names::{FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL, InstallationName, owner_hash};
use common::pin;
use jiff::Timestamp;

/// Maximum number of objects that are named one by one.
const MAX_NAMED: usize = 3;
/// How many seconds after a Lease was given back another process may still be about to take it.
const HANDOVER: i64 = 15;

pub(super) fn find_leftovers(facts: &DoctorFacts, found: &mut Vec<DoctorProblem>) {
    let lease = take_fact(&facts.lease, "the Lease of the reconciler", found);
    let lease = lease.and_then(Option::as_ref);
    let is_alive = lease.is_some_and(|lease| lease.is_fresh(facts.now));
    let records = facts.records.as_deref().unwrap_or_default();
    let lost = lease.filter(|_| !is_alive);
    found.extend(lost.and_then(|lease| leader_problem(lease, records, facts.now)));
    let namespaces = take_fact(&facts.namespaces, "the namespaces", found);
    let cluster = take_fact(&facts.cluster, "the identity of the cluster", found);
    let Some(records) = take_fact(&facts.records, "the installations", found) else {
        return;
    };
    let health = take_fact(&facts.health, "the objects of the installations", found);
    for record in records {
        let at = RecordCheck {
            facts,
            is_reconciler_alive: is_alive,
            cluster: cluster.and_then(Option::as_deref),
            health,
        };
        found.extend(at.check(record));
    }
    if let Some(owned) = take_fact(&facts.owned, "the objects of installations", found) {
        found.extend(find_orphans(owned, records));
        found.extend(find_held_by_releases(owned, records));
    }
    if let Some(namespaces) = namespaces {
        found.extend(find_unmarked(&facts.system, namespaces, records));
    }
    for (namespace, about) in namespaces.into_iter().flatten() {
        let namespace = namespace.clone();
        match &about.kubeconfig {
            Some((secret, _)) if about.is_local => found.push(DoctorProblem::AmbiguousCluster {
                namespace,
                secret: secret.clone(),
            }),
            Some((secret, false)) => found.push(DoctorProblem::NoKubeconfig {
                namespace,
                secret: secret.clone(),
            }),
            _ => {}
        }
    }
}

/// The facts that a record is compared with.
struct RecordCheck<'a> {
    facts: &'a DoctorFacts,
    is_reconciler_alive: bool,
    cluster: Option<&'a str>,
    health: Option<&'a BTreeMap<String, Health>>,
}

impl RecordCheck<'_> {
    fn check(&self, record: &AddonInstallation) -> Vec<DoctorProblem> {
        let installation = name_of(record);
        let status = record.status.clone().unwrap_or_default();
        let found = self.cluster.map(|uid| ClusterIdentity {
            kube_system_uid: uid.to_owned(),
            kubeconfig_secret: None,
        });
        let other = pin::check(&installation, record.status.as_ref(), found.as_ref()).err();
        let owner = owner_hash(&installation.namespace, &installation.name);
        let health = self.health.and_then(|all| all.get(&owner));
        let unread = Health::default();
        let health = health.unwrap_or(&unread);
        let standing = assess_standing(
            record,
            &standing::StandingFacts {
                health,
                offered: None,
                other: other.as_ref(),
                now: self.facts.now,
            },
        );
        if standing.state == StandingState::OtherCluster {
            return vec![DoctorProblem::OtherCluster { installation }];
        }
        if let Some(unreadable) = &record.spec.unreadable {
            return vec![DoctorProblem::Unreadable {
                resource: "addoninstallation",
                object: installation,
                unreadable: unreadable.clone(),
            }];
        }
        let namespaces = self.facts.namespaces.as_ref().ok();
        let own = namespaces.and_then(|all| all.get(&installation.namespace));
        if let Some(own) = own
            && installation.namespace != self.facts.system
            && !own.is_local
        {
            // Installations of other clusters are not diagnosed here.
            let is_of_none = own.kubeconfig.is_none();
            let problem = match record.installed() {
                Some(_) => DoctorProblem::NoCluster { installation },
                None => DoctorProblem::Misplaced {
                    installation,
                    system: self.facts.system.clone(),
                },
            };
            return is_of_none.then_some(problem).into_iter().collect();
        }
        let mut found = Vec::new();
        let finalizers = record.metadata.finalizers.iter().flatten();
        let mut ours = finalizers.filter(|finalizer| {
            [FINALIZER_UNINSTALL, FINALIZER_CORE_GUARD].contains(&finalizer.as_str())
        });
        let is_going = record.metadata.deletion_timestamp.is_some();
        if is_going && !self.is_reconciler_alive && ours.next().is_some() {
            found.push(DoctorProblem::Held {
                installation: installation.clone(),
            });
        }
        match standing.state {
            StandingState::Ready if find_raised(&status.conditions, DRIFTED).is_some() => {
                found.push(DoctorProblem::Unwell {
                    installation: installation.clone(),
                    next: Some(Continuation::for_restore(record)),
                    standing,
                });
            }
            StandingState::Ready
            | StandingState::Suspended
            | StandingState::Progressing
            | StandingState::Uninstalling => {}
            StandingState::Interrupted => {
                if let (Some(operation), Some(next)) = (&status.operation, standing.continuation) {
                    found.push(DoctorProblem::Interrupted {
                        installation: installation.clone(),
                        holder: operation.holder.clone(),
                        next,
                    });
                }
            }
            _ => found.push(DoctorProblem::Unwell {
                installation: installation.clone(),
                next: find_continuation(record, health, &standing),
                standing,
            }),
        }
        found.extend(
            describe_edited(record, health).map(|objects| DoctorProblem::Edited {
                installation,
                objects,
                next: Continuation::for_restore(record),
            }),
        );
        found
    }
}

/// Returns what continues the operation of an installation with problems, otherwise what restores its objects, if that helps.
fn find_continuation(
    record: &AddonInstallation,
    health: &Health,
    standing: &Standing,
) -> Option<Continuation> {
    let mut troubles = health.objects.iter().filter(|one| one.is_trouble());
    let is_restorable = troubles.any(ObjectHealth::is_restorable);
    let restores = is_restorable && standing.state == StandingState::Degraded;
    let restoring = || restores.then(|| Continuation::for_restore(record));
    standing.continuation.clone().or_else(restoring)
}

/// Describes the edited objects of an installation that guards others: `Role addons-webhook was, and 2 more were`.
fn describe_edited(record: &AddonInstallation, health: &Health) -> Option<String> {
    if !record.spec.is_guard() || record.spec.suspend {
        return None;
    }
    let mut edited = health.objects.iter().filter(|object| object.edited);
    let first = edited.next()?;
    let first = format!("{} {} was", first.key.kind, first.key.name);
    Some(match edited.count() {
        0 => first,
        more => format!("{first}, and {more} more were"),
    })
}

/// Returns the namespaces that need the mark of core installations and do not have it: those of core installations, and those with objects
/// of core installations of this cluster.
fn find_unmarked(
    system: &str,
    namespaces: &BTreeMap<String, NamespaceState>,
    records: &[AddonInstallation],
) -> Vec<DoctorProblem> {
    let mut unmarked = BTreeMap::new();
    for record in records
        .iter()
        .filter(|it| it.spec.core_addon && !is_released(it))
    {
        let installation = name_of(record);
        let home = &installation.namespace;
        let is_local = home == system || namespaces.get(home).is_some_and(|it| it.is_local);
        let status = record.status.as_ref().filter(|_| is_local);
        let inventory = status.map_or(&[][..], |status| &status.inventory);
        let target = record.spec.target_namespace.as_deref();
        let used = installation::namespaces(inventory)
            .chain(target.filter(|_| is_local))
            .chain([home.as_str()]);
        for name in used.filter(|name| namespaces.get(*name).is_some_and(|it| !it.holds_core)) {
            let first = || installation.clone();
            unmarked.entry(name.to_owned()).or_insert_with(first);
        }
    }
    let problems = unmarked.into_iter();
    let problem = |(namespace, installation)| DoctorProblem::Unmarked {
        namespace,
        installation,
    };
    problems.map(problem).collect()
}

/// Returns the problem of a Lease that no one holds. A Lease that was given back is none if nothing relies on a reconciler, or if another
/// process may be about to take it.
fn leader_problem(
    lease: &Lease,
    records: &[AddonInstallation],
    now: Timestamp,
) -> Option<DoctorProblem> {
    let has = |record: &AddonInstallation, finalizer: &str| {
        let mut finalizers = record.metadata.finalizers.iter().flatten();
        finalizers.any(|one| one == finalizer)
    };
    let relies = |record: &&AddonInstallation| {
        let is_held = [FINALIZER_UNINSTALL, FINALIZER_CORE_GUARD];
        is_held.iter().any(|finalizer| has(record, finalizer))
    };
    let relying = records.iter().filter(relies).count();
    let holder = Some(lease.holder.clone()).filter(|holder| !holder.is_empty());
    let age = lease.renewed.map(|at| now.duration_since(at).as_secs());
    let is_handed_over = age.is_some_and(|age| age < HANDOVER);
    (holder.is_some() || relying > 0 && !is_handed_over).then(|| DoctorProblem::NoLeader {
        holder,
        relying,
        holds_core: records
            .iter()
            .any(|record| has(record, FINALIZER_CORE_GUARD)),
    })
}

/// Returns one problem for each owner that does not exist any more.
fn find_orphans(owned: &[OwnedObject], records: &[AddonInstallation]) -> Vec<DoctorProblem> {
    let owners = records.iter().map(name_of);
    let owners: BTreeSet<String> = owners
        .map(|name| owner_hash(&name.namespace, &name.name))
        .collect();
    let mut lost: BTreeMap<&str, Vec<&OwnedObject>> = BTreeMap::new();
    for object in owned
        .iter()
        .filter(|object| !owners.contains(&object.owner))
    {
        lost.entry(&object.owner).or_default().push(object);
    }
    let problems = lost.into_iter().map(|(owner, objects)| {
        let named = objects.iter().take(MAX_NAMED);
        let mut named: Vec<&str> = named.map(|object| object.object.as_str()).collect();
        if objects.len() > MAX_NAMED {
            named.push("…");
        }
        DoctorProblem::Orphans {
            owner: owner.to_owned(),
            installation: objects.iter().find_map(|one| one.installation.clone()),
            count: objects.len(),
            objects: named.join(", "),
        }
    });
    problems.collect()
}

/// Returns problems for objects that, by their marks, also belong to a Helm release, and for releases whose records could not be set aside.
fn find_held_by_releases(
    owned: &[OwnedObject],
    records: &[AddonInstallation],
) -> Vec<DoctorProblem> {
    let mut problems = Vec::new();
    for record in records {
        let installation = name_of(record);
        let owner = owner_hash(&installation.namespace, &installation.name);
        let mut releases: BTreeSet<String> = list_open_releases(record).collect();
        let ours = owned.iter().filter(|object| object.owner == owner);
        releases.extend(ours.filter_map(|object| object.release.clone()));
        problems.extend(
            releases
                .into_iter()
                .map(|release| DoctorProblem::HeldByRelease {
                    installation: installation.clone(),
                    release,
                }),
        );
    }
    problems
}

pub(super) fn name_of(record: &AddonInstallation) -> InstallationName {
    InstallationName {
        namespace: record.metadata.namespace.clone().unwrap_or_default(),
        name: record.metadata.name.clone().unwrap_or_default(),
    }
}
