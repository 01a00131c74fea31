//! Records that other tools keep of adopted objects: decides which of them can be set aside (semantics 12.12).

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::former::{self, FormerBegin, FormerMembers};
use addons_engine::release::stored::{self, StoredRelease};
use addons_engine::{Cluster, EngineError, aside, snapshot};
use addons_plan::claims::Claims;
use addons_plan::closing::{ClosingStep, HiddenRecords};
use addons_plan::found::ForeignInstall;
use addons_plan::snapshot::{FormerMark, LiveObject, Snapshot, SnapshotRequest};
use addons_plan::{InstallationPlan, Verb};
use addons_versions::tolerant;
use common::api::catalogue::Method;
use common::api::installation::{AddonInstallationStatus, FormerRecord, FormerTool, ObjectState};
use common::api::names::InstallationName;
use common::catalogue::CatalogueEntry;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::parse::{ManifestOptions, parse};
use common::text::list_first;
use common::values::merge::overlay;
use futures::future::LocalBoxFuture;
use serde_json::{Map, Value, json};

use super::list_foreign_installs;
use super::release::{merged_secrets, values_for};
use crate::context::Context;
use crate::error::{AdoptError, ConfiguredRelease, OperationError};
use crate::plan::{PlannedInstallation, release};
use crate::resolve::resolved::Resolved;
use crate::tools::{OtherTool, PlannedRemoval, Planning, Work};

/// How many objects a warning names.
const MAX_NAMED_OBJECTS: usize = 3;
/// How many values a warning names.
const MAX_NAMED_VALUES: usize = 8;

/// Helm and kapp, whose records of adopted objects are set aside.
#[derive(Debug)]
pub struct FormerOwners;

impl OtherTool for FormerOwners {
    /// Adds the records that are set aside, and warnings about the others. Records that an interrupted operation listed are continued, in
    /// their current state; others are searched only if objects are adopted.
    fn plan<'a>(
        &'a self,
        ctx: &'a Context,
        planning: Planning<'a>,
        plan: &'a mut InstallationPlan,
    ) -> Work<'a> {
        Box::pin(async move {
            let planner = FormerRecordPlanner {
                ctx,
                cluster: ctx.cluster().await?,
                snapshot: planning.snapshot,
                claims: planning.claims,
            };
            let (resolved, adopts) = (planning.resolved, planning.adopts);
            planner.plan_set_aside(resolved, adopts, plan).await
        })
    }

    /// Restores the records if objects are given back, and otherwise deletes those that are set aside.
    fn plan_removal<'a>(
        &'a self,
        _ctx: &'a Context,
        removal: PlannedRemoval<'a>,
        plan: &'a mut InstallationPlan,
    ) -> Work<'a> {
        Box::pin(async move {
            let step = match removal.gives_back {
                true => {
                    complete_release(removal.status, plan)?;
                    ClosingStep::Restore
                }
                false => ClosingStep::Discard,
            };
            if !removal.keeps {
                plan.close(removal.status.former.iter().cloned().map(step));
            }
            Ok(())
        })
    }

    fn find_installs<'a>(&'a self, ctx: &'a Context) -> LocalBoxFuture<'a, Vec<ForeignInstall>> {
        Box::pin(list_foreign_installs(ctx))
    }
}

/// The inputs for deciding about the records.
struct FormerRecordPlanner<'a> {
    ctx: &'a Context,
    cluster: &'a Cluster,
    snapshot: &'a Snapshot,
    claims: &'a Claims,
}

impl FormerRecordPlanner<'_> {
    async fn plan_set_aside(
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
        // The tool may have written more of them since they were listed, and the status alone proves nothing.
        let mut marks = BTreeSet::new();
        let mut records: Vec<HiddenRecords> = Vec::new();
        let mut continued: BTreeMap<FormerMark, FormerRecord> = BTreeMap::new();
        for record in begun {
            let begun = match former::begun(self.cluster, &plan.installation, &record).await {
                Err(error @ EngineError::Forbidden { .. }) => {
                    plan.warnings
                        .push(format!("{record} is not set aside: {error}"));
                    continue;
                }
                begun => begun?,
            };
            match begun {
                FormerBegin::Marked(mark) => {
                    marks.insert(mark.clone());
                    continued.insert(mark, record.clone());
                    records.push(HiddenRecords::hidden_already(record));
                }
                FormerBegin::Aside => records.push(HiddenRecords::hidden_already(record)),
                FormerBegin::Foreign => plan.warnings.push(format!(
                    "{record} is not set aside: its objects are gone, or are not those that were recorded"
                )),
            }
        }
        if adopts {
            marks.extend(open.iter().filter_map(mark_of_note));
            marks.extend(self.collect_marks(plan));
        }
        if !adopts {
            self.warn_of_releases(plan, &marks).await?;
        }
        let own = match marks.is_empty() {
            true => json!({}),
            false => own_values(self.ctx, resolved).await?,
        };
        for mark in marks {
            match self.records_of_mark(&mark, plan).await {
                Ok(Some(SetAsideRecords { hidden, given })) => {
                    plan.warnings.extend(given.warnings(plan, &own));
                    let mut begun = records.iter_mut();
                    match begun.find(|one| one.record.is_same(&hidden.record)) {
                        Some(begun) => merge_new_records(begun, hidden),
                        None => records.push(hidden),
                    }
                }
                Ok(None) => {}
                Err(SetAsideObstacle::Stays { why, given }) => {
                    let warnings = match given {
                        Some(given) => given.warnings(plan, &own),
                        None => unread_values(&mark, plan, &own).into_iter().collect(),
                    };
                    plan.warnings.extend(warnings);
                    let warning = describe_kept_records(&mark, &why, plan);
                    plan.warnings.push(warning);
                    keep_records(&mut records, &mark, continued.get(&mark));
                }
                Err(SetAsideObstacle::Failed(error)) => return Err(error.into()),
            }
        }
        plan.close(records.into_iter().map(ClosingStep::SetAside));
        Ok(())
    }

    /// Warns about Helm releases whose marks our objects carry (again): the next helm command would change these objects.
    async fn warn_of_releases(
        &self,
        plan: &mut InstallationPlan,
        begun: &BTreeSet<FormerMark>,
    ) -> Result<(), OperationError> {
        for mark in self.collect_marks(plan) {
            let FormerMark::Helm { namespace, name } = &mark else {
                continue;
            };
            if begun.contains(&mark) || readable(former::find(self.cluster, &mark).await)?.is_none()
            {
                continue;
            }
            let InstallationName {
                namespace: at,
                name: installation,
            } = &plan.installation;
            plan.warnings.push(format!(
                "Helm release {namespace}/{name} names objects of {installation}, and helm can change and delete them: \
                 kubectl addons upgrade {installation} -n {at} --adopt takes them from it"
            ));
        }
        Ok(())
    }

    /// Returns the releases and applications whose marks our objects carry.
    fn collect_marks(&self, plan: &InstallationPlan) -> BTreeSet<FormerMark> {
        let ours = plan.exact.objects.iter();
        let ours = ours.filter(|(_, item)| item.object.state != ObjectState::Preexisting);
        let marks = ours.filter_map(|(key, _)| self.snapshot.live.get(key)?.former.clone());
        marks.collect()
    }

    /// Returns the records behind a mark, if every object that they name belongs to this or another installation.
    async fn records_of_mark(
        &self,
        mark: &FormerMark,
        plan: &InstallationPlan,
    ) -> Result<Option<SetAsideRecords>, SetAsideObstacle> {
        let Some(found) = former::find(self.cluster, mark).await? else {
            return Ok(None);
        };
        if let Some(pending) = former::pending(&found.hidden.record, found.status.as_deref()) {
            return Err(SetAsideObstacle::Failed(pending));
        }
        let mut given = ReleaseValues::without_release(&found.hidden.record);
        let others = match &found.members {
            FormerMembers::Helm(text) => {
                let release = stored::read(text)
                    .map_err(|error| SetAsideObstacle::stays(error.to_string()))?;
                given.release = release.clone();
                self.read_release_objects(mark, &release).await?
            }
            FormerMembers::Kapp { selector, kinds } => {
                former::labelled(self.cluster, selector, kinds).await?
            }
        };
        let others: Vec<&ObjectKey> = others
            .iter()
            .filter(|(key, live)| {
                let owner = live.owner.as_ref();
                let is_owned = owner.is_some_and(|owner| self.claims.owners.contains(owner));
                let is_claimed = is_owned || self.claims.objects.contains_key(*key);
                !is_claimed && !plan.exact.objects.contains_key(*key)
            })
            .map(|(key, _)| key)
            .collect();
        if !others.is_empty() {
            return Err(SetAsideObstacle::Stays {
                why: format!("not taken over: {}", list_first(&others, MAX_NAMED_OBJECTS)),
                given: Some(Box::new(given)),
            });
        }
        let checked = aside::check(self.cluster, &plan.installation, &found.hidden).await;
        match checked.map_err(SetAsideObstacle::from) {
            Ok(()) => Ok(Some(SetAsideRecords {
                hidden: found.hidden,
                given,
            })),
            Err(SetAsideObstacle::Stays { why, .. }) => Err(SetAsideObstacle::Stays {
                why,
                given: Some(Box::new(given)),
            }),
            Err(failed) => Err(failed),
        }
    }

    /// Returns the live objects of a release.
    async fn read_release_objects(
        &self,
        mark: &FormerMark,
        release: &StoredRelease,
    ) -> Result<BTreeMap<ObjectKey, LiveObject>, SetAsideObstacle> {
        let options = ManifestOptions::default();
        let parsed = parse(release.manifest.as_bytes(), "its manifest", &options);
        let parsed = parsed.map_err(|error| SetAsideObstacle::stays(error.to_string()))?;
        let objects = parsed.manifests.iter().map(|manifest| &*manifest.object);
        let objects: Vec<&Value> = objects.collect();
        let needed = objects.iter().copied().filter_map(Gvk::of);
        let needed = needed.map(|gvk| (gvk.group, gvk.kind)).collect();
        let kinds = self.cluster.kinds(&needed).await?;
        let FormerMark::Helm { namespace, .. } = mark else {
            return Ok(BTreeMap::new());
        };
        let keys = objects.into_iter().filter_map(ObjectKey::from_object);
        let keys = keys.map(|mut key| {
            let kind = kinds.preferred(&key.group, &key.kind);
            if key.namespace.is_none() && kind.is_some_and(|(_, info)| info.namespaced) {
                key.namespace = Some(namespace.clone());
            }
            key
        });
        let objects: BTreeSet<ObjectKey> = keys.collect();
        let reads = SnapshotRequest {
            recorded: objects.clone(),
            objects,
            ..SnapshotRequest::default()
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

/// Completes a plan that releases an installation.
fn complete_release(
    status: &AddonInstallationStatus,
    plan: &mut InstallationPlan,
) -> Result<(), AdoptError> {
    if release::recorded_release(status).is_some() {
        return Err(AdoptError::Release(plan.installation.clone()));
    }
    let mut revisions = status.history.iter();
    if revisions.any(|revision| revision.verb != Verb::Adopt) {
        for record in status.former.iter().filter(|record| record.is_set_aside) {
            plan.warnings.push(format!(
                "the objects were upgraded since they were taken over from {record}: they stay as they are now"
            ));
        }
    }
    Ok(())
}

/// Records that can be set aside.
struct SetAsideRecords {
    hidden: HiddenRecords,
    given: ReleaseValues,
}

/// The values that a user set for a release, which helm no longer finds afterwards.
struct ReleaseValues {
    record: FormerRecord,
    release: StoredRelease,
}

impl ReleaseValues {
    fn without_release(record: &FormerRecord) -> Self {
        Self {
            record: record.clone(),
            release: StoredRelease::default(),
        }
    }

    /// Warns about values of a release that the installation does not have, and about a command that applies another version at once
    /// (semantics 12.12).
    fn warnings(&self, plan: &InstallationPlan, own: &Value) -> Vec<String> {
        let only_owners = plan.verb == Verb::Adopt;
        let FormerRecord {
            namespace, name, ..
        } = &self.record;
        let given = values_for(&self.release, &plan.addon);
        let missing = missing_values(Some(&given), Some(own));
        let mut warnings = Vec::new();
        if !missing.is_empty() {
            let when = match only_owners {
                true => "the next upgrade applies defaults; before it is taken over",
                false => "this command applies defaults; before that",
            };
            warnings.push(format!(
                "{} was given values for {}, which are not recorded here: give them with -f, or {when}, \
                 helm get values {name} --namespace {namespace} --output yaml prints them",
                self.record,
                list_first(&missing, MAX_NAMED_VALUES)
            ));
        }
        let to = plan.to.as_ref().map_or("", |to| to.version.as_str());
        let mut subcharts = self.release.subcharts().iter();
        if let Some(chart) = self.release.chart()
            && !only_owners
            && (chart.name == plan.addon || !subcharts.any(|it| it.name == plan.addon))
            && !to.is_empty()
            && !tolerant::is_same(to, &chart.version)
        {
            warnings.push(format!(
                "{} is of {} {}: this command applies {to}; to keep the version, name {}@{}",
                self.record, chart.name, chart.version, plan.addon, chart.version
            ));
        }
        warnings
    }
}

/// Returns the values that the installation has of its own: those of the Secrets that it names, and over them those of its spec.
async fn own_values(ctx: &Context, resolved: &Resolved) -> Result<Value, OperationError> {
    let mut own = merged_secrets(ctx, &resolved.wanted).await?;
    if let Some(values) = &resolved.wanted.spec.values {
        overlay(&mut own, values);
    }
    Ok(own)
}

/// Warns about a release whose values cannot be read, if the installation has none of its own: unreadable values may not be the defaults.
fn unread_values(mark: &FormerMark, plan: &InstallationPlan, own: &Value) -> Option<String> {
    let FormerMark::Helm { namespace, name } = mark else {
        return None;
    };
    let has_none = own.as_object().is_none_or(Map::is_empty);
    let when = match plan.verb {
        Verb::Adopt => "the next upgrade",
        _ => "this command",
    };
    has_none.then(|| {
        format!(
            "the values of Helm release {namespace}/{name} cannot be read, and may not be the defaults: give them with -f, or {when} \
             applies the defaults"
        )
    })
}

/// Returns the paths of values that differ in `own`, down to the values of maps.
pub(super) fn missing_values(given: Option<&Value>, own: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(Value::Object(given)) = given {
        for (key, value) in given {
            find_missing(key, value, own.and_then(|own| own.get(key)), &mut found);
        }
    }
    found
}

fn find_missing(path: &str, given: &Value, own: Option<&Value>, found: &mut Vec<String>) {
    match given {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let own = own.and_then(|own| own.get(key));
                find_missing(&format!("{path}.{key}"), value, own, found);
            }
        }
        given if own == Some(given) => {}
        // Helm reads whole numbers of files as floating-point numbers, and stores them so.
        Value::Number(given)
            if own
                .and_then(Value::as_f64)
                .is_some_and(|own| given.as_f64() == Some(own)) => {}
        _ => found.push(path.to_owned()),
    }
}

/// Returns the newest state of a release as its records hold it, or `None` if there is no release or its record cannot be read.
pub(super) async fn read_stored(
    cluster: &Cluster,
    mark: &FormerMark,
) -> Result<Option<StoredRelease>, OperationError> {
    let release = readable(former::find(cluster, mark).await)?.and_then(to_helm_release);
    Ok(release.map(|(_, release)| release))
}

/// Returns the release that helm would have for the installation of a chart, and the values that a user set for it.
pub(crate) async fn find_release(
    ctx: &Context,
    planned: &PlannedInstallation,
) -> Result<Option<ConfiguredRelease>, OperationError> {
    let is_chart = |entry: &&CatalogueEntry| entry.version.template.method == Method::Helm;
    let Some(entry) = planned.entry.as_ref().filter(is_chart) else {
        return Ok(None);
    };
    let spec = &planned.record.spec;
    let namespace = spec.target_namespace.clone();
    let default = entry.version.default_namespace.clone();
    let mark = FormerMark::Helm {
        namespace: namespace.or(default).unwrap_or_else(|| entry.addon.clone()),
        name: planned.plan.installation.name.clone(),
    };
    let found = readable(former::find(ctx.cluster().await?, &mark).await)?;
    let found = found.and_then(to_helm_release);
    Ok(found.map(|(record, release)| ConfiguredRelease {
        values: missing_values(
            Some(&values_for(&release, &entry.addon)),
            spec.values.as_ref(),
        ),
        namespace: record.namespace,
        name: record.name,
    }))
}

pub(super) fn to_helm_release(
    found: former::FormerRecords,
) -> Option<(FormerRecord, StoredRelease)> {
    match found.members {
        FormerMembers::Helm(text) => Some((found.hidden.record, stored::read(&text).ok()?)),
        FormerMembers::Kapp { .. } => None,
    }
}

/// Treats an object that the caller may not read as missing.
fn readable<T>(read: Result<Option<T>, EngineError>) -> Result<Option<T>, OperationError> {
    match read {
        Err(EngineError::Forbidden { .. }) => Ok(None),
        read => Ok(read?),
    }
}

/// Why records are not set aside.
enum SetAsideObstacle {
    /// The records stay where their tool finds them, and the plan continues.
    Stays {
        why: String,
        /// The values that a user set for the release, if they are known.
        given: Option<Box<ReleaseValues>>,
    },
    /// The plan fails.
    Failed(EngineError),
}

impl SetAsideObstacle {
    fn stays(why: String) -> Self {
        Self::Stays { why, given: None }
    }
}

impl From<EngineError> for SetAsideObstacle {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Forbidden { .. } | EngineError::Denied { .. } => {
                Self::stays(error.to_string())
            }
            error => Self::Failed(error),
        }
    }
}

fn describe_kept_records(mark: &FormerMark, why: &str, plan: &InstallationPlan) -> String {
    let (what, tool) = match mark {
        FormerMark::Helm { namespace, name } => {
            (format!("Helm release {namespace}/{name}"), "helm")
        }
        FormerMark::Kapp { label } => (format!("the kapp application with label {label}"), "kapp"),
    };
    let InstallationName { namespace, name } = &plan.installation;
    // Until the first upgrade, nothing has to be applied for that.
    let command = match plan.verb {
        Verb::Adopt => format!("adopt {name} -n {namespace}"),
        _ => format!("upgrade {name} -n {namespace} --adopt"),
    };
    format!(
        "the records of {what} stay, and {tool} can still delete its objects: {why}; once that is resolved, \
         kubectl addons {command} sets them aside"
    )
}

/// Adds to the records of an interrupted operation those that their tool has written since. Records that are already set aside are older,
/// and no longer found.
fn merge_new_records(begun: &mut HiddenRecords, found: HiddenRecords) {
    let recorded = &mut begun.record.objects;
    recorded.retain(|old| {
        let mut now = found.record.objects.iter();
        !now.any(|one| one.kind == old.kind && one.name == old.name)
    });
    recorded.extend(found.record.objects);
    begun.objects = found.objects;
    begun.selector = found.selector;
}

/// Plans that records stay. The records of an interrupted operation remain in the status as they are.
fn keep_records(planned: &mut Vec<HiddenRecords>, mark: &FormerMark, begun: Option<&FormerRecord>) {
    match begun {
        Some(begun) => planned.retain(|one| !one.record.is_same(begun)),
        None => planned.extend(note_records(mark).map(HiddenRecords::hidden_already)),
    }
}

/// Returns a note of records that stay: our next apply removes the mark of the release from its objects.
fn note_records(mark: &FormerMark) -> Option<FormerRecord> {
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

/// Returns the mark of noted records.
fn mark_of_note(record: &FormerRecord) -> Option<FormerMark> {
    (record.tool == FormerTool::Helm).then(|| FormerMark::Helm {
        namespace: record.namespace.clone(),
        name: record.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use addons_plan::closing::HiddenObject;
    use common::api::installation::FormerObject;

    use super::*;

    /// The records of these revisions, of which those in `found` are not hidden yet.
    fn release(revisions: &[u64], found: &[u64]) -> HiddenRecords {
        let object = |revision: &u64| FormerObject {
            kind: "Secret".to_owned(),
            name: format!("sh.helm.release.v1.web.v{revision}"),
            uid: revision.to_string(),
        };
        let hidden = found.iter().map(|revision| HiddenObject {
            object: object(revision),
            labels: BTreeMap::from([("owner".to_owned(), "helm".to_owned())]),
            data_key: None,
        });
        HiddenRecords {
            record: FormerRecord {
                tool: FormerTool::Helm,
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
                objects: revisions.iter().map(object).collect(),
                is_set_aside: false,
            },
            objects: hidden.collect(),
            selector: None,
        }
    }

    /// A value that is named and another one is missing, too; what helm stores as a floating-point number is the same number.
    #[test]
    fn values_that_are_not_recorded() {
        let given = serde_json::json!({"image": {"tag": "2", "name": "web"}, "replicas": 3.0, "port": 80, "list": [1], "none": {}});
        let own = serde_json::json!({"image": {"name": "web"}, "replicas": 3, "port": 81});
        let found = missing_values(Some(&given), Some(&own));
        assert_eq!(found, ["image.tag", "list", "none", "port"]);
        assert_eq!(missing_values(Some(&given), Some(&given)), [""; 0]);
        assert_eq!(missing_values(None, Some(&own)), [""; 0]);
    }

    /// Semantics 12: what is continued is the release as helm has it now; what of it may not be set aside stays begun.
    #[test]
    fn what_helm_wrote_since_an_interruption_counts() {
        let mut begun = release(&[1, 2, 3], &[]);
        merge_new_records(&mut begun, release(&[2, 3, 4], &[2, 3, 4]));
        assert_eq!(begun, release(&[1, 2, 3, 4], &[2, 3, 4]));

        let mark = mark_of_note(&begun.record).unwrap();
        let mut planned = Vec::new();
        keep_records(&mut planned, &mark, None);
        assert_eq!(planned, [release(&[], &[])]);
        planned = vec![begun.clone()];
        keep_records(&mut planned, &mark, Some(&begun.record));
        assert!(planned.is_empty(), "{planned:?}");
    }
}
