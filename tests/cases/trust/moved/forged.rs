//! A tenant writes a record of an old place, and names in it what is not theirs.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use common::api::names::owner_hash;
use serde_json::{Value, json};

use super::{OWNER, get, handed_over, run};

const INDEX: &str = "https://evil.example.test/index.yaml";
/// An object of another installation, one without an owner, and one of an installation that is gone and had the name which the forged one
/// gets.
const VICTIMS: [&str; 3] = ["ours", "theirs", "orphan"];

/// An administrator, a tenant with a namespace of their own, and what the tenant writes there.
struct Forged {
    stage: Stage,
    tenant: String,
    victims: Vec<Value>,
    namespace: Value,
    status: Value,
}

impl Forged {
    async fn new() -> Result<Self> {
        let stage = Stage::new("forged").await?;
        let (plugin, system) = (&stage.plugin, stage.namespace.as_str());
        let ours = stage.index("ours.yaml", &[("web", "1.0.0", &config_map("ours", "1"))])?;
        run(plugin, &format!("install web --channel {ours} --yes"), 0).await?;
        let others = [config_map("theirs", "1"), config_map("orphan", "1")];
        stage.apply(&others.concat()).await?;
        let mark = format!("{OWNER}={}", owner_hash(system, "evil"));
        let label = ["label", "configmap", "orphan", &mark];
        stage.kubectl(&label).await?;
        let tenant = format!("{system}-tenant");
        let create = ["create", "namespace", &tenant];
        plugin.kubectl(&create).await?.done()?;
        let apply = ["apply", "-n", &tenant, "-f", "-"];
        let own = config_map("own", "1");
        plugin.kubectl_with_input(&apply, &own).await?.done()?;
        let mark = format!("{OWNER}={}", owner_hash(&tenant, "evil"));
        let label = ["label", "configmap", "own", "-n", &tenant, &mark];
        plugin.kubectl(&label).await?.done()?;

        let (mut victims, mut recorded) = (Vec::new(), Vec::new());
        for name in VICTIMS {
            let victim = get(plugin, "configmap", system, name).await?;
            let uid = &victim["metadata"]["uid"];
            recorded.push(json!({"name": name, "uid": uid, "digest": "0123456789abcdef0123"}));
            victims.push(victim);
        }
        let never = "00000000-0000-0000-0000-000000000000";
        recorded.push(json!({"name": "later", "uid": never}));
        let own = get(plugin, "configmap", &tenant, "own").await?;
        let own = json!([{"name": "own", "uid": own["metadata"]["uid"]}]);
        let namespace = get(plugin, "namespace", "", system).await?;
        let status = json!({
            "conditions": [],
            "createdNamespace": {"name": system, "uid": namespace["metadata"]["uid"]},
            "inventory": [
                {"version": "v1", "kind": "ConfigMap", "namespace": system, "objects": recorded},
                {"version": "v1", "kind": "ConfigMap", "namespace": tenant, "objects": own},
            ],
        });
        Ok(Self {
            stage,
            tenant,
            victims,
            namespace,
            status,
        })
    }

    /// Writes the record, with one more field in its spec.
    async fn write(&self, field: &str, value: Value) -> Result<()> {
        let plugin = &self.stage.plugin;
        let place = ["-n", &self.tenant];
        let delete = ["delete", "addoninstallation", "evil", "--ignore-not-found"];
        let delete = [&delete[..], &place].concat();
        plugin.kubectl(&delete).await?.done()?;
        let mut record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "evil"}, "spec": {"addonRef": {"name": "evil", "index": INDEX}},
        });
        record["spec"][field] = value;
        let apply = [&["apply", "-f", "-"][..], &place].concat();
        let record = record.to_string();
        plugin.kubectl_with_input(&apply, &record).await?.done()?;
        let status = json!({"status": self.status}).to_string();
        let patch = ["patch", "addoninstallation", "evil", "--subresource=status"];
        let patch = [&patch[..], &["--type=merge", "-p", &status], &place].concat();
        plugin.kubectl(&patch).await?.done().map(drop)
    }

    async fn is_moved(&self) -> Result<bool> {
        self.stage.has("addoninstallation", "evil").await
    }

    /// That nothing was changed which the record only claims.
    async fn victims_are_untouched(&self) -> Result<()> {
        let (plugin, system) = (&self.stage.plugin, &self.stage.namespace);
        for (name, before) in VICTIMS.into_iter().zip(&self.victims) {
            let now = get(plugin, "configmap", system, name).await?;
            ensure!(now == *before, "{now:#}\ninstead of\n{before:#}");
        }
        let now = get(plugin, "namespace", "", system).await?;
        ensure!(now == self.namespace, "{now:#}");
        Ok(())
    }
}

/// trust 1.
#[tokio::test]
async fn t01_a_forged_record_does_not_move_unless_the_user_agrees_by_name() -> Result<()> {
    let forged = Forged::new().await?;
    let plugin = &forged.stage.plugin;
    let name = format!("{}/evil", forged.tenant);
    forged.write("suspend", json!(false)).await?;
    let said = run(plugin, "init", 0).await?;
    for words in [
        format!("origin    index {INDEX}"),
        "written   by kubectl-client-side-apply".to_owned(),
        format!("kubectl addons init --move {name}"),
    ] {
        ensure!(said.contains(&words), "{words}: {said}");
    }
    // Of other tests there may be some, too; the terminal ends the input once only.
    let no = "n\n".repeat(500);
    let said = plugin.run_on_terminal(&["init"], &no).await?.done()?;
    for words in ["with your rights. [y/N]", &format!("{name} stays")] {
        ensure!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    ensure!(!forged.is_moved().await?, "it was moved");

    // What cannot mean the same in another place is refused by name.
    let secrets = json!([{"secretKeyRef": {"name": "a", "key": "b"}}]);
    for (field, value, why) in [
        ("suspend", json!(true), "it is suspended"),
        ("valuesFrom", secrets, "spec.valuesFrom reads Secrets"),
        ("coreAddon", json!(true), "it is a core add-on"),
    ] {
        forged.write(field, value).await?;
        let said = run(plugin, &format!("init --move {name}"), 1).await?;
        ensure!(said.contains(why), "{why}: {said}");
        ensure!(!forged.is_moved().await?, "{why}: it was moved");
    }
    forged.victims_are_untouched().await
}

/// trust 1: an object goes with a record only if it carries the label of that record, which the tenant could not write.
#[tokio::test]
async fn t01_a_forged_record_takes_nothing_with_it_that_is_not_its_own() -> Result<()> {
    let forged = Forged::new().await?;
    let (stage, tenant) = (&forged.stage, forged.tenant.as_str());
    let (plugin, system) = (&stage.plugin, stage.namespace.as_str());
    forged.write("suspend", json!(false)).await?;
    let said = run(plugin, &format!("init --move {tenant}/evil"), 0).await?;
    for victim in VICTIMS {
        let left = format!("left      {system}/ConfigMap {victim}: ");
        ensure!(said.contains(&left), "{left}: {said}");
    }
    ensure!(said.contains("with 1 object"), "{said}");
    forged.victims_are_untouched().await?;
    let own = get(plugin, "configmap", tenant, "own").await?;
    handed_over(&own, (tenant, "evil"), (system, "evil"))?;
    let record = stage.record("evil").await?;
    let status = &record["status"];
    ensure!(status["createdNamespace"] == Value::Null, "{record:#}");
    let recorded = status["inventory"].to_string();
    for name in VICTIMS {
        ensure!(!recorded.contains(name), "{recorded}");
    }
    // An object that does not exist is not claimed: whoever creates it later owns it.
    let later = r#""name":"later","state":"planned""#;
    ensure!(recorded.contains(later), "{recorded}");
    Ok(())
}
