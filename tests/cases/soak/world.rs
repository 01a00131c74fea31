//! The add-ons as they are asked for, and whether the cluster is like that.

use addons_tests::chaos::rig::get;
use addons_tests::chaos::seed::Chance;
use addons_tests::chaos::state::nothing_leaks;
use addons_tests::proxy::Proxy;
use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Context as _, Result, bail, ensure};
use common::api::names::API_VERSION;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use serde_json::{Value, json};

/// How many add-ons there are.
const ADDONS: usize = 4;

/// An add-on as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Addon {
    pub(crate) name: String,
    /// Counts the versions; it is in every object.
    pub(crate) revision: usize,
    /// Whether it has one object more.
    pub(crate) has_extra: bool,
}

/// The cluster of a test, and what is asked of it.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) proxy: Proxy,
    pub(crate) addons: Vec<Addon>,
    pub(crate) chance: Chance,
    client: Client,
    /// A ConfigMap of another client.
    foreign: Value,
    edits: usize,
}

impl Addon {
    /// So many of them in their first version.
    fn several(count: usize) -> Vec<Self> {
        let addon = |index| Self {
            name: format!("addon-{index}"),
            revision: 1,
            has_extra: true,
        };
        (0..count).map(addon).collect()
    }

    /// Its version.
    pub(crate) fn version(&self) -> String {
        format!("1.0.{}", self.revision)
    }

    /// The next version, with or without the additional object.
    fn change(&mut self, chance: &mut Chance) {
        self.revision += 1;
        self.has_extra = chance.below(2) == 0;
    }

    /// Its objects.
    pub(crate) fn objects(&self, namespace: &str) -> Vec<Value> {
        let (name, value) = (&self.name, self.revision.to_string());
        let labels = json!({"app": name});
        let template = json!({
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": format!("example.test/main:{value}")}]},
        });
        let spec =
            json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"key": "dmFsdWU="}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}),
        ];
        if self.has_extra {
            let mut extra = self.extra(namespace);
            extra["data"] = json!({"key": value});
            objects.push(extra);
        }
        for object in &mut objects {
            object["metadata"]["namespace"] = json!(namespace);
            object["metadata"]["labels"] = json!({"addonmanager.kubernetes.io/mode": "Reconcile"});
        }
        objects
    }

    /// Its objects as a manifest.
    pub(crate) fn manifest(&self, namespace: &str) -> String {
        let objects = self.objects(namespace).into_iter();
        objects.map(|object| format!("{object}\n---\n")).collect()
    }

    /// The object that not every version has.
    fn extra(&self, namespace: &str) -> Value {
        let name = format!("{}-extra", self.name);
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
    }
}

/// Where an object is.
fn path(object: &Value) -> String {
    let (collection, name) = address(object);
    format!("{collection}/{name}")
}

/// The path of its collection, and its name.
fn address(object: &Value) -> (String, String) {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let version = text("/apiVersion");
    let root = if version.contains('/') { "apis" } else { "api" };
    let plural = text("/kind").to_lowercase() + "s";
    let namespace = text("/metadata/namespace");
    let collection = format!("/{root}/{version}/namespaces/{namespace}/{plural}");
    (collection, text("/metadata/name"))
}

impl World {
    /// Add-ons that are asked for, and a ConfigMap of someone else.
    pub(crate) async fn new(what: &str) -> Result<Self> {
        let stage = super::stage(what).await?;
        let client = stage.cluster.client().await?;
        let foreign = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "mine"},
            "metadata": {"name": "foreign", "namespace": stage.namespace},
        });
        stage.apply(&foreign.to_string()).await?;
        let foreign = get(&client, &path(&foreign)).await?.context("foreign")?;
        Ok(Self {
            proxy: Proxy::start(&stage.cluster)?,
            addons: Addon::several(ADDONS),
            chance: Chance::new(),
            stage,
            client,
            foreign,
            edits: 0,
        })
    }

    /// Any of the add-ons.
    pub(crate) fn any(&mut self) -> usize {
        self.chance.below(self.addons.len())
    }

    /// Asks for another version of any of them.
    pub(crate) fn change(&mut self) -> usize {
        let index = self.any();
        self.addons[index].change(&mut self.chance);
        index
    }

    /// Deletes any of the objects as another client.
    pub(crate) async fn delete(&mut self) -> Result<()> {
        let object = self.object();
        let (collection, name) = address(&object);
        let request = Request::new(collection).delete(&name, &Default::default())?;
        self.send(request).await
    }

    /// Edits any of the objects as another client, which has another name each time: the loop does not fight.
    pub(crate) async fn edit(&mut self) -> Result<()> {
        let object = self.object();
        self.edits += 1;
        let number = self.edits;
        let patch = match object["kind"].as_str() {
            Some("Deployment") => json!({"spec": {"replicas": 2}}),
            Some("ServiceAccount") => {
                json!({"automountServiceAccountToken": number.is_multiple_of(2)})
            }
            Some("Secret") => json!({"data": {"key": "ZWRpdGVk"}}),
            _ => json!({"data": {"key": format!("edit {number}")}}),
        };
        let params = PatchParams {
            field_manager: Some(format!("editor-{number}")),
            ..PatchParams::default()
        };
        let (collection, name) = address(&object);
        let request = Request::new(collection).patch(&name, &params, &Patch::Merge(&patch))?;
        self.send(request).await
    }

    /// Whether the cluster has the add-ons, exactly; if not, why.
    pub(crate) async fn state(&self) -> Result<Result<(), String>> {
        let namespace = &self.stage.namespace;
        let list = format!("/apis/{API_VERSION}/namespaces/{namespace}/addoninstallations");
        let records = get(&self.client, &list).await?.unwrap_or_default();
        let records: Vec<&Value> = records["items"].as_array().into_iter().flatten().collect();
        let names = records.iter().map(|record| &record["metadata"]["name"]);
        let wanted = self.addons.iter().map(|addon| &addon.name);
        if !names.clone().eq(wanted) {
            return Ok(Err(format!("records {:?}", names.collect::<Vec<_>>())));
        }
        for (addon, record) in self.addons.iter().zip(records) {
            if let Err(why) = self.addon(addon, record).await? {
                return Ok(Err(format!("{}: {why}: {}", addon.name, record["status"])));
            }
        }
        Ok(Ok(()))
    }

    async fn addon(&self, addon: &Addon, record: &Value) -> Result<Result<(), String>> {
        for object in addon.objects(&self.stage.namespace) {
            let path = path(&object);
            let Some(live) = get(&self.client, &path).await? else {
                return Ok(Err(format!("{path} is not there")));
            };
            if let Some(field) = missing(&object, &live) {
                return Ok(Err(format!("{path}: {field}")));
            }
        }
        let extra = addon.extra(&self.stage.namespace);
        if !addon.has_extra && get(&self.client, &path(&extra)).await?.is_some() {
            return Ok(Err("it is not pruned".to_owned()));
        }
        if let Some(why) = unready(addon, record) {
            return Ok(Err(why.to_owned()));
        }
        let leaks = nothing_leaks(&self.stage, &addon.name).await;
        Ok(leaks.map_err(|error| format!("{error:#}")))
    }

    /// That what others own was not changed, deleted or created again.
    pub(crate) async fn foreign_is_untouched(&self) -> Result<()> {
        let read = async || {
            let now = get(&self.client, &path(&self.foreign)).await;
            Ok(now.map_err(|error| format!("{error:#}")))
        };
        let now = until("foreign", read).await?;
        ensure!(now.as_ref() == Some(&self.foreign), "foreign: {now:?}");
        Ok(())
    }

    /// Any of the objects that are asked for.
    fn object(&mut self) -> Value {
        let index = self.any();
        let mut objects = self.addons[index].objects(&self.stage.namespace);
        let index = self.chance.below(objects.len());
        objects.swap_remove(index)
    }

    async fn send(&self, request: hyper::Request<Vec<u8>>) -> Result<()> {
        let what = request.uri().to_string();
        until(&what, async || {
            match self.client.request::<Value>(request.clone()).await {
                // The loop may be about to create it again.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(Ok(())),
                Err(kube::Error::Api(status)) if status.code < 500 => bail!("{what}: {status}"),
                sent => Ok(sent.map(drop).map_err(|error| error.to_string())),
            }
        })
        .await
    }
}

/// Why a record does not say that its add-on is installed; `None` where it does.
fn unready(addon: &Addon, record: &Value) -> Option<&'static str> {
    let status = &record["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let bad = ["Stalled", "NeedsConfirmation", "Contested"];
    let is_bad = |condition: &Value| {
        condition["status"] == "True" && bad.iter().any(|one| condition["type"] == *one)
    };
    // A file of a directory has no version.
    let version = status["installed"]["version"].as_str();
    if !status["operation"].is_null() {
        Some("an operation is under way")
    } else if status["phase"] != "Ready" {
        Some("it is not ready")
    } else if conditions.into_iter().any(is_bad) {
        Some("a condition is raised")
    } else if version.is_some_and(|version| version != addon.version()) {
        Some("another version is installed")
    } else if status["observedGeneration"] != record["metadata"]["generation"] {
        Some("the spec was not looked at")
    } else {
        None
    }
}

/// The first field that is wanted and not live.
fn missing(wanted: &Value, live: &Value) -> Option<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(key, wanted)| {
            let live = live.get(key).unwrap_or(&Value::Null);
            missing(wanted, live).map(|field| format!("{key}.{field}"))
        }),
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            let mut pairs = wanted.iter().zip(live);
            pairs.find_map(|(wanted, live)| missing(wanted, live))
        }
        (wanted, live) => (wanted != live).then(|| format!(" {live} instead of {wanted}")),
    }
}
