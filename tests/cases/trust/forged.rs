//! Whoever may write in a namespace of their own may write revisions, and the record that says that one of them holds: what they make up
//! gets neither the credentials of a catalogue nor past what administrators allow.

use addons_tests::plugin::Output;
use addons_tests::servers::http::{Answer, Seen, Server};
use addons_tests::stage::{Stage, config_map, tenant};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// What the forged revision points at.
const FORGED: &str = "/forged.yaml";

/// A namespace of a tenant, and a catalogue whose source asks for a password.
struct Team {
    stage: Stage,
    team: String,
    server: Server,
}

impl Team {
    /// `web 1.0.0` is installed there.
    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::alone(what).await?;
        let server = Server::start(None, |seen: &Seen| {
            match seen.headers.get("authorization") {
                Some(_) => Answer::ok(config_map("web", &seen.uri)),
                None => Answer::status(401),
            }
        })?;
        let team = format!("{}-team", stage.namespace);
        let new = Self {
            stage,
            team,
            server,
        };
        new.stage.run("init").await?.done()?;
        new.list(&["1.0.0", "1.1.0"]).await?;
        new.apply(&new.objects()).await?;
        new.run("reconcile").await?.done()?;
        ensure!(new.key().await? == "/1.0.0.yaml");
        Ok(new)
    }

    fn objects(&self) -> Value {
        let team = &self.team;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
            "metadata": {"name": "source", "namespace": self.stage.namespace,
                "annotations": {"kubectl-addons.dev/allowed-hosts": "127.0.0.1"}},
            "stringData": {"username": "reader", "password": "s3cret"}});
        let record = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": team},
            "spec": {"addonRef": {"name": "web", "version": "1.0.0", "catalogue": "web"}, "targetNamespace": team,
                "createNamespace": false, "serviceAccountName": "deployer"}});
        let [namespace, account, binding] = tenant(team);
        json!({"apiVersion": "v1", "kind": "List", "items": [namespace, account, binding, secret, record]})
    }

    /// Lists these versions, and no others.
    async fn list(&self, versions: &[&str]) -> Result<()> {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                let manifest = self.server.url(&format!("/{version}.yaml"));
                json!({"version": version, "defaultNamespace": self.team,
                    "source": {"url": {"manifest": manifest, "auth": {"secretRef": {"name": "source"}}}}})
            })
            .collect();
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "web"},
            "spec": {"addons": [{"name": "web", "versions": versions}]},
        });
        let file = self.stage.write("web.json", &catalogue.to_string())?;
        let add = format!("catalogue add {}", file.display());
        self.stage.run(&add).await?.done().map(drop)
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        let (args, object) = (["apply", "-f", "-"], object.to_string());
        let applied = self.stage.plugin.kubectl_with_input(&args, &object).await?;
        applied.done().map(drop)
    }

    async fn run(&self, line: &str) -> Result<Output> {
        self.stage.run(&format!("{line} -n {}", self.team)).await
    }

    async fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let args = ["get", kind, name, "-n", &self.team, "-o", "json"];
        let found = self.stage.plugin.kubectl(&args).await?.done()?;
        Ok(serde_json::from_str(&found.stdout)?)
    }

    async fn key(&self) -> Result<Value> {
        let mut object = self.get("configmap", "web").await?;
        Ok(object["data"]["key"].take())
    }

    /// Forgets what was fetched.
    fn forget(&self) -> Result<()> {
        let cache = self.stage.plugin.home().join("cache");
        std::fs::remove_dir_all(&cache).with_context(|| format!("{} is gone", cache.display()))
    }

    /// How often the password was sent.
    fn sent(&self) -> usize {
        let seen = self.server.requests();
        let sent = |one: &&Seen| one.headers.contains_key("authorization");
        seen.iter().filter(sent).count()
    }

    /// As a tenant could: the record says that a rollback holds it.
    async fn hold(&self) -> Result<()> {
        let mut record = self.get("addoninstallation", "web").await?;
        let mut history = record["status"]["history"].take();
        history[0]["verb"] = json!("rollback");
        let patch = json!({"status": {"history": history}}).to_string();
        let args = ["patch", "addoninstallation", "web", "-n", &self.team];
        let how = ["--subresource=status", "--type=merge", "-p", &patch];
        let args = [&args[..], &how].concat();
        let patched = self.stage.plugin.kubectl(&args);
        patched.await?.done().map(drop)
    }

    /// As a tenant could: a revision with an entry that no catalogue lists, of this origin.
    async fn forge(&self, number: i64, origin: &Value) -> Result<()> {
        let mut revision = self.get("controllerrevision", "web.v1").await?;
        let metadata = json!({"name": format!("web.v{number}"), "namespace": self.team,
            "labels": revision["metadata"]["labels"].take(),
            "ownerReferences": revision["metadata"]["ownerReferences"].take()});
        revision["metadata"] = metadata;
        revision["revision"] = json!(number);
        let data = &mut revision["data"];
        data["operation"]["verb"] = json!("rollback");
        data["operation"]["installed"]["manifestHash"] = json!("a".repeat(64));
        data["entry"]["origin"] = origin.clone();
        data["entry"]["version"]["source"]["url"]["manifest"] = json!(self.server.url(FORGED));
        self.apply(&revision).await
    }
}

/// trust 6: a rollback, and the loop after it.
#[tokio::test]
async fn t06_what_a_catalogue_lists_comes_back_with_its_credentials_and_nothing_else() -> Result<()>
{
    let team = Team::new("listed").await?;
    team.run("upgrade web@1.1.0 --yes").await?.done()?;
    team.forget()?;
    team.run("rollback web --yes").await?.done()?;
    ensure!(team.key().await? == "/1.0.0.yaml");
    team.run("reconcile").await?.done()?;
    ensure!(team.key().await? == "/1.0.0.yaml");

    team.run("upgrade web@1.1.0 --yes").await?.done()?;
    team.list(&["1.1.0"]).await?;
    team.forget()?;
    let before = team.sent();
    let said = team.run("rollback web 1 --yes").await?.ended(1)?.stderr;
    let secret = format!("Secret {}/source", team.team);
    for words in ["which no catalogue lists", &secret] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    ensure!(team.sent() == before, "{said}");
    ensure!(team.key().await? == "/1.1.0.yaml");
    Ok(())
}

/// trust 6: whatever catalogue it names, for the loop and for an administrator who goes back to it.
#[tokio::test]
async fn t06_a_forged_revision_gets_no_credentials_of_a_catalogue() -> Result<()> {
    let team = Team::new("forged").await?;
    team.hold().await?;
    team.forget()?;
    let before = team.sent();
    let of = |name: &str| json!({"catalogue": {"namespace": team.stage.namespace, "name": name}});
    let index = json!({"index": {"location": team.server.url("/index.yaml")}});
    for (number, origin) in [(97, of("web")), (98, of("gone")), (99, index)] {
        team.forge(number, &origin).await?;
        let rollback = format!("rollback web {number} --yes");
        for line in ["reconcile", &rollback] {
            let said = team.run(line).await?.ended(1)?.stderr;
            let words = format!("Secret {}/source", team.team);
            ensure!(said.contains(&words), "{line}, {origin}: {said}");
        }
    }
    // Their own Secret is sent where their own sources may lead: not to this machine.
    let own = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
        "metadata": {"name": "source", "namespace": team.team,
            "annotations": {"kubectl-addons.dev/allowed-hosts": "127.0.0.1"}},
        "stringData": {"username": "tenant", "password": "own"}});
    team.apply(&own).await?;
    for line in ["reconcile", "rollback web 97 --yes"] {
        let said = team.run(line).await?.ended(1)?.stderr;
        ensure!(said.contains("127.0.0.1"), "{line}: {said}");
    }
    let seen = team.server.requests();
    ensure!(seen.iter().all(|one| one.uri != FORGED), "{seen:?}");
    ensure!(team.sent() == before, "{seen:?}");
    ensure!(team.key().await? == "/1.0.0.yaml");
    Ok(())
}

/// trust 6: what no catalogue lists is in none that a policy allows, whatever it says.
#[tokio::test]
async fn t06_a_forged_revision_is_judged_by_policies_as_what_no_catalogue_lists() -> Result<()> {
    let team = Team::new("forged-policy").await?;
    team.hold().await?;
    let policy = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy",
        "metadata": {"name": "only-web"},
        "spec": {"action": "Enforce", "allowed": {"catalogues": ["web"]}}});
    team.apply(&policy).await?;
    // What is listed is allowed.
    team.run("reconcile").await?.done()?;
    let origin = json!({"catalogue": {"namespace": team.stage.namespace, "name": "web"}});
    team.forge(99, &origin).await?;
    let words = "a version that no catalogue lists is not allowed by AddonPolicy only-web";
    for (line, code) in [("reconcile", 6), ("rollback web 99 --yes", 6)] {
        let said = team.run(line).await?.ended(code)?.stderr;
        ensure!(said.contains(words), "{line}: {said}");
    }
    let seen = team.server.requests();
    ensure!(seen.iter().all(|one| one.uri != FORGED), "{seen:?}");
    Ok(())
}
