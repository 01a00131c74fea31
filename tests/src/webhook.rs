//! The real webhook binary on a loopback port, registered with the API server.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use common::api::catalogue::AddonCatalogue;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::binaries;
use crate::control_plane::ControlPlane;
use crate::control_plane::pki::{Authority, base64};
use crate::guard::{self, Folder, Guarded};

/// How long until the API server calls the webhook; it takes about a second.
const DEADLINE: Duration = Duration::from_secs(60);

/// A running webhook; dropped, the process is gone, but not its registration: [`Webhook::stop`] removes both.
pub struct Webhook {
    process: Guarded,
    authority: Authority,
    address: String,
    health: String,
    folder: Folder,
}

impl Webhook {
    /// Starts the webhook of this workspace and registers it; returns when the API server's denials come from it. Our
    /// CRDs must be installed (`init`); `arguments` are more flags of the webhook.
    ///
    /// # Errors
    /// Where it does not build, does not start, or nothing is denied in time: with the end of its log.
    pub async fn start(cluster: &ControlPlane, arguments: &[&str]) -> Result<Self> {
        let user = cluster.user("addons-webhook", &["system:masters"])?;
        Self::with(cluster, &user.kubeconfig, arguments).await
    }

    /// The same with another kubeconfig for its watches.
    ///
    /// # Errors
    /// As [`Webhook::start`].
    pub async fn with(
        cluster: &ControlPlane,
        kubeconfig: &Path,
        arguments: &[&str],
    ) -> Result<Self> {
        Self::at(&free_address()?, cluster, kubeconfig, arguments).await
    }

    /// The same at a given address, of [`free_address`].
    ///
    /// # Errors
    /// As [`Webhook::start`].
    pub async fn at(
        address: &str,
        cluster: &ControlPlane,
        kubeconfig: &Path,
        arguments: &[&str],
    ) -> Result<Self> {
        let folder = Folder::new("kubectl-addons-webhook-")?;
        let authority = Authority::new("kubectl-addons-webhook")?;
        authority
            .serving("addons-webhook", &["127.0.0.1", "localhost"])?
            .write(folder.path(), "tls")?;
        let (address, health) = (address.to_owned(), free_address()?);
        let mut command = guard::command(&binaries::webhook()?);
        let log = File::create(folder.path().join("log"))?;
        command
            .arg(format!("--bind={address}"))
            .arg(format!("--health-bind={health}"))
            .arg(format!(
                "--tls-cert={}",
                folder.path().join("tls.crt").display()
            ))
            .arg(format!(
                "--tls-key={}",
                folder.path().join("tls.key").display()
            ))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(arguments)
            .stdout(log.try_clone()?)
            .stderr(log);
        let process = guard::spawn(&mut command, b"").context("cannot start the webhook")?;
        let mut webhook = Self {
            process,
            authority,
            address,
            health,
            folder,
        };
        webhook.register(cluster).await?;
        webhook.probe(cluster).await?;
        Ok(webhook)
    }

    /// URL of the admission endpoints, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// URL of `/healthz`, `/readyz` and `/metrics`, without a path.
    #[must_use]
    pub fn health_url(&self) -> String {
        format!("http://{}", self.health)
    }

    /// Who signed its certificate.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Where `tls.crt`, `tls.key` and `log` lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The process, to signal it.
    pub fn process(&mut self) -> &mut Guarded {
        &mut self.process
    }

    /// Removes the registration, so that nothing is denied for want of an answer, and ends the process.
    ///
    /// # Errors
    /// Of the API server.
    pub async fn stop(mut self, cluster: &ControlPlane) -> Result<()> {
        let client = cluster.client().await?;
        let (mutating, validating) = self.configurations()?;
        for configuration in mutating {
            let name = configuration.metadata.name.unwrap_or_default();
            let api = Api::<MutatingWebhookConfiguration>::all(client.clone());
            api.delete(&name, &Default::default()).await?;
        }
        for configuration in validating {
            let name = configuration.metadata.name.unwrap_or_default();
            let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
            api.delete(&name, &Default::default()).await?;
        }
        self.process.kill()?;
        Ok(())
    }

    async fn register(&self, cluster: &ControlPlane) -> Result<()> {
        let client = cluster.client().await?;
        let (mutating, validating) = self.configurations()?;
        for configuration in &mutating {
            apply(&Api::all(client.clone()), configuration).await?;
        }
        for configuration in &validating {
            apply(&Api::all(client.clone()), configuration).await?;
        }
        Ok(())
    }

    /// The configurations of `deploy/base`, called by URL instead of by Service.
    fn configurations(
        &self,
    ) -> Result<(
        Vec<MutatingWebhookConfiguration>,
        Vec<ValidatingWebhookConfiguration>,
    )> {
        let mut documents = deployed()?;
        for webhook in documents.iter_mut().filter_map(webhooks_mut).flatten() {
            let path = webhook.pointer("/clientConfig/service/path").cloned();
            let path = path.as_ref().and_then(Value::as_str);
            let path = path.context("a webhook of deploy/base has no clientConfig.service.path")?;
            let config = json!({
                "url": format!("{}{path}", self.url()),
                "caBundle": base64(&self.authority.certificate),
            });
            if let Some(webhook) = webhook.as_object_mut() {
                webhook.insert("clientConfig".to_owned(), config);
            }
        }
        Ok((
            of_kind(&documents, "MutatingWebhookConfiguration")?,
            of_kind(&documents, "ValidatingWebhookConfiguration")?,
        ))
    }

    /// Creates a catalogue that must be denied, as a dry run, until it is denied in the webhook's name.
    async fn probe(&mut self, cluster: &ControlPlane) -> Result<()> {
        let catalogues = Api::<AddonCatalogue>::namespaced(cluster.client().await?, "default");
        let version =
            |version: &str| json!({"version": version, "source": {"inline": {"manifest": ""}}});
        let duplicate: AddonCatalogue = serde_json::from_value(json!({
            "apiVersion": common::api::names::API_VERSION,
            "kind": "AddonCatalogue",
            "metadata": {"name": "webhook-probe"},
            "spec": {"addons": [{"name": "probe", "versions": [version("1.0.0"), version("v1.0.0")]}]},
        }))?;
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let deadline = Instant::now() + DEADLINE;
        let mut tick = interval(Duration::from_millis(50));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let last = match catalogues.create(&dry_run, &duplicate).await {
                Err(kube::Error::Api(status)) if status.message.contains("denied the request") => {
                    return Ok(());
                }
                Err(error) => error.to_string(),
                Ok(_) => "the API server does not ask it yet".to_owned(),
            };
            if let Some(status) = self.process.try_wait()? {
                bail!("the webhook ended with {status}:\n{}", self.log());
            }
            if Instant::now() > deadline {
                let seconds = DEADLINE.as_secs();
                bail!(
                    "the webhook denies nothing after {seconds} s: {last}\n{}",
                    self.log()
                );
            }
        }
    }
}

/// Every YAML document of `deploy/base`.
fn deployed() -> Result<Vec<Value>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/base"));
    let mut documents = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let text = fs::read_to_string(&path)?;
            let read: Vec<Value> =
                serde_saphyr::from_multiple(&text).with_context(|| path.display().to_string())?;
            documents.extend(read);
        }
    }
    Ok(documents)
}

fn webhooks_mut(document: &mut Value) -> Option<&mut Vec<Value>> {
    document.get_mut("webhooks")?.as_array_mut()
}

fn of_kind<K: DeserializeOwned>(documents: &[Value], kind: &str) -> Result<Vec<K>> {
    let found: Vec<K> = documents
        .iter()
        .filter(|document| document.get("kind").and_then(Value::as_str) == Some(kind))
        .map(|document| serde_json::from_value(document.clone()))
        .collect::<Result<_, _>>()?;
    if found.is_empty() {
        bail!("deploy/base has no {kind}");
    }
    Ok(found)
}

async fn apply<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: kube::Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let name = object.meta().name.clone().unwrap_or_default();
    let params = PatchParams::apply("addons-tests").force();
    api.patch(&name, &params, &Patch::Apply(object)).await?;
    Ok(())
}

/// `127.0.0.1:PORT`, where nothing listened a moment ago.
///
/// # Errors
/// Where no port is free.
pub fn free_address() -> Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port for the webhook")?;
    Ok(listener.local_addr()?.to_string())
}
