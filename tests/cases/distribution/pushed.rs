//! `catalogue push`: merged catalogues in other clusters.

use std::path::PathBuf;
use std::sync::Arc;

use addons_tests::control_plane::ControlPlane;
use addons_tests::objects;
use addons_tests::plugin::{Output, Plugin};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::api::names::{API_VERSION, DISTRIBUTOR_GROUP};
use serde_json::{Value, json};

const RBAC: &str = include_str!("../../../deploy/components/distributor/rbac.yaml");

/// A cluster with catalogues, and a kubeconfig with contexts of itself, of the other cluster, and of one that does not answer.
pub(super) struct Pair {
    pub(super) stage: Stage,
    pub(super) other: Arc<ControlPlane>,
    /// Of whoever brings catalogues there.
    distributor: PathBuf,
}

impl Pair {
    pub(super) async fn new(what: &str) -> Result<Self> {
        let other = super::other().await?;
        let stage = Stage::new(what).await?;
        stage.run("init").await?.done()?;
        let distributor = other.user(what, &[DISTRIBUTOR_GROUP])?.kubeconfig;
        Ok(Self {
            stage,
            other,
            distributor,
        })
    }

    /// What the administrator of the other cluster does: the definitions, the namespace, and the rights of the distributor.
    pub(super) async fn prepare_other(&self) -> Result<()> {
        let admin = Plugin::admin(&self.other)?;
        let namespace = &self.stage.namespace;
        let init = ["init", "--system-namespace", namespace];
        admin.run(&init).await?.done()?;
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let rbac = RBAC.replace(
            "namespace: kubectl-addons",
            &format!("namespace: {namespace}"),
        );
        for text in [object.to_string(), rbac] {
            let args = ["apply", "-f", "-"];
            admin.kubectl_with_input(&args, &text).await?.done()?;
        }
        Ok(())
    }

    /// A kubeconfig with the contexts `self`, `other` and `silent`.
    fn contexts(&self) -> Result<PathBuf> {
        let mut merged = json!({
            "apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": [], "current-context": "self",
        });
        let own = self.stage.cluster.kubeconfig();
        for (name, path) in [("self", own), ("other", &self.distributor), ("silent", own)] {
            let read: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            for (list, what) in [("clusters", "cluster"), ("users", "user")] {
                let mut one = read[list][0].clone();
                one["name"] = json!(name);
                if name == "silent" && what == "cluster" {
                    one[what]["server"] = json!("https://127.0.0.1:1");
                }
                merged[list].as_array_mut().context("a list")?.push(one);
            }
            let context = json!({"name": name, "context": {"cluster": name, "user": name}});
            merged["contexts"]
                .as_array_mut()
                .context("a list")?
                .push(context);
        }
        self.stage.write("contexts.json", &merged.to_string())
    }

    pub(super) async fn push(&self, to: &str) -> Result<Output> {
        let kubeconfig = self.contexts()?;
        let line = format!("catalogue push {to} --kubeconfig {}", kubeconfig.display());
        self.stage.run(&line).await
    }

    pub(super) async fn offer(&self, name: &str, manifest: &str) -> Result<()> {
        let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest}}});
        let file = self.stage.catalogue(name, &version)?;
        let add = format!("catalogue add {}", file.display());
        self.stage.run(&add).await?.done().map(drop)
    }

    /// The merged catalogue of a cluster.
    async fn merged(&self, cluster: &ControlPlane) -> Result<Value> {
        let namespace = &self.stage.namespace;
        let path =
            format!("/apis/{API_VERSION}/namespaces/{namespace}/addoncatalogues/merged-custom");
        let found = objects::read(&cluster.client().await?, &path).await?;
        found.context("no merged catalogue")
    }
}

/// Every target gets the same bytes, the source among them, and a second run writes nothing; what cannot be reached, or has no
/// definitions, fails alone and by its name.
#[tokio::test]
async fn all_targets_get_the_same_merged_catalogue() -> Result<()> {
    let pair = Pair::new("pushed").await?;
    let nothing = pair.push("--to-context other").await?.ended(1)?;
    ensure!(
        nothing.stderr.contains("no catalogues to push"),
        "{}",
        nothing.stderr
    );
    pair.offer("web", &config_map("web", "1")).await?;
    pair.offer("api", &config_map("api", "1")).await?;
    pair.prepare_other().await?;
    let said = pair
        .push("--to-context self,silent,other")
        .await?
        .ended(1)?;
    for words in [
        "self  catalogue merged-custom created: 2 add-ons, 2 versions",
        "other  catalogue merged-custom created: 2 add-ons, 2 versions",
        "error: silent: ",
    ] {
        ensure!(said.stderr.contains(words), "{}", said.stderr);
    }
    let here = pair.merged(&pair.stage.cluster).await?;
    let there = pair.merged(&pair.other).await?;
    ensure!(here["spec"].to_string() == there["spec"].to_string());
    ensure!(here["metadata"]["labels"] == there["metadata"]["labels"]);
    let from =
        |addon: usize| &here["spec"]["addons"][addon]["versions"][0]["mergedFrom"]["catalogue"];
    ensure!(from(0) == "api" && from(1) == "web", "{here}");

    let again = pair.push("--to-context self,other -o json").await?.done()?;
    let rows: Value = serde_json::from_str(&again.stdout)?;
    for row in [0, 1] {
        ensure!(
            rows["items"][row]["catalogues"][0]["result"] == "unchanged",
            "{rows}"
        );
    }
    ensure!(pair.merged(&pair.stage.cluster).await? == here);
    ensure!(pair.merged(&pair.other).await? == there);
    // Beside its sources a copy offers nothing of its own.
    let found = pair.stage.run("search -o json").await?.done()?;
    let found: Value = serde_json::from_str(&found.stdout)?;
    ensure!(
        found["items"].as_array().is_some_and(|all| all.len() == 2),
        "{found}"
    );

    by_namespace(&pair).await?;
    refused(&pair).await
}

/// The same cluster by the namespace that stands for it, after a change.
async fn by_namespace(pair: &Pair) -> Result<()> {
    pair.offer("web", &config_map("web", "2")).await?;
    let namespace = format!("{}-team", pair.stage.namespace);
    let kubeconfig = STANDARD.encode(std::fs::read_to_string(&pair.distributor)?);
    let labels =
        json!({"kubectl-addons.dev/kubeconfig-secret": "other", "fleet": pair.stage.namespace});
    let items = json!([
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": namespace}, "data": {"value": kubeconfig}},
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let apply = ["apply", "-f", "-"];
    pair.stage
        .plugin
        .kubectl_with_input(&apply, &list)
        .await?
        .done()?;
    let selector = format!("--clusters fleet={}", pair.stage.namespace);
    let said = pair.push(&selector).await?.done()?;
    let expected = format!("{namespace}  catalogue merged-custom replaced: 2 add-ons, 2 versions");
    ensure!(said.stderr.contains(&expected), "{}", said.stderr);
    let there = pair.merged(&pair.other).await?;
    ensure!(
        there["spec"]["addons"][1]["versions"][0]["source"]["inline"]["manifest"]
            == config_map("web", "2")
    );
    let words = "no namespace has the labels fleet=none";
    none(pair, "--clusters fleet=none", words).await
}

/// What does not fit is said before anything is sent, and a catalogue of the name that is not a copy from here stays.
async fn refused(pair: &Pair) -> Result<()> {
    let there = pair.merged(&pair.other).await?;
    for name in ["large", "huge"] {
        pair.offer(name, &config_map(name, &"a".repeat(600_000)))
            .await?;
    }
    let words = "the largest entries are large 1.0.0 (0.6 MiB), huge 1.0.0 (0.6 MiB), api 1.0.0";
    none(pair, "--to-context other", words).await?;
    ensure!(pair.merged(&pair.other).await? == there);

    pair.stage
        .run("catalogue remove large huge")
        .await?
        .done()?;
    let args = [
        "label",
        "addoncatalogue/merged-custom",
        "--overwrite",
        "kubectl-addons.dev/derived-from=elsewhere",
    ];
    let args = [&args[..], &["-n", &pair.stage.namespace]].concat();
    Plugin::admin(&pair.other)?.kubectl(&args).await?.done()?;
    let words =
        "catalogue merged-custom: it exists there and is a copy from another cluster (elsewhere)";
    none(pair, "--to-context other", words).await
}

/// Nothing is pushed, and the words say why.
async fn none(pair: &Pair, to: &str, words: &str) -> Result<()> {
    let said = pair.push(to).await?.ended(1)?;
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    Ok(())
}
