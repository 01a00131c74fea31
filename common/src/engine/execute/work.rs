//! What an operation does to the objects: namespace, waves with their barriers, waits, prune, release. It never touches
//! the record.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::{Instant, timeout_at};

use crate::api::names;
use crate::manifest::key::ObjectKey;
use crate::plan::inventory::Inventory;
use crate::plan::{Action, Plan, Step, Target, Wave};
use crate::readiness::{Readiness, Status};

use super::super::apply::{Applier, Outcome};
use super::super::cluster::Cluster;
use super::super::report::{Failure, Report};
use super::super::served::{self, Definition, is_definition};
use super::super::{namespace, prune, wait};
use super::{Event, ExecuteOptions};

const TIME_IS_OVER: &str = "the time is over";

/// One operation under its lock.
pub(super) struct Work<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) plan: &'a Plan,
    pub(super) options: &'a ExecuteOptions,
    pub(super) deadline: Instant,
    pub(super) events: &'a (dyn Fn(Event) + Send + Sync),
}

/// What is to be recorded.
#[derive(Debug)]
pub(super) struct Worked {
    /// The union inventory with every answer written into it.
    pub(super) recorded: Inventory,
    /// uid of the target namespace, where we created it.
    pub(super) namespace_uid: Option<String>,
}

impl Work<'_> {
    /// Does it all, as far as it goes.
    pub(super) async fn run(&self, report: &mut Report) -> Worked {
        let mut worked = Worked {
            recorded: self.plan.union.clone(),
            namespace_uid: None,
        };
        self.create_namespace(report, &mut worked).await;
        // Definitions that a barrier waited for are not waited for again.
        let mut ready = BTreeSet::new();
        for wave in &self.plan.waves {
            self.wave(wave, report, &mut worked, &mut ready).await;
        }
        if report.is_done() && self.options.wait {
            let targets: Vec<Target> = self
                .plan
                .wait_for
                .iter()
                .filter(|target| !ready.contains(&target.key))
                .cloned()
                .collect();
            let pending = wait::wait(self.cluster, &targets, self.deadline, self.events).await;
            self.tell_failures(&pending);
            report.take_pending(pending);
        }
        self.prune(report, &mut worked).await;
        worked
    }

    async fn create_namespace(&self, report: &mut Report, worked: &mut Worked) {
        let Some(name) = &self.plan.create_namespace else {
            return;
        };
        let installation = &self.plan.installation;
        let creating =
            namespace::create(self.cluster, name, installation, self.deadline, self.events);
        match creating.await {
            Ok(uid) => {
                if uid.is_some() {
                    (self.events)(Event::Applied {
                        key: namespace::key(name),
                        action: Action::Create,
                    });
                }
                worked.namespace_uid = uid;
            }
            Err(error) => self.fail(report, Failure::of(namespace::key(name), &error)),
        }
    }

    async fn wave(
        &self,
        wave: &Wave,
        report: &mut Report,
        worked: &mut Worked,
        ready: &mut BTreeSet<ObjectKey>,
    ) {
        if wave.steps.is_empty() {
            return;
        }
        if let Some(why) = self.blocked(report) {
            skip(report, wave.steps.iter(), &why);
            return;
        }
        (self.events)(Event::Wave {
            title: wave.title,
            steps: wave.steps.len(),
        });
        let installation = &self.plan.installation;
        let applier = Applier {
            manager: names::field_manager(&installation.namespace, &installation.name),
            owner: names::owner_hash(&installation.namespace, &installation.name),
            deadline: self.deadline,
        };
        let mut ended = BTreeSet::new();
        let mut terminating = BTreeSet::new();
        let mut outcomes = stream::iter(&wave.steps)
            .map(|step| applier.step(self.cluster, step))
            .buffer_unordered(self.cluster.concurrency());
        let applying = async {
            while let Some(outcome) = outcomes.next().await {
                ended.insert(&outcome.step.target.key);
                if outcome.terminating {
                    terminating.insert(&outcome.step.target.key);
                }
                self.take(outcome, report, worked);
            }
        };
        let in_time = timeout_at(self.deadline, applying).await.is_ok();
        if !in_time {
            let missed = wave.steps.iter();
            let missed = missed.filter(|step| !ended.contains(&step.target.key));
            skip(report, missed, TIME_IS_OVER);
        }
        if wave.barrier && report.is_done() {
            self.barrier(wave, &terminating, report, ready).await;
        }
    }

    /// Records what became of one step.
    fn take(&self, outcome: Outcome<'_>, report: &mut Report, worked: &mut Worked) {
        let key = &outcome.step.target.key;
        match outcome.result {
            Ok(applied) => {
                if let Some(exact) = self.plan.exact.objects.get(key) {
                    worked.recorded.applied(key, exact, &applied);
                }
                for settled in outcome.settled {
                    (self.events)(Event::Settled(settled.clone()));
                    report.settled.push(settled);
                }
                match outcome.step.action {
                    _ if outcome.recreated => report.recreated.push(key.clone()),
                    Action::Create => report.created.push(key.clone()),
                    Action::Update | Action::Restore | Action::Refresh => {
                        report.changed.push(key.clone());
                    }
                }
                (self.events)(Event::Applied {
                    key: key.clone(),
                    action: outcome.step.action,
                });
                for message in outcome.warnings {
                    (self.events)(Event::Warning {
                        key: key.clone(),
                        message,
                    });
                }
            }
            Err(error) => self.fail(report, Failure::of(key.clone(), &error)),
        }
    }

    /// Waits until the objects of a wave can be built upon: definitions are served, namespaces stay, the rest is ready.
    async fn barrier(
        &self,
        wave: &Wave,
        terminating: &BTreeSet<&ObjectKey>,
        report: &mut Report,
        ready: &mut BTreeSet<ObjectKey>,
    ) {
        let mut definitions = Vec::new();
        let mut others = Vec::new();
        for step in &wave.steps {
            let key = &step.target.key;
            if terminating.contains(key) {
                let readiness = Readiness {
                    status: Status::Terminating,
                    message: "it is being deleted; wait until it is gone and run again".to_owned(),
                };
                report.not_ready.push((key.clone(), readiness));
            } else if is_definition(key) {
                definitions.extend(Definition::of(&step.object));
                ready.insert(key.clone());
            } else if key.group.is_empty() && key.kind == "Namespace" {
                // A namespace that is not terminating is active from its creation.
                ready.insert(key.clone());
            } else {
                others.push(step.target.clone());
            }
        }
        if !definitions.is_empty() {
            // The kinds that were cached before are no longer all there are.
            self.cluster.forget_kinds().await;
        }
        let tell = wait::teller(self.events);
        let (unserved, pending) = futures::join!(
            served::wait(self.cluster, definitions, self.deadline, &tell),
            wait::wait(self.cluster, &others, self.deadline, self.events),
        );
        for pending in [unserved, pending] {
            self.tell_failures(&pending);
            report.take_pending(pending);
        }
    }

    /// Deletes and releases, only where everything before went well: what failed may still be needed.
    async fn prune(&self, report: &mut Report, worked: &mut Worked) {
        if let Some(why) = self.blocked(report) {
            let deletions = self.plan.prune.iter().flatten();
            let targets = deletions
                .map(|deletion| &deletion.target)
                .chain(&self.plan.release);
            let skipped: Vec<_> = targets
                .map(|target| (target.key.clone(), why.clone()))
                .collect();
            report.skipped.extend(skipped);
            return;
        }
        let pruned = prune::prune(self.cluster, &self.plan.prune, self.deadline, self.events).await;
        let held: BTreeSet<&ObjectKey> = pruned.held.iter().map(|(key, _)| key).collect();
        let gone = pruned.deleted.iter().filter(|key| !held.contains(key));
        for key in gone.chain(&pruned.foreign) {
            worked.recorded.remove(key);
        }
        report.pruned.extend(pruned.deleted);
        report.failed.extend(pruned.failed);
        report.skipped.extend(pruned.skipped);
        report.not_ready.extend(pruned.held);
        if !report.is_done() {
            return;
        }
        for failure in prune::release(self.cluster, self.plan).await {
            self.fail(report, failure);
        }
        let failed: BTreeSet<&ObjectKey> =
            report.failed.iter().map(|failure| &failure.key).collect();
        let released = self.plan.release.iter().map(|target| &target.key);
        for key in released.filter(|key| !failed.contains(key)) {
            worked.recorded.remove(key);
        }
    }

    /// Why nothing further may begin.
    fn blocked(&self, report: &Report) -> Option<String> {
        match (report.failed.first(), report.not_ready.first()) {
            (Some(failure), _) => Some(format!("{} failed", failure.key)),
            (_, Some((key, _))) => Some(format!("{key} is not ready")),
            _ if Instant::now() >= self.deadline => Some(TIME_IS_OVER.to_owned()),
            _ => None,
        }
    }

    fn fail(&self, report: &mut Report, failure: Failure) {
        (self.events)(Event::Failed {
            key: failure.key.clone(),
            message: failure.message.clone(),
        });
        report.failed.push(failure);
    }

    fn tell_failures(&self, pending: &[(ObjectKey, Readiness)]) {
        for (key, readiness) in pending {
            if readiness.status == Status::Failed {
                (self.events)(Event::Failed {
                    key: key.clone(),
                    message: readiness.message.clone(),
                });
            }
        }
    }
}

fn skip<'a>(report: &mut Report, steps: impl Iterator<Item = &'a Step>, why: &str) {
    let skipped = steps.map(|step| (step.target.key.clone(), why.to_owned()));
    report.skipped.extend(skipped);
}
