//! A refusal that is known stops the command before the first write: every write is sent as a dry run while the plan is made, and what is
//! refused is said by each command that shows or executes the plan (semantics 12).

use addons_tests::control_plane::Own;
use addons_tests::denial::{When, allow, deny};
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::ways_out::{follow, printed};

/// Node ports, cluster IPs and the default PriorityClass are those of a whole cluster.
static CLUSTER: Own = Own::new();

/// Installs the first version of `set`; the index of the second.
async fn installed(stage: &Stage, one: &str, two: &str) -> Result<String> {
    let index = stage.index("1.yaml", &[("set", "1.0.0", one)])?;
    let install = format!("install set --channel {index} --yes --wait=false");
    stage.run(&install).await?.done()?;
    stage.index("2.yaml", &[("set", "2.0.0", two)])
}

/// A command ends with this code, says these words, and writes nothing.
async fn refused(stage: &Stage, line: &str, code: i32, words: &[&str]) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    let said = stage.run(line).await?.ended(code)?;
    let told = format!("{}{}", said.stdout, said.stderr);
    for words in words {
        ensure!(told.contains(words), "{line}: no {words:?}: {told}");
    }
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{line}: {writes} writes: {told}");
    Ok(())
}

/// Every command that shows or executes the upgrade to the second version says the same, and nothing is written.
async fn refused_by_all(stage: &Stage, index: &str, code: i32, words: &[&str]) -> Result<()> {
    let upgrade = format!("upgrade set -n {} --channel {index}", stage.namespace);
    for line in [
        format!("{upgrade} --dry-run"),
        format!("{upgrade} --dry-run=server"),
        upgrade.replace("upgrade", "plan"),
        format!("{upgrade} --yes --wait=false"),
    ] {
        refused(stage, &line, code, words).await?;
    }
    refused(stage, &upgrade.replace("upgrade", "diff"), 1, words).await?;
    is_untouched(stage).await
}

/// The record is that of the first version, and of no other operation.
async fn is_untouched(stage: &Stage) -> Result<()> {
    let status = stage.record("set").await?["status"].clone();
    ensure!(status["installed"]["version"] == "1.0.0", "{status}");
    ensure!(status["operation"].is_null(), "{status}");
    let history = status["history"].as_array().map_or(0, Vec::len);
    ensure!(history == 1, "{status}");
    Ok(())
}

async fn value(stage: &Stage, name: &str) -> Result<Value> {
    Ok(stage.must("configmap", name).await?["data"]["key"].clone())
}

#[tokio::test]
async fn n13_an_invalid_change_stops_everything_beside_it() -> Result<()> {
    let stage = Stage::new("refused-change").await?;
    let web = deployment("web", 1, None);
    let one = config_map("settings", "1") + &web;
    let invalid = web.replace("replicas: 1", "replicas: -1");
    let two = config_map("settings", "2") + &invalid + &config_map("added", "2");
    let index = installed(&stage, &one, &two).await?;
    let upgrade = format!("upgrade set -n {} --channel {index}", stage.namespace);
    let words = [
        "Deployment web: spec.replicas: Invalid value: -1",
        "the server refuses 1 object of set; nothing was changed",
    ];
    refused(&stage, &format!("{upgrade} --yes"), 1, &words).await?;
    let words = ["Deployment web", "spec.replicas: Invalid value: -1"];
    refused_by_all(&stage, &index, 1, &words).await?;
    ensure!(value(&stage, "settings").await? == "1");
    ensure!(!stage.has("configmap", "added").await?);
    Ok(())
}

#[tokio::test]
async fn n13_a_refused_creation_stops_the_rest() -> Result<()> {
    let stage = Stage::new("refused-creation").await?;
    let two = [
        config_map("settings", "2"),
        config_map("denied-one", "2"),
        config_map("denied-two", "2"),
    ];
    let index = installed(&stage, &config_map("settings", "1"), &two.concat()).await?;
    deny(
        &stage,
        When::Always,
        &["CREATE"],
        "denied",
        "not in this namespace",
    )
    .await?;
    // All of them, with the policy's words.
    let words = ["denied-one", "denied-two", "not in this namespace"];
    refused_by_all(&stage, &index, 6, &words).await?;
    ensure!(value(&stage, "settings").await? == "1");
    // A first installation leaves nothing, not even a record.
    let fresh = [config_map("fresh", "1"), config_map("denied-three", "1")].concat();
    let fresh = stage.index("fresh.yaml", &[("fresh", "1.0.0", &fresh)])?;
    let line = format!("install fresh --channel {fresh} --yes");
    refused(&stage, &line, 6, &["denied-three", "not in this namespace"]).await?;
    ensure!(!stage.has("addoninstallation", "fresh").await?);
    allow(&stage).await?;
    let upgrade = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    stage.run(&upgrade).await?.done()?;
    ensure!(value(&stage, "settings").await? == "2");
    Ok(())
}

/// Fields of a custom resource that the schema of its definition does not have, and a field of another type: the server answers 500.
#[tokio::test]
async fn n13_what_does_not_fit_a_schema_is_refused_in_our_words() -> Result<()> {
    let stage = Stage::new("refused-schema").await?;
    let wrong =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\ndata: {key: {a: b}}\n---\n";
    let two = config_map("settings", "2") + wrong;
    let index = installed(&stage, &config_map("settings", "1"), &two).await?;
    let upgrade = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    refused(
        &stage,
        &upgrade,
        1,
        &["ConfigMap wrong: data.key: expected string"],
    )
    .await?;
    ensure!(value(&stage, "settings").await? == "1");
    Ok(())
}

fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

/// A definition with these versions: name, whether it is stored, the type of `spec.size`.
fn definition(stage: &Stage, conversion: &Value, versions: &[(&str, bool, &str)]) -> String {
    let group = group(stage);
    let versions = versions.iter().map(|(name, storage, size)| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": size}}}}}}})
    });
    let versions: Vec<Value> = versions.collect();
    let mut object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("disks.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "disks", "singular": "disk", "kind": "Disk"},
            "versions": versions},
    });
    if !conversion.is_null() {
        object["spec"]["conversion"] = conversion.clone();
    }
    format!("{object}\n---\n")
}

#[tokio::test]
async fn n13_a_refused_definition_stops_the_rest() -> Result<()> {
    let stage = Stage::new("refused-definition").await?;
    let first = definition(&stage, &Value::Null, &[("v1", true, "string")]);
    // No such type.
    let second = definition(&stage, &Value::Null, &[("v1", true, "strings")]);
    let one = config_map("settings", "1") + &first;
    let two = config_map("settings", "2") + &second;
    let index = installed(&stage, &one, &two).await?;
    let words = ["disks.", "openAPIV3Schema"];
    refused_by_all(&stage, &index, 1, &words).await?;
    ensure!(value(&stage, "settings").await? == "1");
    // A new one, too.
    let other = second
        .replace("disks", "plates")
        .replace("disk", "plate")
        .replace("Disk", "Plate");
    let fresh = stage.index("fresh.yaml", &[("fresh", "1.0.0", &other)])?;
    let line = format!("install fresh --channel {fresh} --yes");
    refused(&stage, &line, 1, &["plates.", "openAPIV3Schema"]).await?;
    ensure!(!stage.has("addoninstallation", "fresh").await?);
    Ok(())
}

/// The definition that is applied last counts, not the one in between.
#[tokio::test]
async fn n13_a_migration_whose_last_definition_is_refused_does_not_begin() -> Result<()> {
    let stage = Stage::new("refused-migration").await?;
    let client =
        json!({"service": {"name": "c", "namespace": stage.namespace, "path": "/c", "port": 9501}});
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client});
    let on = json!({"strategy": "Webhook", "webhook": webhook});
    let off = json!({"strategy": "None", "webhook": webhook});
    let both = [("v1beta1", true, "string"), ("v1", false, "string")];
    let one = config_map("settings", "1") + &definition(&stage, &on, &both);
    let last = [("v1", true, "string")];
    let two = config_map("settings", "2") + &definition(&stage, &off, &last);
    let index = installed(&stage, &one, &two).await?;
    let upgrade = format!(
        "upgrade set -n {} --channel {index} --migrate-stored-versions",
        stage.namespace
    );
    let words = ["spec.conversion", "Forbidden"];
    for line in [
        format!("{upgrade} --dry-run=server"),
        format!("{upgrade} --yes --wait=false"),
    ] {
        refused(&stage, &line, 1, &words).await?;
    }
    is_untouched(&stage).await?;
    let crd = format!("disks.{}", group(&stage));
    let live = stage.must("crd", &crd).await?;
    ensure!(
        live["metadata"]["annotations"]["kubectl-addons.dev/migrating-stored-versions"].is_null(),
        "{live:#}"
    );
    // What only the stored versions keep from being applied is no refusal.
    let right =
        config_map("settings", "2") + &definition(&stage, &json!({"strategy": "None"}), &last);
    stage.index("2.yaml", &[("set", "2.0.0", &right)])?;
    stage
        .run(&format!("{upgrade} --yes --wait=false"))
        .await?
        .done()?;
    let live = stage.must("crd", &crd).await?;
    ensure!(
        live["status"]["storedVersions"] == json!(["v1"]),
        "{live:#}"
    );
    Ok(())
}

#[tokio::test]
async fn n13_a_denied_deletion_stops_the_upgrade() -> Result<()> {
    let stage = Stage::new("refused-deletion").await?;
    let zones = config_map("zone-a", "1") + &config_map("zone-b", "1");
    let one = config_map("all", "a b") + &zones;
    let index = installed(&stage, &one, &config_map("all", "flat")).await?;
    deny(
        &stage,
        When::Always,
        &["DELETE"],
        "zone-",
        "zones are deleted by a person only",
    )
    .await?;
    let words = [
        "ConfigMap zone-a",
        "ConfigMap zone-b",
        "cannot be deleted",
        "zones are deleted by a person only",
    ];
    refused_by_all(&stage, &index, 6, &words).await?;
    ensure!(
        value(&stage, "all").await? == "a b",
        "half of it was applied"
    );
    allow(&stage).await?;
    let upgrade = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    stage.run(&upgrade).await?.done()?;
    for zone in ["zone-a", "zone-b"] {
        ensure!(!stage.has("configmap", zone).await?, "{zone} is left");
    }
    Ok(())
}

/// What a plan cannot know fails as before, and the way on names the version that failed.
#[tokio::test]
async fn n13_what_fails_later_is_continued_in_the_same_version() -> Result<()> {
    let stage = Stage::new("refused-later").await?;
    let one = config_map("all", "a b") + &config_map("zone-a", "1");
    let index = installed(&stage, &one, &config_map("all", "flat")).await?;
    deny(&stage, When::Executed, &["DELETE"], "zone-", "zones stay").await?;
    let upgrade = format!("upgrade set -n {} --channel {index}", stage.namespace);
    stage
        .run(&format!("{upgrade} --dry-run=server"))
        .await?
        .done()?;
    let said = stage
        .run(&format!("{upgrade} --yes"))
        .await?
        .ended(6)?
        .stderr;
    ensure!(said.contains("zones stay"), "{said}");
    let status = stage
        .run(&format!("status set -n {}", stage.namespace))
        .await?
        .stdout;
    let way_on = printed(&status, "to continue:")?;
    let record = stage.record("set").await?;
    ensure!(
        record["status"]["inventory"].to_string().contains("zone-a"),
        "{record}"
    );
    allow(&stage).await?;
    follow(&stage, &way_on).await?;
    let installed = stage.record("set").await?["status"]["installed"]["version"].clone();
    ensure!(installed == "2.0.0", "{installed} after {way_on}");
    ensure!(!stage.has("configmap", "zone-a").await?, "zone-a is left");
    Ok(())
}

/// What the command itself changes may lift a refusal: it is tried.
#[tokio::test]
async fn n13_what_the_command_itself_makes_right_is_not_refused() -> Result<()> {
    let stage = Stage::new("refused-lifted").await?;
    let name = &stage.namespace;
    let quota = |count: u32| {
        format!(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: maps}}\nspec: {{hard: {{count/secrets: '{count}'}}}}\n---\n"
        )
    };
    let secret = |key: u32| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s-{key}}}\nstringData: {{a: b}}\n---\n"
        )
    };
    let counts = async |used: &str| {
        until("the quota is counted", async || {
            let found = stage.must("resourcequota", "maps").await?;
            let is_counted = found["status"]["used"]["count/secrets"] == used;
            Ok(is_counted
                .then_some(())
                .ok_or_else(|| found["status"].to_string()))
        })
        .await
    };
    let one = quota(1) + &secret(1);
    let index = installed(&stage, &quota(1), &one).await?;
    counts("0").await?;
    // From here on, the API server counts what is created.
    let upgrade = format!("upgrade set -n {name} --channel {index} --yes --wait=false");
    stage.run(&upgrade).await?.done()?;
    counts("1").await?;
    let three = quota(9) + &secret(1) + &secret(2);
    let index = stage.index("3.yaml", &[("set", "3.0.0", &three)])?;
    let upgrade = format!("upgrade set -n {name} --channel {index}");
    let shown = stage
        .run(&format!("{upgrade} --dry-run=server"))
        .await?
        .done()?;
    ensure!(
        shown.stderr.contains("not checked by the server: 1 object")
            && shown.stderr.contains("ResourceQuota maps"),
        "{}",
        shown.stderr
    );
    // The quota may still be counted by its controller: a later run ends it in any case.
    until("the upgrade", async || {
        let said = stage.run(&format!("{upgrade} --yes")).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    ensure!(stage.has("secret", "s-2").await?);
    Ok(())
}

#[tokio::test]
async fn n13_in_a_new_namespace_nothing_is_asked() -> Result<()> {
    let stage = Stage::new("refused-fresh").await?;
    let target = format!("{}-target", stage.namespace);
    let objects: String = (0..9).map(|i| config_map(&format!("c-{i}"), "1")).collect();
    let index = stage.index("index.yaml", &[("set", "1.0.0", &objects)])?;
    stage.run("init").await?.done()?;
    let dry_runs = async |line: &str| -> Result<(usize, usize)> {
        let mark = stage.cluster.audit().mark()?;
        stage.run(line).await?.done()?;
        let requests = stage.requests(mark)?;
        let patches = requests.of("kubectl-addons");
        let patches = patches.filter(|one| one.verb == "patch" || one.verb == "delete");
        let (dry, sent): (Vec<_>, Vec<_>) = patches.partition(|one| one.uri.contains("dryRun"));
        Ok((dry.len(), sent.len()))
    };
    let install = format!("install set --channel {index} --target-namespace {target}");
    let shown = stage
        .run(&format!("{install} --dry-run=server"))
        .await?
        .done()?;
    let told =
        format!("not checked by the server: 9 objects, namespace {target} does not exist yet");
    ensure!(shown.stderr.contains(&told), "{}", shown.stderr);
    let install = format!("{install} --yes");
    ensure!(dry_runs(&install).await? == (0, 9));
    ensure!(dry_runs(&install).await? == (0, 0), "nothing changed");
    // In one that exists, each object is asked about once: created, changed or deleted.
    let other: String = (0..5)
        .map(|i| config_map(&format!("c-{i}"), if i == 0 { "2" } else { "1" }))
        .collect();
    let other = other + &config_map("new", "1");
    let index = stage.index("2.yaml", &[("set", "2.0.0", &other)])?;
    let upgrade = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    ensure!(dry_runs(&upgrade).await? == (6, 6));
    Ok(())
}

/// The loop takes the same plan: a refused one is a condition, writes nothing, and is done once nothing is refused.
#[tokio::test]
async fn n13_the_loop_does_not_begin_what_is_refused() -> Result<()> {
    let stage = Stage::new("refused-loop").await?;
    let index = stage.index(
        "index.yaml",
        &[("set", "1.0.0", &config_map("settings", "1"))],
    )?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    deny(
        &stage,
        When::Always,
        &["CREATE"],
        "denied",
        "not in this namespace",
    )
    .await?;
    let two = config_map("settings", "2") + &config_map("denied", "2");
    stage.index("index.yaml", &[("set", "1.1.0", &two)])?;
    let said = stage.run("reconcile set").await?.ended(6)?;
    ensure!(
        said.stderr.contains("not in this namespace"),
        "{}",
        said.stderr
    );
    let stalled = stage.condition("set", "Stalled").await?;
    ensure!(stalled["reason"] == "Denied", "{stalled}");
    let message = stalled["message"].as_str().unwrap_or_default();
    ensure!(message.contains("ConfigMap denied"), "{message}");
    ensure!(
        value(&stage, "settings").await? == "1",
        "half of it was applied"
    );
    // The condition is written once.
    let mark = stage.cluster.audit().mark()?;
    stage.run("reconcile set").await?.ended(6)?;
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{writes} writes");
    allow(&stage).await?;
    stage.run("reconcile set").await?.done()?;
    ensure!(value(&stage, "settings").await? == "2");
    let record = stage.record("set").await?;
    let conditions = record["status"]["conditions"]
        .as_array()
        .context("no conditions")?;
    let stalled = conditions.iter().find(|one| one["type"] == "Stalled");
    ensure!(
        stalled.is_none_or(|one| one["status"] == "False"),
        "{record}"
    );
    Ok(())
}

/// Fields of others under `conflicts: Fail`.
#[tokio::test]
async fn n13_a_conflict_that_fails_stops_the_rest() -> Result<()> {
    let stage = Stage::new("refused-conflict").await?;
    let maps = |value: &str| config_map("settings", value) + &config_map("edited", value);
    let index = installed(&stage, &maps("1"), &maps("2")).await?;
    stage
        .patch("configmap", "edited", &json!({"data": {"key": "theirs"}}))
        .await?;
    let upgrade = format!(
        "upgrade set -n {} --channel {index} --conflicts fail --yes",
        stage.namespace
    );
    let words = [
        "ConfigMap edited",
        "data.key",
        "kubectl-patch",
        "\"theirs\"",
        "--conflicts take",
    ];
    refused(&stage, &upgrade, 4, &words).await?;
    ensure!(
        value(&stage, "settings").await? == "1",
        "half of it was applied"
    );
    Ok(())
}

fn service(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: gate}}, {spec}}}\n---\n"
    )
}

fn exposed(name: &str, port: u32) -> String {
    let spec = format!("type: NodePort, ports: [{{name: http, port: 80, nodePort: {port}}}]");
    service(name, &spec)
}

fn class(name: &str, value: u32, is_default: bool) -> String {
    format!(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\nglobalDefault: {is_default}\n---\n"
    )
}

#[tokio::test]
async fn n13_what_a_pruned_object_holds_is_freed_first_on_demand() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "refused-held").await?;
    let name = stage.namespace.clone();
    let (old, new) = (format!("{name}-old"), format!("{name}-new"));
    let one =
        config_map("settings", "1") + &exposed("gate-external", 31480) + &class(&old, 1000, true);
    let two = config_map("settings", "2") + &exposed("gate-ext", 31480) + &class(&new, 2000, true);
    let index = installed(&stage, &one, &two).await?;
    let flags = [
        "--recreate Service/gate-external".to_owned(),
        format!("--recreate PriorityClass/{old}"),
    ];
    let words = [
        "Service gate-ext",
        "provided port is already allocated",
        "Service gate-external",
        &old,
    ];
    let upgrade = format!("upgrade set -n {name} --channel {index}");
    for line in [
        format!("{upgrade} --dry-run"),
        format!("{upgrade} --dry-run=server"),
        format!("{upgrade} --yes"),
        format!("{upgrade} --yes {}", flags[0]),
    ] {
        let words = if line.ends_with("external") {
            &words[3..]
        } else {
            &words[..]
        };
        refused(&stage, &line, 4, words).await?;
    }
    let said = stage
        .run(&format!("{upgrade} --yes"))
        .await?
        .ended(4)?
        .stderr;
    for flag in &flags {
        ensure!(said.contains(flag), "no {flag}: {said}");
    }
    refused(&stage, &upgrade.replace("upgrade", "plan"), 1, &words).await?;
    is_untouched(&stage).await?;
    ensure!(
        value(&stage, "settings").await? == "1",
        "half of it was applied"
    );

    let accepted = format!("{upgrade} {} {}", flags[0], flags[1]);
    let shown = stage
        .run(&format!("{accepted} --dry-run=server"))
        .await?
        .done()?
        .stderr;
    let order =
        format!("first     {name}/Service gate-external is deleted before {name}/Service gate-ext");
    ensure!(
        shown.contains(&order) && !shown.contains("to accept"),
        "{shown}"
    );
    let said = stage
        .run(&format!("{accepted} --yes"))
        .await?
        .done()?
        .stderr;
    ensure!(said.contains("2 created, 1 changed, 2 pruned"), "{said}");
    let found = stage.must("service", "gate-ext").await?;
    ensure!(found["spec"]["ports"][0]["nodePort"] == 31480, "{found}");
    ensure!(stage.must("priorityclass", &new).await?["globalDefault"] == true);
    ensure!(!stage.has("service", "gate-external").await?);
    ensure!(!stage.has("priorityclass", &old).await?);
    let again = stage.run(&format!("{upgrade} --yes")).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);

    // One that stays and is the default no longer comes first by itself.
    let three = exposed("gate-ext", 31480) + &class(&new, 2000, false) + &class(&old, 1000, true);
    let index = stage.index("3.yaml", &[("set", "3.0.0", &three)])?;
    let upgrade = format!("upgrade set -n {name} --channel {index} --yes");
    stage.run(&upgrade).await?.done()?;
    for (name, is_default) in [(&old, true), (&new, false)] {
        let found = stage.must("priorityclass", name).await?;
        ensure!(
            found["globalDefault"].as_bool().unwrap_or_default() == is_default,
            "{found}"
        );
    }
    stage
        .run(&format!("uninstall set -n {name} --yes"))
        .await?
        .done()?;
    Ok(())
}

/// On a terminal it asks.
#[tokio::test]
async fn n13_what_a_pruned_object_holds_is_asked_about_on_a_terminal() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "refused-asked").await?;
    let index = installed(&stage, &exposed("old", 31490), &exposed("new", 31490)).await?;
    let line = format!("upgrade set -n {} --channel {index}", stage.namespace);
    let args: Vec<&str> = line.split_whitespace().collect();
    let told = stage.plugin.run_on_terminal(&args, "n\n").await?.stdout;
    for words in [
        "Service old is deleted before",
        "is already allocated",
        "[y/N]",
    ] {
        ensure!(told.contains(words), "no {words:?}: {told}");
    }
    ensure!(stage.has("service", "old").await?);
    stage
        .plugin
        .run_on_terminal(&args, "y\ny\n")
        .await?
        .done()?;
    ensure!(stage.has("service", "new").await? && !stage.has("service", "old").await?);
    Ok(())
}

/// What an object gives up that the same command applies comes first by itself.
#[tokio::test]
async fn n13_what_an_applied_object_gives_up_is_given_up_first() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "refused-given").await?;
    let name = stage.namespace.clone();
    let two = exposed("b", 31501) + &exposed("a", 31500);
    let index = installed(&stage, &exposed("b", 31500), &two).await?;
    let upgrade = format!("upgrade set -n {name} --channel");
    let shown = format!("{upgrade} {index} --dry-run=server");
    let shown = stage.run(&shown).await?.done()?.stderr;
    ensure!(
        shown.contains("Service b gives up what it needs"),
        "{shown}"
    );
    stage
        .run(&format!("{upgrade} {index} --yes"))
        .await?
        .done()?;
    let port = async |name: &str| -> Result<Value> {
        Ok(stage.must("service", name).await?["spec"]["ports"][0]["nodePort"].clone())
    };
    ensure!(port("a").await? == 31500 && port("b").await? == 31501);
    // Neither can be first.
    let swapped = exposed("b", 31500) + &exposed("a", 31501);
    let swapped = stage.index("3.yaml", &[("set", "3.0.0", &swapped)])?;
    let line = format!("{upgrade} {swapped} --yes");
    refused(&stage, &line, 1, &["the other way round"]).await
}

/// A dry run does not find out whether a cluster IP is taken: it is looked up, whoever has it.
#[tokio::test]
async fn n13_a_cluster_ip_that_is_taken_is_known() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "refused-address").await?;
    let dns = |name: &str, address: &str| {
        service(
            name,
            &format!("clusterIP: {address}, ports: [{{port: 53, protocol: UDP}}]"),
        )
    };
    let one = config_map("settings", "1") + &dns("dns-old", "100.64.7.10");
    let two = config_map("settings", "2") + &dns("dns-new", "100.64.7.10");
    let index = installed(&stage, &one, &two).await?;
    let upgrade = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    let words = [
        "Service dns-new is applied: spec.clusterIP",
        "Service dns-old",
        "--recreate Service/dns-old",
    ];
    refused(&stage, &upgrade, 4, &words).await?;
    ensure!(
        value(&stage, "settings").await? == "1",
        "half of it was applied"
    );
    stage
        .run(&format!("{upgrade} --recreate Service/dns-old"))
        .await?
        .done()?;
    let found = stage.must("service", "dns-new").await?;
    ensure!(found["spec"]["clusterIP"] == "100.64.7.10", "{found}");
    // Someone else's.
    let fresh = config_map("fresh", "1") + &dns("dns-fresh", "100.64.7.10");
    let fresh = stage.index("fresh.yaml", &[("fresh", "1.0.0", &fresh)])?;
    let line = format!("install fresh --channel {fresh} --yes");
    refused(&stage, &line, 1, &["Service dns-new has 100.64.7.10"]).await
}
