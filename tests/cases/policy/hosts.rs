//! A host that no policy allows is not asked for anything, not even to see whether something is due.

use std::sync::{Arc, Mutex, PoisonError};

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::servers::http::{Answer, Seen, Server};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

/// The words of a refusal.
const REFUSED: &str = "(spec.allowed.sourceHosts)";

/// A user of a cluster whose policy allows one of two hosts.
struct Hosts {
    stage: Stage,
    allowed: Server,
    forbidden: Server,
    /// What `/index.yaml` holds on both.
    index: Arc<Mutex<String>>,
}

impl Hosts {
    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::on(
            definitions::on(ControlPlane::alone_api_only().await?).await?,
            what,
        )
        .await?;
        let index: Arc<Mutex<String>> = Arc::default();
        let serve = || {
            let index = Arc::clone(&index);
            Server::start(None, move |seen: &Seen| match seen.uri.as_str() {
                "/index.yaml" => {
                    let text = index.lock().unwrap_or_else(PoisonError::into_inner);
                    Answer::ok(text.clone())
                }
                _ => Answer::ok(config_map("web", "1")),
            })
        };
        let (allowed, forbidden) = (serve()?, serve()?);
        let new = Self {
            stage,
            allowed,
            forbidden,
            index,
        };
        new.stage.run("init").await?.done()?;
        let policy = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy",
            "metadata": {"name": "hosts"},
            "spec": {"action": "Enforce", "allowed": {"sourceHosts": [new.allowed.host()]}}});
        new.stage.apply(&policy.to_string()).await?;
        Ok(new)
    }

    /// The index lists `web 1.0.0` at this location, without a hash.
    fn list(&self, manifest: &str) {
        let namespace = &self.stage.namespace;
        let text = format!(
            "kind: Addons\nmetadata: {{name: test}}\nspec:\n  addons:\n  \
             - {{name: web, version: 1.0.0, namespace: {namespace}, manifest: '{manifest}'}}\n"
        );
        *self.index.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Each command is refused with this exit code, and the host that is not allowed was asked for nothing.
    async fn refuse(&self, commands: &[(&str, i32)]) -> Result<()> {
        for (line, code) in commands {
            let said = self.stage.run(line).await?.ended(*code)?.stderr;
            ensure!(said.contains(REFUSED), "{line}: {said}");
            let seen = self.forbidden.requests();
            ensure!(seen.is_empty(), "{line}: {seen:?}");
        }
        Ok(())
    }
}

/// What is installed has no hash: only its content says whether it is due.
#[tokio::test]
async fn a_source_that_moved_to_a_host_that_is_not_allowed_is_not_fetched() -> Result<()> {
    let hosts = Hosts::new("policy-moved").await?;
    hosts.list(&hosts.allowed.url("/web.yaml"));
    let index = hosts.allowed.url("/index.yaml");
    let install = format!("install web --channel {index} --yes");
    hosts.stage.run(&install).await?.done()?;
    // While it is where it was, nothing is refused.
    hosts.stage.run("upgrade web --yes").await?.done()?;
    hosts.stage.run("reconcile").await?.done()?;

    hosts.list(&hosts.forbidden.url("/web.yaml"));
    let commands = [("upgrade web --yes", 6), ("reconcile", 6), ("reconcile", 6)];
    hosts.refuse(&commands).await?;
    ensure!(hosts.stage.has("configmap", "web").await?, "it is gone");
    Ok(())
}

/// Named by a user, and by a record.
#[tokio::test]
async fn an_index_on_a_host_that_is_not_allowed_is_not_read() -> Result<()> {
    let hosts = Hosts::new("policy-index").await?;
    hosts.list(&hosts.allowed.url("/web.yaml"));
    let forbidden = hosts.forbidden.url("/index.yaml");
    let install = format!("install web --channel {forbidden} --yes");
    hosts.refuse(&[(&install, 6)]).await?;

    let index = hosts.allowed.url("/index.yaml");
    let allowed = format!("install web --channel {index} --yes");
    hosts.stage.run(&allowed).await?.done()?;
    let upgrade = format!("upgrade web --channel {forbidden} --yes");
    hosts.refuse(&[(&install, 6), (&upgrade, 6)]).await?;

    let record = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "other"},
        "spec": {"addonRef": {"name": "web", "index": forbidden}, "targetNamespace": hosts.stage.namespace}});
    hosts.stage.apply(&record.to_string()).await?;
    hosts
        .refuse(&[("reconcile", 6), ("upgrade other --yes", 6)])
        .await?;
    let stalled = hosts.stage.condition("other", "Stalled").await?;
    ensure!(stalled["reason"] == "Denied", "{stalled}");
    Ok(())
}
