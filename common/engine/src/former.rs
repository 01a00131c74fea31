//! Finds the records of other tools: Secrets or ConfigMaps of Helm, ConfigMaps of kapp (semantics 12.12).

mod helm;
pub mod kapp;

use std::collections::BTreeMap;

use addons_plan::closing::{HiddenObject, HiddenRecords, record_key as key};
use addons_plan::snapshot::{FormerMark, LiveObject};
use common::api::installation::{FormerObject, FormerRecord, FormerTool};
use common::api::names::{InstallationName, LABEL_SET_ASIDE, owner_hash};
use common::entrance;
use common::manifest::key::ObjectKey;
use serde::Deserialize;

use super::address::Collection;
use super::addressed;
use super::aside::{FormerContent, collection};
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::meta::LiveMetadata;
use super::request::{self, ApiCall, JSON};
use super::snapshot::{self, read_selected};

/// The labels by which the tools find their records.
const HELM_OWNER: &str = "owner";
const KAPP_APP: &str = "kapp.k14s.io/is-app";
const KAPP_CHANGE: &str = "kapp.k14s.io/is-app-change";
/// The labels of a kapp change that name its application: by the label value of its objects, or by its name alone.
const KAPP_CHANGE_OF_LABEL: &str = "kapp.k14s.io/app-change-app-label";
const KAPP_CHANGE_OF_NAME: &str = "kapp.k14s.io/app-change-app";
/// The suffix of an application's ConfigMap, if kapp was told to use full names.
const KAPP_SUFFIX: &str = ".apps.k14s.io";
/// The key that kapp reads from an application's ConfigMap, which it finds by its name.
const KAPP_DATA: &str = "spec";

/// The records of another tool, and the objects that they name.
#[derive(Clone, Debug)]
pub struct FormerRecords {
    /// The records, and what hides them from their tool.
    pub hidden: HiddenRecords,
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
    let found = request::if_found(cluster.send::<FormerContent>(call).await)?;
    Ok(found.filter(|app| app.metadata.uid == object.uid))
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
        hidden: to_records(FormerTool::Kapp, &namespace, &name, "ConfigMap", &found),
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

/// Returns the records of a tool that consist of these objects, and what hides them.
fn to_records(
    tool: FormerTool,
    namespace: &str,
    name: &str,
    kind: &str,
    found: &[LiveMetadata],
) -> HiddenRecords {
    let objects = found.iter().map(|live| HiddenObject {
        object: FormerObject {
            kind: kind.to_owned(),
            name: live.name.clone(),
            uid: live.uid.clone(),
        },
        labels: [HELM_OWNER, KAPP_APP, KAPP_CHANGE]
            .into_iter()
            .filter_map(|label| Some((label.to_owned(), live.labels.get(label)?.clone())))
            .collect(),
        data_key: (tool == FormerTool::Kapp).then(|| KAPP_DATA.to_owned()),
    });
    let objects: Vec<HiddenObject> = objects.collect();
    let recorded = objects.iter().map(|hidden| hidden.object.clone());
    HiddenRecords {
        record: FormerRecord {
            tool,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            objects: recorded.collect(),
            is_set_aside: false,
        },
        objects,
        selector: None,
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

/// Whether the labels of a kapp change name an application: by the label value of its objects, or by its name alone.
fn is_change(labels: &BTreeMap<String, String>, label: Option<&str>, name: &str) -> bool {
    match labels.get(KAPP_CHANGE_OF_LABEL) {
        Some(of) => Some(of.as_str()) == label,
        None => labels.get(KAPP_CHANGE_OF_NAME).is_some_and(|of| of == name),
    }
}
