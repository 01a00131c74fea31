//! Records that other tools keep of what becomes ours: which of them can be set aside (semantics 12).

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::former::{self, Members};
use addons_engine::{Cluster, EngineError, snapshot};
use addons_helm::release::stored::{self, Stored};
use common::api::installation::{AddonInstallationStatus, FormerRecord, FormerTool, ObjectState};
use common::api::names::InstallationName;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::parse::{Options, parse};
use common::plan::InstallationPlan;
use common::plan::claims::Claims;
use common::plan::snapshot::{FormerMark, LiveObject, Reads, Snapshot};
use serde_json::Value;

use crate::adopt::AdoptError;
use crate::error::OperationError;
use crate::release;
use crate::resolved::Resolved;

/// Objects that are named one by one.
const NAMED: usize = 3;

/// Adds to a plan the records that are set aside with it, and why others stay. What an interrupted operation was setting aside is
/// continued, as its tool has it now; others are looked for only where objects are adopted. `live`: what is there, and what other
/// installations own.
pub(crate) async fn records(
    cluster: &Cluster,
    resolved: &Resolved,
    (snapshot, claims): (&Snapshot, &Claims),
    adopts: bool,
    plan: &mut InstallationPlan,
) -> Result<(), OperationError> {
    let judge = Judge {
        cluster,
        snapshot,
        claims,
    };
    judge.records(resolved, adopts, plan).await
}

/// What decides about the records.
struct Judge<'a> {
    cluster: &'a Cluster,
    snapshot: &'a Snapshot,
    claims: &'a Claims,
}

impl Judge<'_> {
    async fn records(
        &self,
        resolved: &Resolved,
        adopts: bool,
        plan: &mut InstallationPlan,
    ) -> Result<(), OperationError> {
        let status = resolved.status();
        let recorded = status.map(|status| status.former.as_slice());
        let recorded = recorded.unwrap_or_default().iter();
        let (open, begun): (Vec<_>, Vec<_>) = recorded
            .filter(|record| !record.is_set_aside)
            .cloned()
            .partition(|record| record.objects.is_empty());
        // Helm may have written more of them since they were listed.
        let mut marks: BTreeSet<FormerMark> = begun.iter().filter_map(mark).collect();
        plan.former = begun;
        if adopts {
            marks.extend(open.iter().filter_map(mark));
            marks.extend(self.marks(plan));
        }
        for mark in marks {
            match self.of_mark(&mark, plan).await {
                Ok(Some(Aside { record, values })) => {
                    plan.warnings.extend(unrecorded(&record, &values, resolved));
                    match plan.former.iter_mut().find(|one| one.is_same(&record)) {
                        Some(begun) => renew(begun, record),
                        None => plan.former.push(record),
                    }
                }
                Ok(None) => {}
                Err(Obstacle::Stays(why)) => {
                    let warning = stays(&mark, &why, &plan.installation);
                    plan.warnings.push(warning);
                    stay(&mut plan.former, &mark);
                }
                Err(Obstacle::Failed(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The releases and applications that our objects are marked with.
    fn marks(&self, plan: &InstallationPlan) -> BTreeSet<FormerMark> {
        let ours = plan.exact.objects.iter();
        let ours = ours.filter(|(_, item)| item.object.state != ObjectState::Preexisting);
        let marks = ours.filter_map(|(key, _)| self.snapshot.live.get(key)?.former.clone());
        marks.collect()
    }

    /// The records behind a mark, where everything that they name is ours or of another installation.
    async fn of_mark(
        &self,
        mark: &FormerMark,
        plan: &InstallationPlan,
    ) -> Result<Option<Aside>, Obstacle> {
        let Some(found) = former::find(self.cluster, mark).await? else {
            return Ok(None);
        };
        let mut values = Vec::new();
        let others = match &found.members {
            Members::Helm(text) => {
                let release =
                    stored::read(text).map_err(|error| Obstacle::Stays(error.to_string()))?;
                values = given(&release);
                self.of_release(mark, &release).await?
            }
            Members::Kapp { selector, kinds } => {
                former::labelled(self.cluster, selector, kinds).await?
            }
        };
        let mut others: Vec<&ObjectKey> = others.keys().collect();
        others.retain(|key| {
            !plan.exact.objects.contains_key(*key) && !self.claims.objects.contains_key(*key)
        });
        if !others.is_empty() {
            let why = format!("not taken over: {}", names(&others));
            return Err(Obstacle::Stays(why));
        }
        former::check(self.cluster, &plan.installation, &found.record).await?;
        Ok(Some(Aside {
            record: found.record,
            values,
        }))
    }

    /// The live objects of a release.
    async fn of_release(
        &self,
        mark: &FormerMark,
        release: &Stored,
    ) -> Result<BTreeMap<ObjectKey, LiveObject>, Obstacle> {
        let options = Options::default();
        let parsed = parse(release.manifest.as_bytes(), "its manifest", &options);
        let parsed = parsed.map_err(|error| Obstacle::Stays(error.to_string()))?;
        let objects = parsed.manifests.iter().map(|manifest| &*manifest.object);
        let needed = objects.clone().filter_map(Gvk::of);
        let needed = needed.map(|gvk| (gvk.group, gvk.kind)).collect();
        let kinds = self.cluster.kinds(&needed).await?;
        let FormerMark::Helm { namespace, .. } = mark else {
            return Ok(BTreeMap::new());
        };
        let keys = objects.filter_map(ObjectKey::of).map(|mut key| {
            let kind = kinds.preferred(&key.group, &key.kind);
            if key.namespace.is_none() && kind.is_some_and(|(_, info)| info.namespaced) {
                key.namespace = Some(namespace.clone());
            }
            key
        });
        let objects: BTreeSet<ObjectKey> = keys.collect();
        let reads = Reads {
            recorded: objects.clone(),
            objects,
            ..Reads::default()
        };
        let (_, mut found) = snapshot::read(self.cluster, kinds, &reads).await?;
        found
            .live
            .retain(|_, live| live.former.as_ref() == Some(mark));
        let unread = found.unreadable.into_keys();
        let unread = unread.map(|key| (key, LiveObject::default()));
        found.live.extend(unread);
        Ok(found.live)
    }
}

/// Completes a plan that gives an installation back.
pub(crate) fn give_back(
    status: &AddonInstallationStatus,
    plan: &mut InstallationPlan,
) -> Result<(), AdoptError> {
    if release::recorded(status).is_some() {
        return Err(AdoptError::Release(plan.installation.clone()));
    }
    let installed = status.installed.as_ref();
    if installed.is_some_and(|installed| !installed.adopted) {
        for record in status.former.iter().filter(|record| record.is_set_aside) {
            plan.warnings.push(format!(
                "the objects were upgraded since they were taken over from {record}: they stay as they are now"
            ));
        }
    }
    Ok(())
}

/// Records that are set aside.
struct Aside {
    record: FormerRecord,
    /// The names at the top of the values that a user gave the release.
    values: Vec<String>,
}

fn given(release: &Stored) -> Vec<String> {
    let config = release.config.as_ref().and_then(Value::as_object);
    config
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

/// A sentence where values of a release are not values of the installation: helm finds them now, and not afterwards. They are not
/// taken over, for whoever reads the record would read what was in a Secret.
fn unrecorded(record: &FormerRecord, values: &[String], resolved: &Resolved) -> Option<String> {
    let own = resolved.wanted.spec.values.as_ref();
    let missing = values
        .iter()
        .filter(|name| own.is_none_or(|own| own.get(name).is_none()));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    let FormerRecord {
        namespace, name, ..
    } = record;
    (!missing.is_empty()).then(|| {
        format!(
            "{record} was given values for {}, which are not recorded here: give them with -f, or the next upgrade applies \
             defaults; before it is taken over, helm get values {name} --namespace {namespace} --output yaml prints them",
            missing.join(", ")
        )
    })
}

/// Why records are not set aside.
enum Obstacle {
    /// They stay where their tool finds them, and the rest goes on.
    Stays(String),
    /// Nothing goes on.
    Failed(EngineError),
}

impl From<EngineError> for Obstacle {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Forbidden { .. } | EngineError::Denied { .. } => {
                Self::Stays(error.to_string())
            }
            error => Self::Failed(error),
        }
    }
}

fn stays(mark: &FormerMark, why: &str, installation: &InstallationName) -> String {
    let (what, tool) = match mark {
        FormerMark::Helm { namespace, name } => {
            (format!("Helm release {namespace}/{name}"), "helm")
        }
        FormerMark::Kapp { label } => (format!("the kapp application with label {label}"), "kapp"),
    };
    let InstallationName { namespace, name } = installation;
    format!(
        "the records of {what} stay, and {tool} can still delete its objects: {why}; once that is resolved, \
         kubectl addons upgrade {name} -n {namespace} --adopt sets them aside"
    )
}

/// Adds to records that an interrupted operation began with what their tool has written since. Those that are set aside already are
/// older, and found no more.
fn renew(begun: &mut FormerRecord, found: FormerRecord) {
    begun.objects.retain(|old| {
        let mut now = found.objects.iter();
        !now.any(|one| one.kind == old.kind && one.name == old.name)
    });
    begun.objects.extend(found.objects);
}

/// Notes that records stay. Those that an interrupted operation began with are in the status, and stay there as they are.
fn stay(planned: &mut Vec<FormerRecord>, mark: &FormerMark) {
    let Some(noted) = noted(mark) else {
        return;
    };
    let begun = planned.iter().position(|one| one.is_same(&noted));
    match begun {
        Some(begun) => drop(planned.remove(begun)),
        None => planned.push(noted),
    }
}

/// What is noted of records that stay: our next apply removes the mark of a release from its objects.
fn noted(mark: &FormerMark) -> Option<FormerRecord> {
    match mark {
        FormerMark::Helm { namespace, name } => Some(FormerRecord {
            tool: FormerTool::Helm,
            namespace: namespace.clone(),
            name: name.clone(),
            objects: Vec::new(),
            is_set_aside: false,
        }),
        FormerMark::Kapp { .. } => None,
    }
}

/// The mark behind what is noted.
fn mark(record: &FormerRecord) -> Option<FormerMark> {
    (record.tool == FormerTool::Helm).then(|| FormerMark::Helm {
        namespace: record.namespace.clone(),
        name: record.name.clone(),
    })
}

/// `shop/ConfigMap a, shop/ConfigMap b and 3 more`.
fn names(keys: &[&ObjectKey]) -> String {
    let named: Vec<String> = keys.iter().take(NAMED).map(ToString::to_string).collect();
    let named = named.join(", ");
    match keys.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use common::api::installation::FormerObject;

    use super::*;

    /// The records of these revisions.
    fn release(revisions: &[u64]) -> FormerRecord {
        let objects = revisions.iter().map(|revision| FormerObject {
            kind: "Secret".to_owned(),
            name: format!("sh.helm.release.v1.web.v{revision}"),
            uid: revision.to_string(),
        });
        FormerRecord {
            tool: FormerTool::Helm,
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            objects: objects.collect(),
            is_set_aside: false,
        }
    }

    /// Semantics 12: what is continued is the release as helm has it now; what of it may not be set aside stays begun.
    #[test]
    fn what_helm_wrote_since_an_interruption_counts() {
        let mut begun = release(&[1, 2, 3]);
        renew(&mut begun, release(&[2, 3, 4]));
        assert_eq!(begun, release(&[1, 2, 3, 4]));

        let mark = mark(&begun).unwrap();
        let mut planned = Vec::new();
        stay(&mut planned, &mark);
        assert_eq!(planned, [release(&[])]);
        planned = vec![begun];
        stay(&mut planned, &mark);
        assert!(planned.is_empty(), "{planned:?}");
    }
}
