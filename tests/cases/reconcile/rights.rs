//! With whose rights installations are reconciled (semantics 16), and how their deletion is finished (semantics 15).

use addons_tests::running::Running;
use addons_tests::stage::{self, Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A namespace of a tenant that stands for this cluster, whose ServiceAccount `deployer` may do everything in it.
async fn tenant(stage: &Stage) -> Result<String> {
    let team = format!("{}-team", stage.namespace);
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": stage::tenant(&team)});
    let args = ["apply", "-f", "-"];
    stage
        .plugin
        .kubectl_with_input(&args, &objects.to_string())
        .await?
        .done()?;
    Ok(team)
}

fn record(name: &str, team: &str, account: Option<&str>) -> Value {
    let mut spec = json!({
        "addonRef": {"name": name, "catalogue": name}, "targetNamespace": team, "createNamespace": false,
    });
    if let Some(account) = account {
        spec["serviceAccountName"] = json!(account);
    }
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": team}, "spec": spec,
    })
}

async fn stalled(stage: &Stage, name: &str, team: &str) -> Result<Value> {
    let get = ["get", "addoninstallation", name, "-n", team, "-o", "json"];
    let found: Value = serde_json::from_str(&stage.plugin.kubectl(&get).await?.done()?.stdout)?;
    let mut conditions = found["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let stalled = conditions.find(|condition| condition["type"] == "Stalled");
    stalled.cloned().with_context(|| format!("{found}"))
}

/// A tenant's record is reconciled with the rights of its ServiceAccount, and of no one else.
#[tokio::test]
async fn a_tenant_gets_the_rights_of_its_service_account_only() -> Result<()> {
    let stage = Stage::alone("tenant").await?;
    stage.run("init").await?.done()?;
    let team = tenant(&stage).await?;
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {team}-evil}}\nrules: []\n---\n"
    );
    for (name, manifest, account) in [
        ("web", config_map("web", "1"), Some("deployer")),
        ("evil", role, Some("deployer")),
        ("unnamed", config_map("unnamed", "1"), None),
    ] {
        let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest}}});
        let file = stage.catalogue(name, &version)?;
        stage
            .run(&format!("catalogue add {}", file.display()))
            .await?
            .done()?;
        let written = record(name, &team, account).to_string();
        let args = ["apply", "-f", "-"];
        stage
            .plugin
            .kubectl_with_input(&args, &written)
            .await?
            .done()?;
    }
    let said = stage.run(&format!("reconcile -n {team}")).await?.ended(1)?;
    // The API server names who asked; and the account may not write records, which are written nevertheless.
    let account = format!("system:serviceaccount:{team}:deployer");
    let refused = format!("User \"{account}\" cannot get resource \"clusterroles\"");
    ensure!(said.stderr.contains(&refused), "{}", said.stderr);
    ensure!(!said.stderr.contains("with your rights"), "{}", said.stderr);
    let can = [
        "auth",
        "can-i",
        "update",
        "addoninstallations/status",
        "-n",
        &team,
        "--as",
        &account,
    ];
    let can = stage.plugin.kubectl(&can).await?;
    ensure!(can.stdout.starts_with("no"), "{}", can.stdout);
    let there = ["get", "configmaps", "-n", &team, "-o", "name"];
    let there = stage.plugin.kubectl(&there).await?.done()?.stdout;
    ensure!(
        there.contains("configmap/web") && !there.contains("unnamed"),
        "{there}"
    );
    ensure!(
        !stage.has("clusterrole", &format!("{team}-evil")).await?,
        "it was created"
    );
    for (name, reason) in [("evil", None), ("unnamed", Some("NoServiceAccount"))] {
        let stalled = stalled(&stage, name, &team).await?;
        ensure!(stalled["status"] == "True", "{name}: {stalled}");
        ensure!(
            reason.is_none_or(|reason| stalled["reason"] == reason),
            "{name}: {stalled}"
        );
    }
    Ok(())
}

/// Writes an object into the namespace that it names.
async fn apply(stage: &Stage, object: Value) -> Result<()> {
    let (args, object) = (["apply", "-f", "-"], object.to_string());
    let applied = stage.plugin.kubectl_with_input(&args, &object).await?;
    applied.done().map(drop)
}

/// A record of a tenant whose ConfigMap shows what comes from its Secrets.
async fn till(stage: &Stage, team: &str) -> Result<()> {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\n\
                    data: {url: \"{{ .Variables.url }}{{ .Cluster.Name }}\"}\n";
    let version = json!({
        "version": "1.0.0", "template": {"method": "go-template"}, "source": {"inline": {"manifest": manifest}},
    });
    let file = stage.catalogue("till", &version)?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done()?;
    let mut written = record("till", team, Some("deployer"));
    written["spec"]["valuesFrom"] =
        json!([{"secretKeyRef": {"name": "settings", "key": "values"}}]);
    apply(stage, written).await
}

/// Values come from Secrets that agree, and never from a kubeconfig: for the loop, which could read all of them, and for a command.
#[tokio::test]
async fn secrets_of_a_tenant_become_values_only_where_they_agree() -> Result<()> {
    let stage = Stage::alone("agreed").await?;
    stage.run("init").await?.done()?;
    let team = tenant(&stage).await?;
    till(&stage, &team).await?;
    let kubeconfig = json!({
        "clusters": [{"name": "c", "cluster": {"server": "https://example.test"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
    })
    .to_string();
    let (none, agreed) = (json!({}), json!({"kubectl-addons.dev/values": "true"}));
    let (settings, data) = (("settings", "values"), ("addon-template-data", "data.yaml"));
    let hint = |(name, _)| {
        let label = "kubectl-addons.dev/values=true";
        Some(format!("kubectl label secret {name} -n {team} {label}"))
    };
    let leads = || Some("holds a kubeconfig, which never becomes values".to_owned());
    for ((name, key), text, labels, refused) in [
        (settings, "url: s3cret", &none, hint(settings)),
        (settings, &kubeconfig, &agreed, leads()),
        (settings, "url: till", &agreed, None),
        (data, "Cluster: {Name: s3cret}", &none, hint(data)),
        (data, &kubeconfig, &agreed, leads()),
        (data, "Cluster: {Name: eu}", &agreed, None),
    ] {
        let metadata = json!({"name": name, "namespace": team, "labels": labels});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: text}});
        apply(&stage, secret).await?;
        for line in ["reconcile", "upgrade till --yes"] {
            let said = stage.run(&format!("{line} -n {team}")).await?;
            match &refused {
                Some(words) => ensure!(
                    said.code != 0 && said.stderr.contains(words),
                    "{line}: {text}: {}",
                    said.stderr
                ),
                None => drop(said.done()?),
            }
        }
        let kinds = "configmaps,addoninstallations";
        let get = ["get", kinds, "-n", &team, "-o", "yaml"];
        let live = stage.plugin.kubectl(&get).await?.done()?.stdout;
        ensure!(!live.contains("s3cret"), "{text}: {live}");
        let is_complete = name == data.0 && refused.is_none();
        ensure!(!is_complete || live.contains("url: tilleu"), "{live}");
    }
    Ok(())
}

/// `kubectl delete` is finished by the loop; `--retire` frees the records at its end, and not before.
#[tokio::test]
async fn the_loop_finishes_deletions_until_it_is_retired() -> Result<()> {
    let stage = super::stage("retired").await?;
    let index = stage.index(
        "index.yaml",
        &[
            ("web", "1.0.0", &config_map("web", "1")),
            ("stays", "1.0.0", &config_map("stays", "1")),
        ],
    )?;
    stage
        .run(&format!("install web stays --channel {index} --yes"))
        .await?
        .done()?;
    let mut process = Running::reconcile(&stage, &[])?;
    let finalizers = async |name: &str| -> Result<Value> {
        Ok(stage.record(name).await?["metadata"]["finalizers"].clone())
    };
    let finalizer = json!(["kubectl-addons.dev/uninstall"]);
    for name in ["web", "stays"] {
        until("the record is held", async || {
            let found = finalizers(name).await?;
            Ok((found == finalizer)
                .then_some(())
                .ok_or_else(|| found.to_string()))
        })
        .await?;
    }
    stage
        .kubectl(&["delete", "addoninstallation", "web", "--timeout=30s"])
        .await?;
    ensure!(
        !stage.has("configmap", "web").await?,
        "its object is still there"
    );

    let early = stage.run("reconcile --retire").await?.ended(1)?;
    ensure!(
        early.stderr.contains("leads: end it first"),
        "{}",
        early.stderr
    );
    process.process.terminate()?;
    process.process.wait()?;
    stage.run("reconcile --retire").await?.done()?;
    ensure!(
        finalizers("stays").await? == Value::Null,
        "it is still held"
    );
    stage
        .kubectl(&["delete", "addoninstallation", "stays", "--timeout=30s"])
        .await?;
    ensure!(
        stage.has("configmap", "stays").await?,
        "its object was deleted"
    );
    Ok(())
}
