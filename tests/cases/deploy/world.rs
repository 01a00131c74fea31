//! A cluster on which a kustomization of ours is applied, and its Pods run.

use std::path::Path;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::kubelet::{Kubelet, Network};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{DENIED, catalogue, create, version};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

pub(crate) const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/base");
/// Both configurations.
pub(crate) const CONFIGURATIONS: [&str; 2] = [
    "mutatingwebhookconfiguration",
    "validatingwebhookconfiguration",
];
/// The Secret of the authority.
pub(crate) const SECRET: &str = "addons-webhook-ca";

/// The cluster and its administrator.
pub(crate) struct World {
    pub(crate) admin: Plugin,
    // Gone before the cluster.
    pub(crate) kubelet: Kubelet,
    pub(crate) cluster: ControlPlane,
}

impl World {
    /// A cluster that has nothing of ours.
    pub(crate) async fn new() -> Result<Self> {
        let network = Network::new()?;
        let options = Options {
            apiserver_flags: vec![network.flag()],
            ..Options::default()
        };
        let cluster = ControlPlane::start(options).await?;
        let kubelet = Kubelet::start(&cluster, network).await?;
        let admin = Plugin::admin(&cluster)?;
        Ok(Self {
            admin,
            kubelet,
            cluster,
        })
    }

    /// One with `deploy/base` whose webhook has more flags.
    pub(crate) async fn with(flags: &[&str]) -> Result<Self> {
        let world = Self::new().await?;
        let add = flags.iter().map(|flag| {
            json!({"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": flag})
        });
        let add: Vec<Value> = add.collect();
        let folder = world.overlay(&json!({
            "resources": [BASE],
            "patches": [{"target": {"kind": "Deployment"}, "patch": json!(add).to_string()}],
        }))?;
        world.kubectl(&["apply", "-k", &folder]).await?;
        world.rolled_out().await?;
        Ok(world)
    }

    /// A folder with a kustomization; its `resources` and `components` are absolute here.
    pub(crate) fn overlay(&self, kustomization: &Value) -> Result<String> {
        let folder = self.admin.home().join("overlay");
        std::fs::create_dir_all(&folder)?;
        let mut kustomization = kustomization.clone();
        for list in ["resources", "components"] {
            for path in kustomization[list].as_array_mut().into_iter().flatten() {
                *path = relative(path.as_str().unwrap_or_default(), &folder)?.into();
            }
        }
        kustomization["apiVersion"] = "kustomize.config.k8s.io/v1beta1".into();
        kustomization["kind"] = "Kustomization".into();
        let text = kustomization.to_string();
        std::fs::write(folder.join("kustomization.yaml"), text)?;
        Ok(folder.display().to_string())
    }

    /// Runs kubectl, which must succeed.
    pub(crate) async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let said = self.admin.kubectl(args).await?;
        let said = said.done().with_context(|| self.kubelet.logs())?;
        ensure!(!said.stderr.contains("Warning"), "{}", said.stderr);
        Ok(said.stdout)
    }

    /// The same in the system namespace.
    pub(crate) async fn in_system(&self, args: &[&str]) -> Result<String> {
        self.kubectl(&[args, &["-n", SYSTEM_NAMESPACE]].concat())
            .await
    }

    /// Waits until every replica is ready.
    pub(crate) async fn rolled_out(&self) -> Result<()> {
        let args = ["rollout", "status", "deployment/addons-webhook"];
        let args = [&args[..], &["--timeout=120s"]].concat();
        let Err(error) = self.in_system(&args).await else {
            return Ok(());
        };
        // What stands still: Pods, or the nodes they should run on.
        let kinds = "deployments,replicasets,pods,nodes,events";
        let seen = self.in_system(&["get", kinds, "-o", "wide"]).await?;
        Err(error.context(seen))
    }

    /// Waits until the Pods are as many as the replicas.
    pub(crate) async fn gone(&self) -> Result<()> {
        until("the old Pods are gone", async || {
            let pods = self.in_system(&["get", "pods", "-o", "name"]).await?;
            Ok((pods.lines().count() == 2).then_some(()).ok_or(pods))
        })
        .await
    }

    /// An object as it is stored.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let text = self.in_system(&["get", kind, name, "-o", "json"]).await?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The certificate of the authority in the Secret, PEM, where it is complete.
    pub(crate) async fn authority(&self) -> Result<Option<String>> {
        let args = ["get", "secret", SECRET, "--ignore-not-found", "-o", "json"];
        let text = self.in_system(&args).await?;
        let secret: Value = serde_json::from_str(&text).unwrap_or_default();
        let data = |key: &str| secret["data"][key].as_str();
        match (data("ca.crt"), data("ca.key")) {
            (Some(certificate), Some(_)) => Ok(Some(decode(certificate)?)),
            _ => Ok(None),
        }
    }

    /// The bundle of every entry of both configurations, PEM; empty where there is none.
    pub(crate) async fn bundles(&self) -> Result<Vec<String>> {
        let mut bundles = Vec::new();
        for kind in CONFIGURATIONS {
            let configuration = self.get(kind, "kubectl-addons").await?;
            for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
                let bundle = webhook["clientConfig"]["caBundle"].as_str();
                let engine = base64::engine::general_purpose::STANDARD;
                bundles.push(String::from_utf8(
                    engine.decode(bundle.unwrap_or_default())?,
                )?);
            }
        }
        ensure!(bundles.len() >= 4, "{bundles:?}");
        Ok(bundles)
    }

    /// Waits until every entry has one and the same bundle of so many certificates, and returns it.
    pub(crate) async fn announced(&self, certificates: usize) -> Result<String> {
        until("the caBundle is set", async || {
            let bundles = self.bundles().await?;
            let first = bundles.first().cloned().unwrap_or_default();
            let count = first.matches("-----BEGIN CERTIFICATE-----").count();
            let is_there = count == certificates && bundles.iter().all(|bundle| *bundle == first);
            Ok(is_there
                .then_some(first)
                .ok_or_else(|| format!("{bundles:?}\n{}", self.kubelet.logs())))
        })
        .await
    }

    /// One bad object, which the webhook must deny at once.
    pub(crate) async fn denies(&self) -> Result<()> {
        let said = create(&self.admin, &duplicate(), &["--dry-run=server"]).await?;
        let is_denied = said.code == 1 && said.stderr.contains(DENIED);
        ensure!(
            is_denied,
            "{}{}\n{}",
            said.stdout,
            said.stderr,
            self.kubelet.logs()
        );
        Ok(())
    }
}

/// A catalogue that is denied.
pub(crate) fn duplicate() -> Value {
    let versions = [version("1.0.0", json!({})), version("v1.0.0", json!({}))];
    catalogue(
        "duplicate",
        SYSTEM_NAMESPACE,
        json!([{"name": "web", "versions": versions}]),
    )
}

fn decode(base64: &str) -> Result<String> {
    let engine = base64::engine::general_purpose::STANDARD;
    Ok(String::from_utf8(engine.decode(base64)?)?)
}

/// kustomize takes no absolute paths.
fn relative(path: &str, folder: &Path) -> Result<String> {
    let target = std::fs::canonicalize(path).with_context(|| path.to_owned())?;
    let ups = "../".repeat(std::fs::canonicalize(folder)?.components().count() - 1);
    let target = target.display().to_string();
    Ok(format!("{ups}{}", target.trim_start_matches('/')))
}
