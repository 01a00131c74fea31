//! A cluster with our definitions and the webhook, and objects to send to it.

use crate::control_plane::{ControlPlane, Options, definitions, unique};
use crate::plugin::{Output, Plugin};
use crate::until::until;
use crate::webhook::Webhook;
use anyhow::{Context as _, Result, anyhow, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names;
use kube::api::{Api, PostParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// What the API server writes before the webhook's own words.
pub const DENIED: &str = r#"admission webhook "validate.kubectl-addons.dev" denied the request: "#;

/// The cluster that the tests of this module share; not that of all others, for everything on it is judged.
pub struct Scene {
    /// The cluster.
    pub cluster: ControlPlane,
    _webhook: Webhook,
}

impl Scene {
    /// Started by the first test that asks.
    pub async fn get() -> Result<&'static Self> {
        static SCENE: OnceCell<Result<Scene, String>> = OnceCell::const_new();
        SCENE
            .get_or_init(|| async { Self::start().await.map_err(|error| format!("{error:#}")) })
            .await
            .as_ref()
            .map_err(|error| anyhow!("{error}"))
    }

    async fn start() -> Result<Self> {
        let cluster = ControlPlane::start(Options::default()).await?;
        definitions::install(&cluster).await?;
        let create = ["create", "namespace", names::SYSTEM_NAMESPACE];
        Plugin::admin(&cluster)?.kubectl(&create).await?.done()?;
        let webhook = Webhook::start(&cluster, &[]).await?;
        Ok(Self {
            cluster,
            _webhook: webhook,
        })
    }

    /// Somebody who may do everything that RBAC can allow, with more groups; the name is unique.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<(Plugin, String)> {
        let name = unique(name);
        let groups: Vec<_> = ["system:masters"].iter().chain(groups).copied().collect();
        let user = self.cluster.user(&name, &groups)?;
        Ok((Plugin::new(&self.cluster, &user.kubeconfig)?, name))
    }

    /// Creates a source catalogue, and waits until the webhook knows its entries.
    pub async fn source(&self, name: &str, addons: Value) -> Result<()> {
        let (admin, _) = self.user("source", &[])?;
        let object = catalogue(name, names::SYSTEM_NAMESPACE, addons.clone());
        create(&admin, &object, &[]).await?.done()?;
        let copy = catalogue(&format!("{name}-again"), names::SYSTEM_NAMESPACE, addons);
        let place = format!("is already in catalogue {name} at");
        until("the webhook knows the catalogue", async || {
            let said = create(&admin, &copy, &["--dry-run=server"]).await?;
            Ok(match said.stderr.contains(&place) {
                true => Ok(()),
                false => Err(said.stdout + &said.stderr),
            })
        })
        .await
    }

    /// Code and message of the API server's refusal, and what kubectl prints of it.
    pub async fn refusal(&self, user: &Plugin, object: &Value) -> Result<(u16, String, String)> {
        let resource = match object["kind"].as_str() {
            Some("AddonCatalogue") => ApiResource::erase::<AddonCatalogue>(&()),
            _ => ApiResource::erase::<AddonInstallation>(&()),
        };
        let namespace = object["metadata"]["namespace"].as_str();
        let namespace = namespace.context("no namespace")?;
        let client = self.cluster.client().await?;
        let api = Api::<DynamicObject>::namespaced_with(client, namespace, &resource);
        let typed: DynamicObject = serde_json::from_value(object.clone())?;
        let status = match api.create(&PostParams::default(), &typed).await {
            Err(kube::Error::Api(status)) => status,
            other => return Err(anyhow!("not refused: {object}\n{other:?}")),
        };
        let printed = create(user, object, &[]).await?;
        ensure!(printed.code == 1, "{}", printed.stdout);
        Ok((status.code, status.message, printed.stderr))
    }
}

/// `kubectl create -f -`
pub async fn create(user: &Plugin, object: &Value, more: &[&str]) -> Result<Output> {
    let args: Vec<_> = ["create", "-f", "-"].iter().chain(more).copied().collect();
    user.kubectl_with_input(&args, &object.to_string()).await
}

/// `kubectl apply -f -`
pub async fn apply(user: &Plugin, object: &Value, more: &[&str]) -> Result<Output> {
    let args: Vec<_> = ["apply", "-f", "-"].iter().chain(more).copied().collect();
    user.kubectl_with_input(&args, &object.to_string()).await
}

/// An installation as it is stored.
pub async fn stored(user: &Plugin, name: &str, namespace: &str) -> Result<Value> {
    let get = [
        "get",
        "addoninstallation",
        name,
        "-n",
        namespace,
        "-o",
        "json",
    ];
    let text = user.kubectl(&get).await?.done()?.stdout;
    Ok(serde_json::from_str(&text)?)
}

/// A catalogue.
pub fn catalogue(name: &str, namespace: &str, addons: Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": "AddonCatalogue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"addons": addons},
    })
}

/// An installation.
pub fn installation(name: &str, namespace: &str, spec: Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

/// A version with an empty manifest, and more fields.
pub fn version(version: &str, more: Value) -> Value {
    let mut all = json!({"version": version, "source": {"inline": {"manifest": ""}}});
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
    all
}

/// A version whose form asks for replicas and a host.
pub fn with_form(text: &str) -> Value {
    version(
        text,
        json!({
            "defaultNamespace": "forms",
            "values": {"image": {"registry": "registry.example.test"}, "level": text},
            "template": {"method": "go-template", "formSpec": [
                {"displayName": "Replicas", "internalName": "spec.replicas", "type": "number", "default": 1},
                {"internalName": "spec.host", "type": "text", "required": true},
            ]},
        }),
    )
}
