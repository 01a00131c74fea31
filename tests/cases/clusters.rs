//! Installations of other clusters: their records are in a namespace here that stands for the cluster, their objects there
//! (semantics 6).

mod fleet;
mod looped;
mod owners;
mod rights;
mod sites;
mod tenants;

use std::sync::Arc;
use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, Own};
use addons_tests::objects;
use addons_tests::plugin::{Output, Plugin};
use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The other cluster, which knows nothing of our definitions.
pub(crate) async fn other() -> Result<Arc<ControlPlane>> {
    static OTHER: Own = Own::new();
    OTHER.get().await
}

/// A Secret with one key.
fn secret(namespace: &str, name: &str, kind: &str, key: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "type": kind, "data": {key: STANDARD.encode(text)},
    })
}

/// A user, and the other cluster.
struct Pair {
    stage: Stage,
    other: Arc<ControlPlane>,
    /// The namespace here that is to stand for the other cluster.
    team: String,
}

impl Pair {
    async fn new(what: &str) -> Result<Self> {
        Self::of(Stage::new(what).await?).await
    }

    async fn of(stage: Stage) -> Result<Self> {
        let other = other().await?;
        let team = format!("{}-team", stage.namespace);
        stage.run("init").await?.done()?;
        Ok(Self { stage, other, team })
    }

    /// Writes the namespace with labels, and Secrets into it.
    async fn namespace(&self, labels: Value, secrets: &[Value]) -> Result<()> {
        let mut items = vec![json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.team, "labels": labels},
        })];
        items.extend(secrets.iter().cloned());
        // Labels that are left out are removed: apply remembers what it set.
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let args = ["apply", "-f", "-"];
        let applied = self.stage.plugin.kubectl_with_input(&args, &list).await?;
        applied.done().map(drop)
    }

    /// A Secret of the namespace.
    fn secret(&self, name: &str, kind: &str, key: &str, kubeconfig: &str) -> Value {
        secret(&self.team, name, kind, key, kubeconfig)
    }

    fn kubeconfig(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.other.kubeconfig())?)
    }

    /// Makes the namespace stand for the other cluster.
    async fn stand(&self) -> Result<()> {
        let secret = self.secret("other", "Opaque", "kubeconfig", &self.kubeconfig()?);
        self.namespace(
            json!({"kubectl-addons.dev/kubeconfig-secret": "other"}),
            &[secret],
        )
        .await
    }

    /// A catalogue of this cluster with one add-on, whose objects are in a namespace of the same name in either cluster.
    async fn offer(&self, version: &str, manifest: &str) -> Result<()> {
        let version = json!({
            "version": version, "defaultNamespace": self.target(),
            "source": {"inline": {"manifest": manifest}},
        });
        let file = self.stage.catalogue("web", &version)?;
        let add = format!("catalogue add {}", file.display());
        self.stage.run(&add).await?.done().map(drop)
    }

    fn target(&self) -> String {
        format!("{}-web", self.stage.namespace)
    }

    async fn run(&self, line: &str) -> Result<Output> {
        self.stage.run(&format!("{line} -n {}", self.team)).await
    }

    /// An object of the target namespace.
    async fn there(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        read(&self.other, kind, &self.target(), name).await
    }

    async fn here(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        read(&self.stage.cluster, kind, &self.target(), name).await
    }

    async fn record(&self) -> Result<Value> {
        let found = read(&self.stage.cluster, "addoninstallation", &self.team, "web").await?;
        found.context("no record")
    }
}

async fn read(
    cluster: &ControlPlane,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>> {
    let path = objects::path(kind, namespace, name).context("an unknown kind")?;
    objects::read(&cluster.client().await?, &path).await
}

/// semantics 6: installed, looked at, repaired, upgraded and uninstalled in the other cluster, beside an installation of the same
/// add-on with the same objects in this one.
#[tokio::test]
async fn an_installation_lives_in_the_cluster_of_its_namespace() -> Result<()> {
    let pair = Pair::new("there").await?;
    let objects = |value| config_map("web", value) + &deployment("web", 1, None);
    pair.offer("1.0.0", &objects("1")).await?;
    pair.stand().await?;
    pair.stage.run("install web -y").await?.done()?;
    pair.run("install web -y").await?.done()?;
    let map = pair.there("configmap", "web").await?.context("not there")?;
    ensure!(map["data"]["key"] == "1");
    let record = pair.record().await?;
    let uid = |namespace: &Value| namespace["metadata"]["uid"].clone();
    let there = read(&pair.other, "namespace", "", "kube-system").await?;
    let expected = json!({
        "kubeSystemUid": there.as_ref().map(uid), "kubeconfigSecret": "other",
    });
    ensure!(record["status"]["cluster"] == expected, "{record}");
    ensure!(record["status"]["phase"] == "Ready", "{record}");
    // Records are here alone.
    let definitions = "addoninstallations.kubectl-addons.dev";
    ensure!(read(&pair.other, "crd", "", definitions).await?.is_none());
    // Nothing is due, and what was edited there is seen and repaired there.
    let again = pair.run("upgrade web -y").await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{again:?}");
    let client = pair.other.client().await?;
    let path = objects::path("configmap", &pair.target(), "web").context("known")?;
    let edit = http::Request::patch(&path)
        .header("content-type", "application/merge-patch+json")
        .body(json!({"data": {"key": "edited"}}).to_string().into_bytes())?;
    client.request::<Value>(edit).await?;
    ensure!(pair.run("diff web").await?.code == 1);
    pair.run("upgrade web --repair -y").await?.done()?;
    let map = pair.there("configmap", "web").await?.context("not there")?;
    ensure!(map["data"]["key"] == "1");
    let status = pair.run("status web -o json").await?.done()?;
    ensure!(
        status.stdout.contains("\"Deployment\""),
        "{}",
        status.stdout
    );

    pair.offer("2.0.0", &config_map("web", "2")).await?;
    pair.run("upgrade web -y").await?.done()?;
    let map = pair.there("configmap", "web").await?.context("not there")?;
    ensure!(map["data"]["key"] == "2");
    ensure!(pair.there("deployment", "web").await?.is_none());
    let untouched = pair.here("configmap", "web").await?.context("not here")?;
    ensure!(untouched["data"]["key"] == "1");
    ensure!(pair.here("deployment", "web").await?.is_some());

    pair.run("uninstall web -y").await?.done()?;
    ensure!(pair.there("configmap", "web").await?.is_none());
    let namespace = read(&pair.other, "namespace", "", &pair.target()).await?;
    let is_going = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    ensure!(namespace.as_ref().is_none_or(is_going), "{namespace:?}");
    ensure!(pair.here("configmap", "web").await?.is_some());
    pair.stage.run("uninstall web -y").await?.done()?;
    ensure!(pair.here("configmap", "web").await?.is_none());
    Ok(())
}

/// semantics 6: a kubeconfig that is missing, ambiguous or reaches beyond itself never means this cluster.
#[tokio::test]
async fn what_leads_to_no_other_cluster_is_refused() -> Result<()> {
    let pair = Pair::new("nowhere").await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let kubeconfig = pair.kubeconfig()?;
    let runs_a_program = kubeconfig.replace("\"client-key-data\"", "\"client-key\"");
    ensure!(runs_a_program != kubeconfig);
    let api = "cluster.x-k8s.io/secret";
    let label = |name: &str| json!({"kubectl-addons.dev/kubeconfig-secret": name});
    let local = "kubectl-addons.dev/cluster";
    let rows: Vec<(Value, Vec<Value>, &str)> = vec![
        (json!({}), vec![], "does not stand for a cluster"),
        (
            json!({}),
            vec![],
            "for the objects of an add-on; -n is for its record",
        ),
        (label("gone"), vec![], "there is no such Secret"),
        (
            label("empty"),
            vec![pair.secret("empty", "Opaque", "other-key", "x")],
            "has no key value or kubeconfig",
        ),
        (
            label("path"),
            vec![pair.secret("path", "Opaque", "value", &runs_a_program)],
            "user.client-key is refused",
        ),
        (
            label("text"),
            vec![pair.secret("text", "Opaque", "value", "{}")],
            "current-context is missing",
        ),
        (
            json!({local: "local", "kubectl-addons.dev/kubeconfig-secret": "path"}),
            vec![],
            "either for this cluster or for another one",
        ),
        // By the conventions of Cluster API and KKP: who writes Secrets enrols no cluster.
        (
            json!({local: "none"}),
            vec![
                pair.secret("a-kubeconfig", api, "value", &kubeconfig),
                pair.secret("admin-kubeconfig", "Opaque", "kubeconfig", &kubeconfig),
            ],
            "does not stand for a cluster",
        ),
    ];
    for (labels, secrets, expected) in rows {
        pair.namespace(labels, &secrets).await?;
        let said = pair.run("install web -y").await?;
        ensure!(
            said.code != 0 && said.stderr.contains(expected),
            "{expected}: {}",
            said.stderr
        );
        for hidden in ["LS0t", "BEGIN"] {
            ensure!(!said.stderr.contains(hidden), "{}", said.stderr);
        }
    }
    ensure!(pair.here("configmap", "web").await?.is_none());
    ensure!(pair.there("configmap", "web").await?.is_none());
    ensure!(pair.record().await.is_err());

    // The label chooses one.
    pair.namespace(label("a-kubeconfig"), &[]).await?;
    pair.run("install web -y").await?.done()?;
    ensure!(pair.there("configmap", "web").await?.is_some());
    Ok(())
}

/// semantics 6: a record is pinned to its cluster by the uid of that one's kube-system, whatever the Secret leads to later.
#[tokio::test]
async fn a_record_is_not_followed_into_another_cluster() -> Result<()> {
    let pair = Pair::new("pinned").await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    pair.stand().await?;
    pair.run("install web -y").await?.done()?;
    // The Secret leads here now.
    let here = std::fs::read_to_string(pair.stage.cluster.kubeconfig())?;
    let secret = pair.secret("other", "Opaque", "kubeconfig", &here);
    let label = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
    pair.namespace(label, &[secret]).await?;
    let before = pair.record().await?;
    for line in ["upgrade web --repair -y", "uninstall web -y"] {
        let said = pair.run(line).await?;
        let expected = "is recorded as an installation of another cluster";
        ensure!(
            said.code != 0 && said.stderr.contains(expected),
            "{line}: {}",
            said.stderr
        );
    }
    ensure!(pair.record().await? == before);
    ensure!(pair.here("configmap", "web").await?.is_none());
    ensure!(pair.there("configmap", "web").await?.is_some());
    // With the Secret gone, nothing is done either.
    let args = ["delete", "secret", "other", "-n", &pair.team];
    pair.stage.plugin.kubectl(&args).await?.done()?;
    let said = pair.run("uninstall web -y").await?;
    ensure!(
        said.code != 0 && said.stderr.contains("there is no such Secret"),
        "{}",
        said.stderr
    );
    pair.stand().await?;
    pair.run("uninstall web -y").await?.done()?;
    ensure!(pair.there("configmap", "web").await?.is_none());
    Ok(())
}

/// semantics 6: credentials that end while a command runs are read again from the Secret.
#[tokio::test]
async fn a_command_outlives_its_credentials() -> Result<()> {
    let pair = Pair::new("renewed").await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let proxy = Proxy::start(&pair.other)?;
    let label = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
    let stand = async |client: &str| {
        let kubeconfig = proxy.client(client, pair.other.admin())?;
        let kubeconfig = std::fs::read_to_string(kubeconfig)?;
        let secret = pair.secret("other", "Opaque", "value", &kubeconfig);
        pair.namespace(label.clone(), &[secret]).await
    };
    stand("old").await?;
    let refused = Action::Answer {
        status: 401,
        retry_after: None,
    };
    // Its first answer comes once they are replaced, and is the last one that they get.
    proxy.stall("/");
    proxy.fault(Fault::at(2, refused).times(usize::MAX).client("old"));
    let replace = async {
        until("a request", async || {
            let is_there = !proxy.requests().is_empty();
            Ok(is_there.then_some(()).ok_or_else(String::new))
        })
        .await?;
        stand("new").await?;
        proxy.flow();
        Ok::<_, anyhow::Error>(())
    };
    let (installed, replaced) = tokio::join!(pair.run("install web -y"), replace);
    replaced?;
    installed?.done()?;
    ensure!(pair.there("configmap", "web").await?.is_some());
    let answers = proxy.requests().into_iter();
    let refused = answers.filter(|seen| seen.client == "old" && seen.status == Some(401));
    ensure!(refused.count() > 0, "the old ones were not used again");
    Ok(())
}

/// The clock of the cluster with the records is behind that of the cluster with the objects.
#[tokio::test]
async fn n22_the_clocks_of_records_and_objects_may_differ() -> Result<()> {
    let pair = Pair::new("clocks").await?;
    pair.stand().await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let proxy = Proxy::start(&pair.stage.cluster)?;
    let kubeconfig = proxy.client("behind", pair.stage.cluster.admin())?;
    proxy.set_behind(Duration::from_secs(120));
    let plugin = Plugin::new(&pair.stage.cluster, &kubeconfig)?;
    let plugin = plugin.system_namespace(&pair.stage.namespace);
    let run = async |verb: &str| {
        let line = [verb, "web", "--yes", "-n", &pair.team];
        plugin.run(&line).await
    };
    run("install").await?.done()?;
    pair.offer("2.0.0", &config_map("web", "2")).await?;
    run("upgrade").await?.done()?;
    let map = pair.there("configmap", "web").await?.context("not there")?;
    ensure!(map["data"]["key"] == "2", "{map:#}");
    run("uninstall").await?.done().map(drop)
}
