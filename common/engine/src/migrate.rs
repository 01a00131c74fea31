//! Writes every object of a CRD again, so that a version in which objects were stored can be removed (semantics 12.18).
//!
//! Each step follows from the live CRD, so the next run continues an interrupted migration. The plan has applied the transitional CRD
//! already; this module then replaces the objects by themselves, page by page, removes the versions from `status.storedVersions`, and
//! applies the wanted CRD. An object that is refused stops the removal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep};

use addons_plan::migration::{self, Migration};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::{Action, InstallationPlan, Step};
use common::api::names;
use common::manifest::key::ObjectKey;

use super::address::{Collection, query_value};
use super::apply::Applier;
use super::cluster::Cluster;
use super::definitions::{self, collection_in_version};
use super::error::EngineError;
use super::event::Event;
use super::journal::Journal;
use super::listing::{ListPage, read_one_page};
use super::meta::PartialObject;
use super::report::{EndedStep, Failure, StepEnd};
use super::request::{ApiCall, JSON, METADATA};

const PAGE: &str = "100";
/// How often to retry a status that other clients write meanwhile.
const TRIES: usize = 5;
/// How often to retry an object that other clients change meanwhile.
const ROUNDS: usize = 8;
/// How long the API servers of a cluster may take to see a changed CRD. Until then, one of them may store objects in the old version. The
/// API server itself allows 5 s before it establishes a CRD.
const SETTLING: SignedDuration = SignedDuration::from_secs(5);
/// The pause before a retry while a conversion webhook does not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a migration ended early.
enum MigrationStop {
    Failed(Vec<Failure>),
    /// It timed out. The objects that were written stay written.
    Late(String),
}

/// Runs the migrations of one installation.
pub(super) struct Migrator<'a> {
    cluster: &'a Cluster,
    plan: &'a InstallationPlan,
    deadline: Instant,
    events: &'a (dyn Fn(Event) + Send + Sync),
}

impl<'a> Migrator<'a> {
    pub(super) fn of(
        cluster: &'a Cluster,
        plan: &'a InstallationPlan,
        deadline: Instant,
        events: &'a (dyn Fn(Event) + Send + Sync),
    ) -> Self {
        Self {
            cluster,
            plan,
            deadline,
            events,
        }
    }

    /// Runs one migration of the plan. Called only after everything before succeeded, because a workload that was just applied may convert
    /// the objects. Writes the last CRD into the journal.
    pub(super) async fn run(&self, migration: &Migration, journal: &Journal) -> Vec<EndedStep> {
        let end = match self.one(migration, journal).await {
            Ok(written) => StepEnd::Rewritten(written),
            Err(MigrationStop::Late(message)) => StepEnd::NotReady(Readiness {
                status: ReadinessStatus::InProgress,
                message,
            }),
            Err(MigrationStop::Failed(failures)) => {
                let failures = failures.into_iter();
                return failures
                    .map(|failure| EndedStep::failed(failure, None, self.events))
                    .collect();
            }
        };
        let key = migration.definition.clone();
        vec![EndedStep { key, end }]
    }

    /// Performs all steps of a migration. Returns the number of objects that were written again.
    async fn one(&self, migration: &Migration, journal: &Journal) -> Result<usize, MigrationStop> {
        let definition = self.settled(migration).await?;
        let written = self.objects(migration, &definition).await?;
        self.leave(migration, &definition).await?;
        self.finish(migration, journal).await?;
        Ok(written)
    }

    /// Returns the transitional CRD once every API server has seen it.
    async fn settled(&self, migration: &Migration) -> Result<Value, MigrationStop> {
        let key = &migration.definition;
        let found = definitions::read_definition(self.cluster, &key.name).await;
        let definition = found
            .map_err(|error| failed(key, &error))?
            .filter(|found| migration.is_transitional(found));
        let definition = definition.ok_or_else(|| changed(key))?;
        let settled = changed_at(&definition).and_then(|at| at.checked_add(SETTLING).ok());
        let left = settled.map(|settled| settled.duration_since(self.cluster.now()));
        if let Some(left) = left.and_then(|left| Duration::try_from(left).ok()) {
            // The wait is bounded, because a clock may be wrong.
            sleep(left.min(SETTLING.unsigned_abs())).await;
        }
        Ok(definition)
    }

    /// Writes every object again. Returns their number.
    async fn objects(
        &self,
        migration: &Migration,
        definition: &Value,
    ) -> Result<usize, MigrationStop> {
        let version =
            migration::served_version(definition).ok_or_else(|| changed(&migration.definition))?;
        let collection = collection_in_version(definition, version.to_owned());
        let mut done = BTreeSet::new();
        let mut next = String::new();
        loop {
            let page = match self.page(&collection, &next).await {
                Ok(page) => page,
                // The continue token expired: list again, without the objects that were written.
                Err(error) if error.code() == Some(410) && !next.is_empty() => {
                    next.clear();
                    continue;
                }
                Err(error) if self.is_over() => return Err(late(migration, done.len(), &error)),
                // The workload of the webhook may be rolling out.
                Err(error) if error.is_conversion_failure() => {
                    self.tell(
                        migration,
                        ReadinessStatus::InProgress,
                        format!("the conversion does not answer yet: {}", error.describe()),
                    );
                    sleep(PAUSE).await;
                    continue;
                }
                Err(error) => return Err(failed(&migration.definition, &error)),
            };
            let objects: Vec<Value> = page
                .items
                .into_iter()
                .filter(|object| !done.contains(&uid(object)))
                .collect();
            if !objects.is_empty() && !migration.is_accepted {
                return Err(unexpected(migration));
            }
            self.write(migration, &collection, objects, &mut done)
                .await?;
            next = page.metadata.r#continue;
            if next.is_empty() {
                return Ok(done.len());
            }
            self.tell(
                migration,
                ReadinessStatus::InProgress,
                format!("{} objects written again", done.len()),
            );
        }
    }

    async fn page(
        &self,
        collection: &Collection,
        next: &str,
    ) -> Result<ListPage<Value>, EngineError> {
        let mut call = ApiCall::list(collection, JSON).query("limit", PAGE);
        if !next.is_empty() {
            call = call.query("continue", &query_value(next));
        }
        read_one_page(self.cluster, call).await
    }

    /// Writes the objects of one page again. Returns every refused object as a failure.
    async fn write(
        &self,
        migration: &Migration,
        collection: &Collection,
        objects: Vec<Value>,
        done: &mut BTreeSet<String>,
    ) -> Result<(), MigrationStop> {
        let written: Vec<_> = stream::iter(objects)
            .map(async |object| {
                let (uid, key) = (uid(&object), key(collection, &object));
                (uid, key, self.again(migration, collection, object).await)
            })
            .buffered(self.cluster.concurrency())
            .collect()
            .await;
        let mut failures = Vec::new();
        for (uid, key, result) in written {
            match result {
                Ok(()) => drop(done.insert(uid)),
                Err(error) => failures.push(Failure::of(key, &error)),
            }
        }
        if !failures.is_empty() {
            return Err(MigrationStop::Failed(failures));
        }
        if self.is_over() {
            return Err(MigrationStop::Late(progress(
                migration,
                done.len(),
                "timed out",
            )));
        }
        Ok(())
    }

    /// Replaces an object by itself, again if another client changed it meanwhile. Moves its managedFields to the version that stays: the
    /// server would drop them at the next write after the other versions are removed.
    async fn again(
        &self,
        migration: &Migration,
        collection: &Collection,
        mut object: Value,
    ) -> Result<(), EngineError> {
        let key = key(collection, &object);
        let collection = Collection {
            namespace: key.namespace.clone(),
            ..collection.clone()
        };
        let mut rounds = 0;
        loop {
            if let Some(entries) = migration.move_managed_fields(&object) {
                object["metadata"]["managedFields"] = entries.into();
            }
            let call = ApiCall::replace(&collection, &key.name, METADATA)
                .query("fieldManager", names::CLIENT)
                .body(object.to_string().into_bytes());
            let error = match self.cluster.send::<PartialObject>(call).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => error,
            };
            rounds += 1;
            let waits = error.is_conversion_failure() && !self.is_over();
            if waits {
                sleep(PAUSE).await;
            } else if !error.is_conflict() || rounds == ROUNDS {
                return Err(error);
            }
            let call = ApiCall::get(&collection, &key.name, JSON);
            match self.cluster.send::<Value>(call).await {
                Ok(answer) => object = answer.object,
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if error.is_conversion_failure() && waits => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the versions from the CRD's status, as long as the CRD is still the one whose objects were written.
    async fn leave(&self, migration: &Migration, settled: &Value) -> Result<(), MigrationStop> {
        let key = &migration.definition;
        let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
        let mut definition = settled.clone();
        for _ in 0..TRIES {
            match definitions::remove_stored_versions(
                self.cluster,
                &definition,
                &migration.versions,
            )
            .await
            {
                Ok(()) => return Ok(()),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(failed(key, &error)),
            }
            let found = definitions::read_definition(self.cluster, &key.name).await;
            definition = found
                .map_err(|error| failed(key, &error))?
                .filter(|found| generation(found) == generation(settled))
                .ok_or_else(|| changed(key))?;
        }
        Err(changed(key))
    }

    /// Applies the wanted CRD.
    async fn finish(&self, migration: &Migration, journal: &Journal) -> Result<(), MigrationStop> {
        let key = &migration.definition;
        let Some(step) = self.plan.step(key) else {
            return Err(changed(key));
        };
        let last = Step {
            action: Action::Update,
            object: migration.wanted.clone(),
            digest: migration.digest.clone(),
            ..step.clone()
        };
        let name = &self.plan.installation;
        let applier = Applier {
            part: 0,
            manager: names::field_manager(&name.namespace, &name.name),
            owner: names::owner_hash(&name.namespace, &name.name),
            deadline: self.deadline,
            mask: Arc::clone(&self.plan.mask),
            first_job: Arc::default(),
            recorded: &self.plan.union,
            // No receiver: the error of the apply says the same.
            events: unbounded_channel().0,
        };
        let outcome = applier.apply_step(self.cluster, &last).await;
        let answer = outcome.result.map_err(|error| failed(key, &error))?;
        if let Some(exact) = self.plan.exact.objects.get(key) {
            let mut exact = exact.clone();
            exact.object.digest.clone_from(&migration.digest);
            journal.record_answer(key, &exact, &answer, &outcome.settled);
        }
        let removed = format!("{} removed", migration.versions.join(", "));
        self.tell(migration, ReadinessStatus::Current, removed);
        Ok(())
    }

    fn tell(&self, migration: &Migration, status: ReadinessStatus, message: String) {
        (self.events)(Event::Waiting {
            key: migration.definition.clone(),
            readiness: Readiness { status, message },
        });
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// Returns when a client last changed the CRD itself, not its status, by the server's clock.
fn changed_at(definition: &Value) -> Option<Timestamp> {
    let entries = definition.pointer("/metadata/managedFields")?.as_array()?;
    let of_spec = entries
        .iter()
        .filter(|entry| entry.get("subresource").is_none());
    let times = of_spec.filter_map(|entry| entry.get("time")?.as_str()?.parse().ok());
    times.max()
}

fn uid(object: &Value) -> String {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    uid.unwrap_or_default().to_owned()
}

fn key(collection: &Collection, object: &Value) -> ObjectKey {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    ObjectKey {
        group: collection.gvk.group.clone(),
        kind: collection.gvk.kind.clone(),
        namespace: text("/metadata/namespace").map(str::to_owned),
        name: text("/metadata/name").unwrap_or_default().to_owned(),
    }
}

fn failed(key: &ObjectKey, error: &EngineError) -> MigrationStop {
    MigrationStop::Failed(vec![Failure::of(key.clone(), error)])
}

fn changed(key: &ObjectKey) -> MigrationStop {
    conflict(
        key,
        "another client changed it while its objects were written again; run the command again",
    )
}

fn unexpected(migration: &Migration) -> MigrationStop {
    conflict(
        &migration.definition,
        "objects were created after the plan was made; run the command again",
    )
}

fn conflict(key: &ObjectKey, message: &str) -> MigrationStop {
    let error = EngineError::conflict(key.clone(), message);
    failed(key, &error)
}

fn late(migration: &Migration, written: usize, error: &EngineError) -> MigrationStop {
    MigrationStop::Late(progress(migration, written, &error.describe()))
}

fn progress(migration: &Migration, written: usize, why: &str) -> String {
    format!(
        "{written} objects were written again in {}, and not all: {why}",
        migration.storage
    )
}

#[cfg(test)]
mod tests;
