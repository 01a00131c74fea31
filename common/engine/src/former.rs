//! Handles the records of other tools: Secrets or ConfigMaps of Helm, ConfigMaps of kapp. They are set aside when every object that they
//! name is owned by an installation, restored when the objects are given back, or deleted with them (semantics 12.12).
//!
//! A tool finds its records by labels. Setting records aside removes these labels; an annotation keeps them. kapp also reads a ConfigMap by
//! its name, so the key that it reads is renamed.

mod helm;
pub mod kapp;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use addons_plan::closing::record_key as key;
use addons_plan::prune::PruneObstacle;
use addons_plan::snapshot::{FormerMark, LiveObject};
use common::api::installation::{FormerObject, FormerRecord, FormerTool};
use common::api::names::{
    ANNOTATION_SET_ASIDE, CLIENT, InstallationName, LABEL_SET_ASIDE, owner_hash,
};
use common::entrance;
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::delete::{DeletionTarget, Propagation, delete};
use super::error::EngineError;
use super::listing;
use super::meta::LiveMetadata;
use super::request::{ApiCall, JSON, MERGE_PATCH, METADATA};
use super::snapshot::{self, read_selected};

/// How often to retry a record that its tool writes meanwhile.
const TRIES: usize = 5;
/// The labels by which the tools find their records.
const HELM_OWNER: &str = "owner";
const KAPP_APP: &str = "kapp.k14s.io/is-app";
const KAPP_CHANGE: &str = "kapp.k14s.io/is-app-change";
/// The labels of a kapp change that name its application: by the label value of its objects, or by its name alone.
const KAPP_CHANGE_OF_LABEL: &str = "kapp.k14s.io/app-change-app-label";
const KAPP_CHANGE_OF_NAME: &str = "kapp.k14s.io/app-change-app";
/// The suffix of an application's ConfigMap, if kapp was told to use full names.
const KAPP_SUFFIX: &str = ".apps.k14s.io";
/// The key that kapp reads from an application's ConfigMap, and its name while the record is set aside.
const KAPP_DATA: &str = "spec";
const KAPP_DATA_ASIDE: &str = "set-aside.spec";

/// The records of another tool, and the objects that they name.
#[derive(Clone, Debug)]
pub struct FormerRecords {
    /// The records.
    pub record: FormerRecord,
    /// The objects that they name.
    pub members: FormerMembers,
    /// The status of the newest revision, in helm's words: `deployed`, `pending-upgrade`.
    pub status: Option<String>,
}

/// Returns the error for a release that helm is changing, or left in the middle of a change; `None` if nothing is pending. Such a release
/// is not taken over, because helm would continue with objects that we own. Helm itself refuses it, too.
#[must_use]
pub fn pending(record: &FormerRecord, status: Option<&str>) -> Option<EngineError> {
    let status =
        status.filter(|status| status.starts_with("pending-") || *status == "uninstalling")?;
    let last = record.objects.last()?;
    let FormerRecord {
        namespace, name, ..
    } = record;
    Some(EngineError::conflict(
        key(record, last),
        format!(
            "{record} is {status}: helm is at work, or was interrupted; wait for it, or end it with helm rollback {name} \
             --namespace {namespace}"
        ),
    ))
}

/// How a tool records which objects are its own.
#[derive(Clone, Debug)]
pub enum FormerMembers {
    /// In the newest record of a release, in helm's encoding.
    Helm(Vec<u8>),
    /// By a label, on objects of these kinds.
    Kapp {
        /// `NAME=VALUE`.
        selector: String,
        /// Group and kind.
        kinds: Vec<(String, String)>,
    },
}

/// A record with its content.
#[derive(Deserialize)]
struct FormerContent {
    metadata: LiveMetadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// Finds the records to which a mark of objects points; `None` if its tool has none, or would not find them.
///
/// # Errors
/// Those of the requests.
pub async fn find(
    cluster: &Cluster,
    mark: &FormerMark,
) -> Result<Option<FormerRecords>, EngineError> {
    match mark {
        FormerMark::Helm { namespace, name } => helm::find(cluster, namespace, name).await,
        FormerMark::Kapp { label } => of_kapp(cluster, label).await,
    }
}

/// The state of records that a status lists as being set aside. The status is not trusted, because anyone who may write it can name any
/// records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormerBegin {
    /// Their tool still finds them, by this mark of objects.
    Marked(FormerMark),
    /// All of them are set aside by the installation.
    Aside,
    /// They do not exist any more, or the installation never began to set them aside.
    Foreign,
}

/// Reads the state of records that an interrupted operation began to set aside.
///
/// # Errors
/// Those of the request.
pub async fn begun(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<FormerBegin, EngineError> {
    if record.tool == FormerTool::Helm {
        return Ok(FormerBegin::Marked(FormerMark::Helm {
            namespace: record.namespace.clone(),
            name: record.name.clone(),
        }));
    }
    let Some(app) = application(cluster, record).await? else {
        return Ok(FormerBegin::Foreign);
    };
    let owner = owner_hash(&installation.namespace, &installation.name);
    Ok(match kapp_meta(&app) {
        Some(meta) => FormerBegin::Marked(FormerMark::Kapp {
            label: meta.label_value,
        }),
        None if app.metadata.labels.get(LABEL_SET_ASIDE) == Some(&owner) => FormerBegin::Aside,
        None => FormerBegin::Foreign,
    })
}

/// Reads the ConfigMap of a kapp application, which is the last object of its record; `None` if it was deleted or recreated.
async fn application(
    cluster: &Cluster,
    record: &FormerRecord,
) -> Result<Option<FormerContent>, EngineError> {
    let Some(object) = record.objects.last() else {
        return Ok(None);
    };
    let collection = collection(&object.kind, &record.namespace);
    let call = ApiCall::get(&collection, &object.name, JSON);
    match cluster.send::<FormerContent>(call).await {
        Ok(answer) => Ok(Some(answer.object).filter(|app| app.metadata.uid == object.uid)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The data that kapp writes into an application's ConfigMap.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KappMeta {
    label_key: String,
    label_value: String,
    #[serde(rename = "usedGKs")]
    kinds: Vec<KappKind>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KappKind {
    #[serde(default)]
    group: String,
    kind: String,
}

/// Returns the data of an application; `None` if kapp would not find the ConfigMap as one.
fn kapp_meta(app: &FormerContent) -> Option<KappMeta> {
    app.metadata.labels.get(KAPP_APP)?;
    entrance::from_str(app.data.get(KAPP_DATA)?).ok()
}

async fn of_kapp(cluster: &Cluster, label: &str) -> Result<Option<FormerRecords>, EngineError> {
    let everywhere = Collection::from_names("v1", "ConfigMap", "configmaps", None);
    let apps = listing::list_all::<FormerContent>(cluster, &everywhere, Some(KAPP_APP)).await?;
    let app = apps.into_iter().find_map(|app| {
        let meta = kapp_meta(&app)?;
        (meta.label_value == label).then_some((app.metadata, meta))
    });
    let Some((app, meta)) = app else {
        return Ok(None);
    };
    let namespace = app.namespace.clone().unwrap_or_default();
    let name = app.name.strip_suffix(KAPP_SUFFIX).unwrap_or(&app.name);
    let name = name.to_owned();
    let selectors = [("labelSelector", KAPP_CHANGE)];
    let changes = read_selected(cluster, &collection("ConfigMap", &namespace), &selectors).await?;
    let mut found = changes.unwrap_or_default();
    found.retain(|change| is_change(&change.labels, Some(label), &name));
    // The application is set aside last: until then, kapp finds all of it.
    found.push(app);
    Ok(Some(FormerRecords {
        record: record(FormerTool::Kapp, &namespace, &name, "ConfigMap", &found),
        members: FormerMembers::Kapp {
            selector: format!("{}={}", meta.label_key, meta.label_value),
            kinds: meta
                .kinds
                .into_iter()
                .map(|KappKind { group, kind }| (group, kind))
                .collect(),
        },
        status: None,
    }))
}

fn record(
    tool: FormerTool,
    namespace: &str,
    name: &str,
    kind: &str,
    objects: &[LiveMetadata],
) -> FormerRecord {
    let objects = objects.iter().map(|object| FormerObject {
        kind: kind.to_owned(),
        name: object.name.clone(),
        uid: object.uid.clone(),
    });
    FormerRecord {
        tool,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        objects: objects.collect(),
        is_set_aside: false,
    }
}

/// Lists the live objects with a label of kapp, except those that a controller created.
///
/// # Errors
/// Those of the requests.
pub async fn labelled(
    cluster: &Cluster,
    selector: &str,
    wanted: &[(String, String)],
) -> Result<BTreeMap<ObjectKey, LiveObject>, EngineError> {
    let kinds = cluster.kinds(&wanted.iter().cloned().collect()).await?;
    let mut all = BTreeMap::new();
    for (group, kind) in wanted {
        let Some((gvk, info)) = kinds.preferred(group, kind) else {
            continue;
        };
        let collection = Collection::new(gvk, info, None);
        let selectors = [("labelSelector", selector)];
        for metadata in addressed::list_metadata(cluster, &collection, &selectors).await? {
            let key = collection.key(&metadata);
            let live = snapshot::to_live_object(metadata);
            if live.controlled_by.is_none() {
                all.insert(key, live);
            }
        }
    }
    Ok(all)
}

/// Asks the server, with a dry run, whether the records may be set aside.
///
/// # Errors
/// Those of the request, such as a refusal.
pub async fn check(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<(), EngineError> {
    match record.objects.last() {
        Some(object) => {
            let label = kapp_label(cluster, record).await?;
            move_aside(
                cluster,
                installation,
                (record, label.as_deref()),
                object,
                true,
            )
            .await
        }
        None => Ok(()),
    }
}

/// Sets records aside one after another, the newest last, so that after an interruption the tool still finds what is installed. Fails
/// before the first write if helm has changed the release since its records were listed.
pub(super) async fn set_aside(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<(), EngineError> {
    if record.tool == FormerTool::Helm {
        helm::check(cluster, record).await?;
    }
    let label = kapp_label(cluster, record).await?;
    for object in &record.objects {
        move_aside(
            cluster,
            installation,
            (record, label.as_deref()),
            object,
            false,
        )
        .await?;
    }
    Ok(())
}

/// Reads the label value of an application's objects; `None` for helm, or if kapp does not find the application any more.
async fn kapp_label(
    cluster: &Cluster,
    record: &FormerRecord,
) -> Result<Option<String>, EngineError> {
    if record.tool == FormerTool::Helm {
        return Ok(None);
    }
    let app = application(cluster, record).await?;
    Ok(app.and_then(|app| Some(kapp_meta(&app)?.label_value)))
}

/// Restores records that were set aside, the newest first, so that their tool always finds what is installed.
pub(super) async fn restore(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<(), EngineError> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    for object in record.objects.iter().rev() {
        rewrite(cluster, record, object, false, |live| {
            let labels = &live.metadata.labels;
            labels.get(LABEL_SET_ASIDE).filter(|by| **by == owner)?;
            let kept = live.metadata.annotations.get(ANNOTATION_SET_ASIDE)?;
            let mut restored: BTreeMap<String, Option<String>> = entrance::from_str(kept).ok()?;
            restored.insert(LABEL_SET_ASIDE.to_owned(), None);
            let mut patch = json!({"metadata": {
                "labels": restored,
                "annotations": {ANNOTATION_SET_ASIDE: null},
            }});
            if let Some(data) = live.data.get(KAPP_DATA_ASIDE) {
                patch["data"] = json!({KAPP_DATA: data, KAPP_DATA_ASIDE: null});
            }
            Some(patch)
        })
        .await?;
    }
    Ok(())
}

/// Deletes records that were set aside.
pub(super) async fn delete_all(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<(), EngineError> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    for object in &record.objects {
        let collection = collection(&object.kind, &record.namespace);
        let doomed = DeletionTarget {
            collection: &collection,
            name: &object.name,
            uid: &object.uid,
            judged: "",
            propagation: Propagation::Background,
        };
        let judge = |found: &LiveMetadata| {
            let is_ours = found.labels.get(LABEL_SET_ASIDE) == Some(&owner);
            (!is_ours).then_some(PruneObstacle::UNMARKED)
        };
        delete(cluster, doomed, judge).await?;
    }
    Ok(())
}

async fn move_aside(
    cluster: &Cluster,
    installation: &InstallationName,
    (record, label): (&FormerRecord, Option<&str>),
    object: &FormerObject,
    dry_run: bool,
) -> Result<(), EngineError> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    rewrite(cluster, record, object, dry_run, |live| {
        let labels = &live.metadata.labels;
        if !is_of(record, label, &live.metadata) {
            return None;
        }
        let taken: BTreeMap<&str, &String> = [HELM_OWNER, KAPP_APP, KAPP_CHANGE]
            .into_iter()
            .filter_map(|label| Some((label, labels.get(label)?)))
            .collect();
        let kept = json!(taken).to_string();
        let mut patch = json!({"metadata": {
            "labels": {LABEL_SET_ASIDE: owner},
            "annotations": {ANNOTATION_SET_ASIDE: kept},
        }});
        for label in taken.keys() {
            patch["metadata"]["labels"][*label] = Value::Null;
        }
        if let Some(data) = live.data.get(KAPP_DATA)
            && record.tool == FormerTool::Kapp
        {
            patch["data"] = json!({KAPP_DATA: null, KAPP_DATA_ASIDE: data});
        }
        Some(patch)
    })
    .await
}

/// Whether an object belongs to a record and its tool still finds it. Checked because anyone who may write installations can name any
/// object in a status. `label`: the label value of a kapp application's objects.
fn is_of(record: &FormerRecord, label: Option<&str>, live: &LiveMetadata) -> bool {
    let labels = &live.labels;
    let is = |label: &str, value: &str| labels.get(label).is_some_and(|found| found == value);
    match record.tool {
        FormerTool::Helm => is(HELM_OWNER, "helm") && is("name", &record.name),
        FormerTool::Kapp if labels.contains_key(KAPP_APP) => {
            live.name.strip_suffix(KAPP_SUFFIX).unwrap_or(&live.name) == record.name
        }
        FormerTool::Kapp => {
            labels.contains_key(KAPP_CHANGE) && is_change(labels, label, &record.name)
        }
    }
}

/// Whether the labels of a kapp change name an application: by the label value of its objects, or by its name alone.
fn is_change(labels: &BTreeMap<String, String>, label: Option<&str>, name: &str) -> bool {
    match labels.get(KAPP_CHANGE_OF_LABEL) {
        Some(of) => Some(of.as_str()) == label,
        None => labels.get(KAPP_CHANGE_OF_NAME).is_some_and(|of| of == name),
    }
}

/// Reads one object of a record, and patches it with what `change` returns. An object that was deleted or recreated is left alone.
async fn rewrite(
    cluster: &Cluster,
    record: &FormerRecord,
    object: &FormerObject,
    dry_run: bool,
    change: impl Fn(&FormerContent) -> Option<Value>,
) -> Result<(), EngineError> {
    let collection = collection(&object.kind, &record.namespace);
    // The content of a release is not needed, and large.
    let accept = match record.tool {
        FormerTool::Helm => METADATA,
        FormerTool::Kapp => JSON,
    };
    let mut tries = 1;
    loop {
        let call = ApiCall::get(&collection, &object.name, accept);
        let live = match cluster.send::<FormerContent>(call).await {
            Ok(answer) => answer.object,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        if live.metadata.uid != object.uid {
            return Ok(());
        }
        let Some(mut patch) = change(&live) else {
            return Ok(());
        };
        patch["metadata"]["resourceVersion"] = json!(live.metadata.resource_version);
        let mut call = ApiCall::patch(&collection, &object.name, MERGE_PATCH, METADATA)
            .query("fieldManager", CLIENT)
            .body(patch.to_string().into_bytes());
        if dry_run {
            call = call.query("dryRun", "All");
        }
        match cluster.send::<serde::de::IgnoredAny>(call).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

fn collection(kind: &str, namespace: &str) -> Collection {
    let plural = match kind {
        "Secret" => "secrets",
        _ => "configmaps",
    };
    Collection::from_names("v1", kind, plural, Some(namespace))
}
