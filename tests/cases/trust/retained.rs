//! What an uninstallation leaves in the cluster waits for its next owner, and blocks nobody.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

fn claim(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
         storageClassName: none\n  resources: {{requests: {{storage: 1Gi}}}}\n---\n"
    )
}

fn definition(group: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{plural: things, singular: thing, kind: Thing}}\n  versions:\n  - \
         name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n---\n"
    )
}

fn house(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n")
}

/// The installation that an object names as its owner.
fn owner(object: &Value) -> String {
    let annotation = &object["metadata"]["annotations"]["kubectl-addons.dev/installation"];
    annotation.as_str().unwrap_or_default().to_owned()
}

/// trust 11.
#[tokio::test]
async fn t11_what_an_installation_that_is_gone_left_behind_is_taken_over() -> Result<()> {
    let stage = Stage::new("heirs").await?;
    let namespace = &stage.namespace;
    let group = format!("{namespace}.example.test");
    let house_name = format!("{namespace}-house");
    let set = [
        claim("data"),
        definition(&group),
        house(&house_name),
        config_map("settings", "1"),
    ]
    .concat();
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set)])?;
    let install = |name: &str| {
        format!("install set --name {name} --channel {index} --conflicts fail --wait=false --yes")
    };
    stage.run(&install("one")).await?.done()?;
    let before = stage.must("persistentvolumeclaim", "data").await?;
    stage.run("uninstall one --yes").await?.done()?;

    let kept = [
        ("persistentvolumeclaim", "data".to_owned()),
        ("crd", format!("things.{group}")),
        ("namespace", house_name),
    ];
    let preview = stage
        .run(&format!("{} --dry-run=server", install("two")))
        .await?
        .done()?;
    let said = stage.run(&install("two")).await?.done()?;
    for (kind, name) in &kept {
        let live = stage.must(kind, name).await?;
        ensure!(
            owner(&live) == format!("{namespace}/two"),
            "{kind} {name}: {live:#}"
        );
        let line =
            format!("{name} is taken over from add-on installation {namespace}/one, which is gone");
        for said in [&preview, &said] {
            ensure!(said.stderr.contains(&line), "{line}: {}", said.stderr);
        }
    }
    let after = stage.must("persistentvolumeclaim", "data").await?;
    ensure!(
        before["metadata"]["uid"] == after["metadata"]["uid"],
        "it was created again"
    );
    let args = ["get", "persistentvolumeclaim", "data", "-o", "json"];
    let shown = stage
        .kubectl(&[&args[..], &["--show-managed-fields"]].concat())
        .await?;
    let managers = shown
        .stdout
        .matches("\"manager\": \"kubectl-addons.")
        .count();
    ensure!(managers == 1, "{}", shown.stdout);
    let again = stage.run("upgrade two --wait=false --yes").await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);

    // It has become theirs: they delete it where they are told to.
    let line = "uninstall two --delete-volumes --delete-crds --delete-namespaces --yes";
    stage.run(line).await?.done()?;
    for (kind, name) in &kept {
        let live = stage.get(kind, name).await?;
        let is_going = live.is_none_or(|live| live["metadata"]["deletionTimestamp"].is_string());
        ensure!(is_going, "{kind} {name} stays");
    }
    Ok(())
}

/// trust 11.
#[tokio::test]
async fn t11_what_another_installation_retains_moves() -> Result<()> {
    let stage = Stage::new("movers").await?;
    let namespace = &stage.namespace;
    let with = [claim("data"), config_map("one", "1")].concat();
    let first = stage.index("first.yaml", &[("one", "1.0.0", &with)])?;
    let second = stage.index(
        "second.yaml",
        &[
            ("one", "2.0.0", &config_map("one", "2")),
            (
                "two",
                "1.0.0",
                &[claim("data"), config_map("two", "1")].concat(),
            ),
        ],
    )?;
    stage
        .run(&format!("install one --channel {first} --wait=false --yes"))
        .await?
        .done()?;
    // As long as it is wanted, it is refused.
    let install = format!("install two --channel {second} --wait=false --yes");
    let refused = stage.run(&install).await?.ended(4)?;
    ensure!(refused.stderr.contains("belongs to"), "{}", refused.stderr);
    stage
        .run(&format!("upgrade one --channel {second} --yes"))
        .await?
        .done()?;

    let said = stage.run(&install).await?.done()?;
    let line = format!(
        "PersistentVolumeClaim data moves from the installation {namespace}/one, which only retains it"
    );
    ensure!(said.stderr.contains(&line), "{}", said.stderr);
    let live = stage.must("persistentvolumeclaim", "data").await?;
    ensure!(owner(&live) == format!("{namespace}/two"), "{live:#}");
    // The former owner has nothing to do with it any more.
    stage
        .run("uninstall one --delete-volumes --yes")
        .await?
        .done()?;
    let live = stage.must("persistentvolumeclaim", "data").await?;
    ensure!(live["metadata"]["deletionTimestamp"].is_null(), "{live:#}");
    Ok(())
}

/// trust 21.
#[tokio::test]
async fn t21_a_retained_claim_does_not_make_an_addon_degraded() -> Result<()> {
    let stage = Stage::new("unclaimed").await?;
    let with = [claim("data"), config_map("settings", "1")].concat();
    let first = stage.index("first.yaml", &[("set", "1.0.0", &with)])?;
    let second = stage.index(
        "second.yaml",
        &[("set", "2.0.0", &config_map("settings", "2"))],
    )?;
    // No volume is ever bound to it.
    stage
        .run(&format!("install set --channel {first} --wait=false --yes"))
        .await?
        .done()?;
    stage
        .run(&format!("upgrade set --channel {second} --yes"))
        .await?
        .done()?;
    ensure!(
        stage.has("persistentvolumeclaim", "data").await?,
        "the claim was deleted"
    );
    let healthy = async |when: &str| -> Result<()> {
        for line in ["list", "status set"] {
            let said = stage.run(line).await?.done()?;
            ensure!(
                !said.stdout.contains("Degraded"),
                "{when}: {line}: {}",
                said.stdout
            );
        }
        Ok(())
    };
    healthy("retained").await?;
    let args = ["delete", "persistentvolumeclaim", "data", "--wait=false"];
    stage.kubectl(&args).await?;
    healthy("deleted").await
}

/// A ConfigMap that is deleted with another one.
fn dependent(name: &str, owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]},
    ]}})
}

/// trust 21.
#[tokio::test]
async fn t21_a_created_namespace_goes_when_what_we_made_has_gone() -> Result<()> {
    let stage = Stage::new("created").await?;
    let target = format!("{}-target", stage.namespace);
    let set = [config_map("settings", "1"), deployment("web", 20, None)].concat();
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set)])?;
    let text = std::fs::read_to_string(&index)?;
    let place = format!("namespace: {}\n", stage.namespace);
    std::fs::write(
        &index,
        text.replace(&place, &format!("namespace: {target}\n")),
    )?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    // What controllers made of it goes step by step, after the uninstallation has looked for the first time.
    let args = ["get", "configmap", "settings", "-n", &target, "-o", "json"];
    let found = stage.plugin.kubectl(&args).await?.done()?;
    let mut owner: Value = serde_json::from_str(&found.stdout)?;
    for number in 0..4 {
        let object = dependent(&format!("dependent-{number}"), &owner).to_string();
        let args = ["create", "-n", &target, "-o", "json", "-f", "-"];
        let created = stage.plugin.kubectl_with_input(&args, &object).await?;
        owner = serde_json::from_str(&created.done()?.stdout)?;
    }
    let said = stage.run("uninstall set --yes").await?.done()?;
    ensure!(!said.stderr.contains("stays"), "{}", said.stderr);
    let live = stage.get("namespace", &target).await?;
    let is_going = live.is_none_or(|live| live["metadata"]["deletionTimestamp"].is_string());
    ensure!(is_going, "the namespace stays: {}", said.stderr);
    Ok(())
}
