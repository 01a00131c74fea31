//! Tenants: users whose role covers the namespace of their cluster, and nothing else. The reconciler does the rest.

use addons_tests::objects;
use addons_tests::plugin::Output;
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Pair;

const ROLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/components/tenant/rbac.yaml"
);

/// A tenant of the namespace of the other cluster, with the shipped role, and a loop that stores what fits the cluster.
struct Tenancy {
    pair: Pair,
    _process: Running,
}

impl Tenancy {
    async fn new(what: &str) -> Result<Self> {
        // A loop works on all namespaces of its cluster.
        let pair = Pair::of(Stage::alone(what).await?).await?;
        pair.stand().await?;
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n\
                        data: {key: \"{{ .Variables.size }}\"}\n";
        let fits = json!({
            "version": "1.0.0", "defaultNamespace": pair.target(),
            "template": {"method": "go-template", "formSpec": [
                {"displayName": "Size", "internalName": "size", "type": "number", "default": 1},
            ]},
            "source": {"inline": {"manifest": template}},
        });
        let too_new = json!({
            "version": "2.0.0", "defaultNamespace": pair.target(), "constraints": {"k8sVersion": ">=1.99.0"},
            "source": {"inline": {"manifest": config_map("web", "2")}},
        });
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "shop"},
            "spec": {"addons": [
                {"name": "web", "description": "Serves pages", "versions": [fits, too_new]},
            ]},
        });
        let file = pair.stage.write("shop.json", &catalogue.to_string())?;
        let add = format!("catalogue add {}", file.display());
        pair.stage.run(&add).await?.done()?;
        let kubectl = &pair.stage.plugin;
        kubectl.kubectl(&["apply", "-f", ROLE]).await?.done()?;
        let user = format!("--user=tenant-{}", pair.team);
        let role = "--clusterrole=kubectl-addons:tenant";
        let bind = [
            "create",
            "rolebinding",
            "tenant",
            "-n",
            &pair.team,
            role,
            &user,
        ];
        kubectl.kubectl(&bind).await?.done()?;
        let process = Running::reconcile(&pair.stage, &["--interval", "2s", "--store-compatible"])?;
        let tenancy = Self {
            pair,
            _process: process,
        };
        tenancy.copy().await?;
        Ok(tenancy)
    }

    /// The copy of what fits the cluster.
    async fn copy(&self) -> Result<Value> {
        let namespace = &self.pair.team;
        let path = format!(
            "/apis/kubectl-addons.dev/v1alpha1/namespaces/{namespace}/addoncatalogues/compatible-addons"
        );
        let client = self.pair.stage.cluster.client().await?;
        until("what fits is stored", async || {
            let found = objects::read(&client, &path).await?;
            Ok(found.ok_or_else(String::new))
        })
        .await
    }

    /// Runs a command as the tenant.
    async fn run(&self, line: &str) -> Result<Output> {
        let user = format!("tenant-{}", self.pair.team);
        self.pair.run(&format!("{line} --as {user}")).await
    }

    async fn until_ready(&self, key: &str) -> Result<()> {
        until("the reconciler is done", async || {
            let record = self.pair.record().await?;
            let live = self.pair.there("configmap", "web").await?;
            let live = live.unwrap_or_default();
            let is_done = record["status"]["phase"] == "Ready" && live["data"]["key"] == key;
            Ok(is_done.then_some(()).ok_or_else(|| record.to_string()))
        })
        .await
    }
}

/// semantics 1.7: what fits is stored as a catalogue with everything that a form needs, and without content.
#[tokio::test]
async fn what_fits_a_cluster_is_a_catalogue_in_its_namespace() -> Result<()> {
    let tenancy = Tenancy::new("copied").await?;
    let copy = tenancy.copy().await?;
    ensure!(
        copy["metadata"]["labels"]["kubectl-addons.dev/derived-from"].is_string(),
        "{copy}"
    );
    let addon = &copy["spec"]["addons"][0];
    ensure!(addon["description"] == "Serves pages", "{copy}");
    let versions = addon["versions"].as_array().context("none")?;
    ensure!(versions.len() == 1, "{copy}");
    ensure!(
        versions[0]["template"]["formSpec"][0]["internalName"] == "size",
        "{copy}"
    );
    let of = json!({"catalogue": {"namespace": tenancy.pair.stage.namespace, "name": "shop"}});
    ensure!(versions[0]["source"] == of, "{copy}");
    // It is written again only where something changed, and does not count as a duplicate of its origin.
    let version = copy["metadata"]["resourceVersion"].clone();
    tenancy.pair.stage.run("catalogue view").await?.done()?;
    tenancy.run("install web -y").await?.done()?;
    tenancy.until_ready("1").await?;
    let again = tenancy.copy().await?;
    ensure!(again["metadata"]["resourceVersion"] == version, "{again}");
    Ok(())
}

/// semantics 17.10: every command works in the namespace, and what the tenant cannot do is left to the reconciler.
#[tokio::test]
async fn a_tenant_uses_the_plugin_in_one_namespace() -> Result<()> {
    let tenancy = Tenancy::new("tenant").await?;
    let team = &tenancy.pair.team;
    let found = tenancy.run("search -o wide").await?.done()?;
    ensure!(
        found.stdout.contains("1.0.0") && found.stdout.contains("Serves pages"),
        "{found:?}"
    );
    ensure!(found.stderr.is_empty(), "{found:?}");
    let shown = tenancy.run("show web").await?.done()?;
    ensure!(
        shown.stdout.contains("size (number, default 1)"),
        "{shown:?}"
    );
    let empty = tenancy.run("list").await?.done()?;
    ensure!(empty.stderr.contains("nothing is installed"), "{empty:?}");

    let dry = tenancy.run("install web --dry-run").await?.done()?;
    ensure!(dry.stderr.contains("nothing was changed"), "{dry:?}");
    ensure!(tenancy.pair.record().await.is_err());
    let wrong = tenancy.run("install web --set size=big -y").await?;
    ensure!(wrong.code == 6, "{wrong:?}");
    let installed = tenancy.run("install web --set size=3 -y").await?.done()?;
    for words in [
        &format!("you may not read the kubeconfig of the cluster of {team}"),
        "install web 1.0.0 into",
        "recorded; the reconciler installs it",
        &format!("look:   kubectl addons status web -n {team} --watch"),
    ] {
        ensure!(installed.stderr.contains(words), "{words}: {installed:?}");
    }
    tenancy.until_ready("3").await?;

    let listed = tenancy.run("list").await?.done()?;
    ensure!(listed.stdout.contains("Ready: as recorded"), "{listed:?}");
    let note = "the status is what the reconciler recorded";
    ensure!(
        listed.stderr.matches(note).count() == 1 && listed.stderr.lines().count() == 1,
        "{listed:?}"
    );
    let status = tenancy.run("status web --exit-code").await?.done()?;
    ensure!(status.stdout.contains("ConfigMap web"), "{status:?}");
    let values = tenancy.run("values web").await?.done()?;
    ensure!(values.stdout.contains("size: 3"), "{values:?}");
    let history = tenancy.run("history web").await?.done()?;
    ensure!(history.stdout.contains("1.0.0"), "{history:?}");

    let same = tenancy.run("upgrade web -y").await?.done()?;
    ensure!(same.stderr.contains("nothing to record"), "{same:?}");
    tenancy.run("upgrade web --set size=4 -y").await?.done()?;
    tenancy.until_ready("4").await?;

    let gone = tenancy.run("uninstall web -y").await?.done()?;
    ensure!(
        gone.stderr.contains("the reconciler uninstalls it"),
        "{gone:?}"
    );
    until("it is uninstalled", async || {
        let is_gone = tenancy.pair.record().await.is_err();
        Ok(is_gone.then_some(()).ok_or_else(String::new))
    })
    .await?;
    ensure!(tenancy.pair.there("configmap", "web").await?.is_none());
    Ok(())
}

/// F7: a cluster that does not respond has its installations listed with what was last known.
#[tokio::test]
async fn installations_of_a_lost_cluster_stay_listed() -> Result<()> {
    let pair = Pair::new("lost").await?;
    pair.stand().await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    pair.run("install web -y").await?.done()?;
    let dead = pair
        .kubeconfig()?
        .replace(pair.other.server(), "https://127.0.0.1:9");
    let secret = pair.secret("other", "Opaque", "kubeconfig", &dead);
    let labels = json!({"kubectl-addons.dev/kubeconfig-secret": "other", "fleet": pair.team});
    pair.namespace(labels, &[secret]).await?;
    let listed = pair.run("list").await?.ended(1)?;
    ensure!(
        listed.stdout.contains("1.0.0") && listed.stdout.contains("Unknown: Ready "),
        "{listed:?}"
    );
    ensure!(listed.stderr.contains("cannot be reached"), "{listed:?}");
    let fleet = format!("list --clusters fleet={}", pair.team);
    let listed = pair.stage.run(&fleet).await?.ended(1)?;
    ensure!(listed.stdout.contains("Unknown: Ready "), "{listed:?}");
    let status = pair.run("status web").await?.done()?;
    ensure!(status.stdout.contains("Unknown"), "{status:?}");
    Ok(())
}
