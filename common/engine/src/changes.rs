//! Watches changes in a cluster by metadata alone, so that a loop knows when to check.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use common::api::installation::LiveState;
use common::api::names::{
    ANNOTATION_RELEASED, API_VERSION, CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, FINALIZER_CORE_GUARD,
    LABEL_OWNER, MARKED,
};

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::live;
use super::record;
use super::watch::{self, ObservedSelector};

/// Pause after a refused watch: its kind may be served later, or the right granted.
const PAUSE: Duration = Duration::from_secs(30);

impl ChangedObject {
    /// Returns the state from which edits are detected.
    #[must_use]
    pub fn state(&self) -> LiveState<'_> {
        LiveState {
            uid: &self.uid,
            generation: self.generation,
            resource_version: &self.resource_version,
            fields: &self.fields,
        }
    }
}

/// A change that a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedChange {
    /// Everything may have changed; from now on no change is missed.
    All,
    /// One object changed.
    One(ChangedObject),
}

/// A list or watch that failed, and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchFailure {
    /// The reason.
    pub why: String,
    /// Whether the caller may not watch this. Changes are then only seen when everything is read again.
    pub is_forbidden: bool,
}

/// What a watch reports.
pub type WatchReport = Result<ObservedChange, WatchFailure>;

/// An object that was created, changed or deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedObject {
    /// Namespace; empty if it is cluster-scoped.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
    /// metadata.generation; `None` if the kind has none.
    pub generation: Option<i64>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// Digest of the fields that the field manager of its owner owns.
    pub fields: String,
    /// Value of the owner label.
    pub owner: String,
    /// Whether it was deleted.
    pub is_deleted: bool,
    /// Whether it is being deleted.
    pub is_being_deleted: bool,
    /// Whether it has the finalizer that guards core installations.
    pub is_guarded: bool,
    /// Whether it is a released core installation.
    pub is_released: bool,
}

/// Reports changes of installations, in one namespace or in all, and never ends.
pub async fn watch_installations(
    cluster: &Cluster,
    namespace: Option<&str>,
    see: impl FnMut(WatchReport),
) {
    watch_repeatedly(cluster, &record::collection(namespace), see).await;
}

/// Reports changes of the catalogues of a namespace, and never ends.
pub async fn watch_catalogues(cluster: &Cluster, namespace: &str, see: impl FnMut(WatchReport)) {
    let (kind, plural) = ("AddonCatalogue", "addoncatalogues");
    let collection = Collection::from_names(API_VERSION, kind, plural, Some(namespace));
    watch_repeatedly(cluster, &collection, see).await;
}

/// Reports changes of Secrets, in one namespace or in all, and never ends. Their content is not read.
pub async fn watch_secrets(
    cluster: &Cluster,
    namespace: Option<&str>,
    see: impl FnMut(WatchReport),
) {
    let collection = Collection::from_names("v1", "Secret", "secrets", namespace);
    watch_repeatedly(cluster, &collection, see).await;
}

/// Reports that the rules or the list of core add-ons changed, and never ends.
pub async fn watch_core_lists(cluster: &Cluster, namespace: &str, see: impl Fn(WatchReport)) {
    let collection = Collection::from_names("v1", "ConfigMap", "configmaps", Some(namespace));
    let names = [CORE_ADDON_RULES, CUSTOM_CORE_ADDONS];
    let [rules, addons] = names.map(|name| {
        let mut see = &see;
        let collection = &collection;
        async move {
            loop {
                watch_and_report(cluster, collection, ObservedSelector::Name(name), &mut see).await;
                sleep(PAUSE).await;
            }
        }
    });
    futures::join!(rules, addons);
}

/// Reports changes of all objects of a kind that have an owner label, and never ends.
pub async fn watch_owned(
    cluster: &Cluster,
    group: &str,
    kind: &str,
    mut see: impl FnMut(WatchReport),
) {
    loop {
        watch_owned_once(cluster, group, kind, &mut see).await;
        sleep(PAUSE).await;
    }
}

/// Reports changes until the watch is refused. Only the refusal reveals that a version has left the CRD.
async fn watch_owned_once(
    cluster: &Cluster,
    group: &str,
    kind: &str,
    see: &mut impl FnMut(WatchReport),
) {
    let needed = [(group.to_owned(), kind.to_owned())].into();
    let kinds = cluster.kinds(&needed).await.ok();
    let served = kinds
        .as_ref()
        .and_then(|kinds| kinds.preferred(group, kind));
    let Some((gvk, info)) = served else {
        return;
    };
    let collection = Collection::new(gvk, info, None);
    let ended = watch_once(
        cluster,
        &collection,
        ObservedSelector::Label(LABEL_OWNER),
        see,
    )
    .await;
    if let Err(error) = ended {
        see(Err(WatchFailure::from_error(&error)));
        cluster.forget_unserved(&error).await;
    }
}

async fn watch_repeatedly(
    cluster: &Cluster,
    collection: &Collection,
    mut see: impl FnMut(WatchReport),
) {
    loop {
        watch_and_report(cluster, collection, ObservedSelector::All, &mut see).await;
        sleep(PAUSE).await;
    }
}

/// Watches until the watch is refused, and reports that.
async fn watch_and_report(
    cluster: &Cluster,
    collection: &Collection,
    selector: ObservedSelector<'_>,
    see: &mut impl FnMut(WatchReport),
) {
    if let Err(error) = watch_once(cluster, collection, selector, see).await {
        see(Err(WatchFailure::from_error(&error)));
    }
}

impl WatchFailure {
    fn from_error(error: &EngineError) -> Self {
        Self {
            why: error.describe(),
            is_forbidden: matches!(error, EngineError::Forbidden { .. }),
        }
    }
}

async fn watch_once(
    cluster: &Cluster,
    collection: &Collection,
    selector: ObservedSelector<'_>,
    see: &mut impl FnMut(WatchReport),
) -> Result<(), EngineError> {
    let seen = |seen| {
        match seen {
            watch::Observation::Listed(_) => see(Ok(ObservedChange::All)),
            watch::Observation::Changed(object) => {
                see(Ok(ObservedChange::One(read_change(&object, false))))
            }
            watch::Observation::Deleted(object) => {
                see(Ok(ObservedChange::One(read_change(&object, true))))
            }
            watch::Observation::Lost(why) => see(Err(WatchFailure {
                why,
                is_forbidden: false,
            })),
        }
        false
    };
    watch::observe_changes(cluster, collection, selector, seen).await
}

fn read_change(object: &Value, is_gone: bool) -> ChangedObject {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ChangedObject {
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        generation: metadata["generation"].as_i64(),
        resource_version: text(&metadata["resourceVersion"]),
        fields: live::fields_of(object),
        owner: text(&metadata["labels"][LABEL_OWNER]),
        is_deleted: is_gone,
        is_being_deleted: metadata["deletionTimestamp"].is_string(),
        is_released: metadata["annotations"][ANNOTATION_RELEASED] == MARKED,
        is_guarded: metadata["finalizers"].as_array().is_some_and(|all| {
            all.iter()
                .any(|one| one.as_str() == Some(FINALIZER_CORE_GUARD))
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake::{self, FakeReply};
    use super::*;

    fn served(versions: &[&str]) -> FakeReply {
        let versions = versions.iter().map(|version| {
            json!({"version": version, "resources": [{"resource": "tills", "scope": "Cluster", "verbs": ["list"],
                "responseKind": {"group": "shop.example", "version": version, "kind": "Till"}}]})
        });
        let versions: Vec<Value> = versions.collect();
        let group = json!({"metadata": {"name": "shop.example"}, "versions": versions});
        let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [group]});
        Some((200, &[], list))
    }

    #[tokio::test]
    async fn a_version_that_has_left_its_definition_is_not_watched_again() {
        let (cluster, asked) = fake::cluster(vec![
            served(&[]),
            served(&["v1beta1"]),
            Some((404, &[], json!("404 page not found"))),
            served(&[]),
            served(&["v1"]),
            Some((403, &[], json!("no"))),
        ]);
        for _ in 0..2 {
            watch_owned_once(&cluster, "shop.example", "Till", &mut |_| {}).await;
        }
        let lines = asked.lines();
        let mut watched = lines.iter().filter(|line| line.contains("/tills?"));
        for version in ["v1beta1", "v1"] {
            let begin = format!("GET /apis/shop.example/{version}/tills?");
            let line = watched.next().unwrap();
            assert!(line.starts_with(&begin), "{lines:?}");
        }
        assert_eq!(lines.len(), 6, "{lines:?}");
    }
}
