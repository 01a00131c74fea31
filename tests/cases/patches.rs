//! Patches of rendered objects (semantics 12.23), and their page.

use std::collections::BTreeMap;

use addons_tests::control_plane::{Own, binaries};
use addons_tests::page::blocks;
use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Context as _, Result, ensure};
use common::manifest::key::Gvk;
use common::patch::lists::{ListMerge, find_merge};
use serde_json::{Value, json};

static CLUSTER: Own = Own::new();

const PAGE: &str = include_str!("../../kubectl-addons/docs/patches.md");
const TOLERATIONS: &str = "/spec/template/spec/tolerations";

/// A patch of a Deployment, as a file that `--patch` reads.
fn patch(stage: &Stage, file: &str, name: &str, spec: &str) -> Result<()> {
    let text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec: {{template: {{spec: {spec}}}}}\n"
    );
    stage.write(file, &text).map(drop)
}

/// The list of tolerations of the Deployment.
async fn tolerations(stage: &Stage, name: &str) -> Result<Value> {
    let found = stage.must("deployment", name).await?;
    Ok(found.pointer(TOLERATIONS).cloned().unwrap_or_default())
}

/// The commands of the page, with the files that it shows, do what it says.
#[tokio::test]
async fn the_commands_of_the_page_patch_an_add_on() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "patches-page").await?;
    stage.index(
        "index.yaml",
        &[("web", "1.0.0", &deployment("web", 1, None))],
    )?;
    let mut commands = Vec::new();
    for (_, text) in blocks(PAGE) {
        match text
            .strip_prefix("# ")
            .and_then(|rest| rest.split_once('\n'))
        {
            Some((file, _)) => drop(stage.write(file, text)?),
            None => {
                let lines = text.lines();
                commands.extend(lines.filter_map(|line| line.strip_prefix("kubectl addons ")));
            }
        }
    }
    let last = "upgrade web --patch \"\"";
    ensure!(commands.last() == Some(&last), "{commands:?}");
    for line in commands {
        let args = line.split_whitespace();
        let args: Vec<&str> = args.map(|word| word.trim_matches('"')).collect();
        if line == last {
            let found = tolerations(&stage, "web").await?;
            ensure!(
                found == json!([{"key": "edge", "operator": "Exists"}]),
                "{found}"
            );
        }
        let said = stage.plugin.run_on_terminal(&args, "y\n").await?;
        // `diff` ends with 1 where something differs.
        ensure!(
            said.code <= i32::from(args[0] == "diff"),
            "{line}: {said:?}"
        );
        if line == "show web --patches" {
            let row = "spec.patches[0]   Deployment web   spec.template.spec.tolerations";
            ensure!(said.stdout.contains(row), "{}", said.stdout);
        }
    }
    ensure!(tolerations(&stage, "web").await? == Value::Null);
    Ok(())
}

/// From the install of a chart to a rollback, in a plan file and in a set.
#[tokio::test]
async fn a_chart_is_patched_until_its_patch_is_taken_back() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "patches-chart").await?;
    let chart = stage.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    )?;
    stage.write("chart/templates/web.yaml", &deployment("web", 1, None))?;
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {word: from-the-chart}\n";
    stage.write("chart/templates/key.yaml", secret)?;
    let folder = chart.parent().context("no folder")?.display().to_string();
    let helm = format!("--helm-bin {}", binaries::helm()?.display());
    let install = format!(
        "install {folder} {helm} --target-namespace {}",
        stage.namespace
    );

    // A patch that matches nothing names what it may mean, and nothing is written.
    patch(&stage, "wrong.yaml", "wbe", "{}")?;
    let said = stage
        .run(&format!("{install} --patch wrong.yaml --yes"))
        .await?
        .ended(1)?;
    let told = "spec.patches[0].patch: no object matches group=apps, version=v1, kind=Deployment, name=wbe; nearest: Deployment web";
    ensure!(said.stderr.contains(told), "{said:?}");
    ensure!(!stage.has("deployment", "web").await?);

    patch(
        &stage,
        "one.yaml",
        "web",
        "{tolerations: [{key: one, operator: Exists}]}",
    )?;
    stage
        .run(&format!("{install} --patch one.yaml --yes"))
        .await?
        .done()?;
    ensure!(tolerations(&stage, "web").await?[0]["key"] == "one");
    // It stays without the flag.
    let said = stage
        .run(&format!("upgrade web {helm} --yes"))
        .await?
        .done()?;
    ensure!(said.stderr.contains("nothing to do"), "{said:?}");

    // `diff` shows the field, and a plan file holds what `apply` needs.
    patch(
        &stage,
        "two.yaml",
        "web",
        "{tolerations: [{key: two, operator: Exists}]}",
    )?;
    let said = stage
        .run(&format!("diff web {helm} --patch two.yaml"))
        .await?
        .ended(1)?;
    ensure!(
        said.stdout.contains("tolerations") && said.stdout.contains("two"),
        "{said:?}"
    );
    stage
        .run(&format!("plan web {helm} --patch two.yaml -o plan.json"))
        .await?
        .done()?;
    stage
        .run(&format!("apply plan.json {helm} --yes"))
        .await?
        .done()?;
    ensure!(tolerations(&stage, "web").await?[0]["key"] == "two");
    let said = stage.run("history web").await?.done()?.stdout;
    ensure!(said.contains("patches"), "{said}");

    // Content of a Secret is masked, with a warning: the record shows it.
    let word = "correct-horse-battery";
    stage.write(
        "secret.yaml",
        &format!(
            "{}---\n{}",
            secret.replace("from-the-chart", word),
            "patches: []\n"
        ),
    )?;
    for line in [
        format!("diff web {helm} --patch secret.yaml"),
        format!("upgrade web {helm} --patch secret.yaml --dry-run"),
        format!("upgrade web {helm} --patch secret.yaml --yes"),
        "show web --patches".to_owned(),
        format!("show web --patches {helm} -o json"),
    ] {
        let said = stage.run(&line).await?;
        let all = said.stdout + &said.stderr;
        ensure!(!all.contains(word), "{line}: {all}");
        if line.starts_with("upgrade") {
            ensure!(all.contains("sets content of Secret key"), "{line}: {all}");
        }
    }
    let key = stage.must("secret", "key").await?;
    ensure!(
        key["data"]["word"] == "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5",
        "{key}"
    );
    ensure!(
        tolerations(&stage, "web").await? == Value::Null,
        "the former patch stays"
    );

    // A rollback takes the patches of the revision back.
    stage
        .run(&format!("rollback web {helm} --yes"))
        .await?
        .done()?;
    ensure!(tolerations(&stage, "web").await?[0]["key"] == "two");
    let record = stage.record("web").await?;
    ensure!(
        record["spec"]["patches"]
            .as_array()
            .is_some_and(|it| it.len() == 1),
        "{record:#}"
    );

    // What the record says counts for the loop as well.
    let patches = json!([{"target": {"kind": "Deployment"}, "patch": format!("- {{op: remove, path: {TOLERATIONS}}}\n")}]);
    let rendered = json!({"spec": {"patches": patches}});
    stage.patch("addoninstallation", "web", &rendered).await?;
    let said = stage
        .run(&format!("reconcile web {helm}"))
        .await?
        .ended(1)?;
    ensure!(said.stderr.contains("operation 1 (remove"), "{said:?}");
    Ok(())
}

/// A set declares patches, an adoption compares with the patched objects, and policies judge the images that a patch brings.
#[tokio::test]
async fn sets_adoptions_and_policies_see_patched_objects() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "patches-set").await?;
    let ns = &stage.namespace;
    let web = deployment("web", 1, None);
    let index = stage.index(
        "index.yaml",
        &[
            ("web", "1.0.0", &web),
            ("map", "1.0.0", &config_map("map", "1")),
        ],
    )?;
    let set = |image: &str| {
        json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation", "metadata": {"name": "web"},
            "spec": {
                "addonRef": {"name": "web", "index": index}, "targetNamespace": ns,
                "patches": [{"target": {"kind": "Deployment"}, "patch": format!(
                    "spec: {{template: {{spec: {{containers: [{{name: main, image: '{image}'}}]}}}}}}")}],
            },
        })
        .to_string()
    };
    stage.write("set.json", &set("example.test/web:2"))?;
    stage
        .run("apply -f set.json --yes --timeout 60s")
        .await?
        .done()?;
    let image = "/spec/template/spec/containers/0/image";
    let found = stage.must("deployment", "web").await?;
    ensure!(
        found.pointer(image) == Some(&json!("example.test/web:2")),
        "{found}"
    );

    let policy = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy", "metadata": {"name": ns},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
            "action": "Enforce",
            "allowed": {"imageRegistries": ["example.test"]},
        },
    });
    stage.apply(&policy.to_string()).await?;
    stage.write("set.json", &set("evil.test/web:3"))?;
    let said = stage.run("apply -f set.json --yes").await?;
    ensure!(
        said.code == 6 && said.stderr.contains("evil.test/web:3"),
        "{said:?}"
    );
    let found = stage.must("deployment", "web").await?;
    ensure!(
        found.pointer(image) == Some(&json!("example.test/web:2")),
        "{found}"
    );
    stage.kubectl(&["delete", "addonpolicy", ns]).await?;

    // Nothing differs where a live object is as the patch wants it.
    stage.apply(&config_map("map", "patched")).await?;
    stage.write(
        "map.yaml",
        &config_map("map", "patched").replace("---\n", ""),
    )?;
    let adopt = format!("adopt map --channel {index} --patch map.yaml --yes");
    stage.run(&adopt).await?.done()?;
    let said = stage.run("diff map").await?;
    ensure!(
        said.code < 2 && !said.stdout.contains("data.key"),
        "{said:?}"
    );
    stage.run("upgrade map --yes").await?.done()?;
    let map = stage.must("configmap", "map").await?;
    ensure!(map["data"]["key"] == "patched", "{map}");
    Ok(())
}

/// The table of merge keys is that of the API server.
#[tokio::test]
async fn lists_are_merged_as_the_api_server_says() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "patches-lists").await?;
    let said = stage
        .plugin
        .kubectl(&["get", "--raw", "/openapi/v2"])
        .await?
        .done()?;
    let document: Value = serde_json::from_str(&said.stdout)?;
    let definitions = document["definitions"]
        .as_object()
        .context("no definitions")?;
    let (mut compared, mut wrong) = (0, Vec::new());
    for (name, definition) in definitions {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array();
        for kind in kinds.into_iter().flatten() {
            let text = |field: &str| kind[field].as_str().unwrap_or_default().to_owned();
            let kind = Gvk {
                group: text("group"),
                version: text("version"),
                kind: text("kind"),
            };
            let is_stored = definition["properties"]["metadata"]["$ref"]
                .as_str()
                .is_some_and(|reference| reference.ends_with(".ObjectMeta"));
            if !is_stored || kind.group.ends_with("kubectl-addons.dev") {
                continue;
            }
            let mut lists = BTreeMap::new();
            collect(
                &document,
                &format!("#/definitions/{name}"),
                &mut Vec::new(),
                &mut Vec::new(),
                &mut lists,
            );
            for (path, expected) in lists {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let found = match find_merge(&kind, &path) {
                    Some(ListMerge::Keys(keys)) => keys.join(","),
                    Some(ListMerge::Set) => "set".to_owned(),
                    None => String::new(),
                };
                compared += 1;
                if found != expected {
                    wrong.push(format!(
                        "{kind:?} {}: {found:?}, the server says {expected:?}",
                        path.join(".")
                    ));
                }
            }
        }
    }
    ensure!(compared > 1000, "only {compared} lists");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The lists below a definition by their paths, each with its merge keys, `set`, or nothing if it is replaced.
fn collect(
    document: &Value,
    reference: &str,
    path: &mut Vec<String>,
    above: &mut Vec<String>,
    lists: &mut BTreeMap<Vec<String>, String>,
) {
    // A schema contains schemas.
    if above.iter().any(|one| one == reference) {
        return;
    }
    above.push(reference.to_owned());
    let definition = document.pointer(reference.trim_start_matches('#'));
    let fields = definition.and_then(|one| one["properties"].as_object());
    for (name, field) in fields.into_iter().flatten() {
        // No manifest sets these.
        if ["conditions", "status"].contains(&name.as_str()) {
            continue;
        }
        path.push(name.clone());
        if field["type"] == "array" {
            let strategy = field["x-kubernetes-patch-strategy"]
                .as_str()
                .unwrap_or_default();
            let merges = strategy.split(',').any(|one| one == "merge");
            let keys = field["x-kubernetes-list-map-keys"].as_array();
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            let keys: Vec<&str> = keys.collect();
            let key = field["x-kubernetes-patch-merge-key"].as_str();
            let merge = match key {
                _ if !merges => String::new(),
                Some(_) if keys.len() > 1 => keys.join(","),
                Some(key) => key.to_owned(),
                None => "set".to_owned(),
            };
            lists.insert(path.clone(), merge);
        }
        for inner in [&field["$ref"], &field["items"]["$ref"]] {
            if let Some(inner) = inner.as_str() {
                collect(document, inner, path, above, lists);
            }
        }
        path.pop();
    }
    above.pop();
}
