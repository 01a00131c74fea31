//! A cluster with the webhook, core add-ons in it, and users who would like to be rid of them.

use std::collections::BTreeMap;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{create, installation};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result};
use common::api::names::{
    BREAK_GLASS_GROUP, CORE_GROUP, GROUP, LABEL_CLUSTER, LABEL_HOLDS_CORE, SYSTEM_NAMESPACE,
};
use kube::Client;
use serde_json::{Value, json};

use super::table::{Body, By, Request, Who};

/// A namespace with a core record, which came without the plugin: it has no label that says so.
pub const TENANT: &str = "tenant";
/// The target namespace of a core record; it holds no record itself.
pub const TARGET: &str = "guarded-target";
/// A namespace that stands for this cluster and holds nothing.
pub const EMPTY: &str = "empty";
/// The core record in the system namespace.
pub const GUARDED: &str = "guarded";
/// A record in the system namespace that is not core.
pub const PLAIN: &str = "plain";

/// The cluster, and who is on it.
pub struct World {
    clients: BTreeMap<Who, Client>,
    _webhook: Webhook,
    cluster: ControlPlane,
}

impl World {
    /// Started once: the routes share it.
    pub async fn new() -> Result<Self> {
        let cluster = ControlPlane::start(Options::default()).await?;
        definitions::install(&cluster).await?;
        let admin = Plugin::admin(&cluster)?;
        let webhook_namespaces = [SYSTEM_NAMESPACE, TENANT, TARGET, EMPTY];
        for name in webhook_namespaces {
            admin
                .kubectl(&["create", "namespace", name])
                .await?
                .done()?;
        }
        let webhook = Webhook::start(&cluster, &[]).await?;
        let mut clients = BTreeMap::new();
        for (who, groups) in [
            (Who::Admin, &["system:masters"][..]),
            (Who::Tenant, &[]),
            (Who::Core, &["system:masters", CORE_GROUP]),
            (Who::Glass, &["system:masters", BREAK_GLASS_GROUP]),
        ] {
            let user = cluster.user(&format!("{who:?}").to_lowercase(), groups)?;
            clients.insert(who, client(&user.kubeconfig).await?);
        }
        let world = Self {
            clients,
            _webhook: webhook,
            cluster,
        };
        world.populate(&admin).await?;
        Ok(world)
    }

    async fn populate(&self, admin: &Plugin) -> Result<()> {
        for object in rights() {
            create(admin, &object, &[]).await?.done()?;
        }
        // An operation marks the target namespace.
        for (name, label) in [
            (TENANT, format!("{LABEL_CLUSTER}=local")),
            (EMPTY, format!("{LABEL_CLUSTER}=local")),
            (TARGET, format!("{LABEL_HOLDS_CORE}=true")),
        ] {
            admin
                .kubectl(&["label", "namespace", name, &label])
                .await?
                .done()?;
        }
        let core = self
            .cluster
            .user("maker", &["system:masters", CORE_GROUP])?;
        let core = Plugin::new(&self.cluster, &core.kubeconfig)?;
        for (name, namespace, is_core, target) in [
            (GUARDED, SYSTEM_NAMESPACE, true, Some(TARGET)),
            (GUARDED, TENANT, true, None),
            (PLAIN, SYSTEM_NAMESPACE, false, None),
        ] {
            let object = record(name, namespace, is_core, target);
            // The webhook may not know the label of the namespace yet.
            until("the record is admitted", async || {
                let said = create(&core, &object, &[]).await?;
                Ok((said.code == 0).then_some(()).ok_or(said.stderr))
            })
            .await?;
        }
        // The webhook's watches may be a moment behind.
        until("the webhook knows the records", async || {
            let all =
                format!("/apis/{GROUP}/v1alpha1/namespaces/{SYSTEM_NAMESPACE}/addoninstallations");
            let request = Request {
                who: Who::Admin,
                path: format!("{all}/{GUARDED}"),
                body: Body::Delete,
            };
            let by = self.attempt(&request).await?;
            Ok((by == By::Webhook).then_some(()).ok_or(by.to_string()))
        })
        .await
    }

    /// Tries it, as a dry run.
    pub async fn attempt(&self, request: &Request) -> Result<By> {
        let client = self.clients.get(&request.who).context("an unknown user")?;
        let send = async |method: &str, content: &str, body: Vec<u8>| {
            let uri = format!("{}?dryRun=All", request.path);
            let sent = http::Request::builder()
                .method(method)
                .uri(uri)
                .header("content-type", content)
                .body(body)?;
            anyhow::Ok(client.request_text(sent).await)
        };
        let json = "application/json";
        let answer = match &request.body {
            Body::Delete => send("DELETE", json, Vec::new()).await?,
            Body::Create(object) => send("POST", json, object.to_string().into_bytes()).await?,
            Body::Merge(patch) => {
                let kind = "application/merge-patch+json";
                send("PATCH", kind, patch.to_string().into_bytes()).await?
            }
            Body::Replace(path, patch) => {
                let asked = http::Request::get(path).body(Vec::new())?;
                let mut object: Value = client.request(asked).await?;
                json_patch::merge(&mut object, patch);
                send("PUT", json, object.to_string().into_bytes()).await?
            }
        };
        match answer {
            Ok(_) => Ok(By::Nothing),
            Err(kube::Error::Api(status)) => Ok(by(&status.message)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Which layer says this.
fn by(message: &str) -> By {
    let is_of_webhook = message.contains("admission webhook \"")
        && message.contains(".kubectl-addons.dev\" denied the request");
    if is_of_webhook {
        By::Webhook
    } else if message.contains("is invalid: ") {
        By::Schema
    } else {
        By::Other(message.to_owned())
    }
}

/// An installation of an index, which nothing reads here.
pub fn record(name: &str, namespace: &str, is_core: bool, target: Option<&str>) -> Value {
    let index = "https://addons.example.test/index.yaml";
    let mut spec = json!({"addonRef": {"name": name, "index": index}, "coreAddon": is_core});
    if let Some(target) = target {
        spec["targetNamespace"] = json!(target);
    }
    installation(name, namespace, spec)
}

/// What the tenant may do.
fn rights() -> [Value; 2] {
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "bypass-tenant"});
    let all = ["namespaces", "namespaces/status", "namespaces/finalize"];
    let ours = ["addoninstallations", "addoninstallations/status"];
    let rules = json!([
        {"apiGroups": [""], "resources": all, "verbs": ["*"]},
        {"apiGroups": [GROUP], "resources": ours, "verbs": ["get", "update", "patch", "delete"]},
    ]);
    [
        json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "bypass-tenant"},
            "subjects": [{"apiGroup": api, "kind": "User", "name": "tenant"}],
        }),
    ]
}
