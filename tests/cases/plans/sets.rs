//! `apply -f`: a file has the installations of a cluster, and records get what it says.

use addons_tests::control_plane::{Options, definitions};
use addons_tests::objects;
use addons_tests::plugin::Plugin;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// An installation, as a file has it.
pub(super) fn installation(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name}, "spec": spec})
}

/// A set as YAML, a document for each.
pub(super) fn set(installations: &[Value]) -> String {
    installations
        .iter()
        .map(|one| format!("---\n{one}\n"))
        .collect()
}

#[tokio::test]
async fn a_set_is_installed_and_its_file_stays_the_truth() -> Result<()> {
    let stage = Stage::new("set").await?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: \"{{ .Variables.a }}\", b: \"{{ .Variables.b }}\"}\n";
    let web = json!({"version": "1.0.0", "values": {"a": "default", "b": "default"},
        "template": {"method": "go-template"}, "source": {"inline": {"manifest": template}}});
    let base =
        json!({"version": "1.0.0", "source": {"inline": {"manifest": config_map("base", "1")}}});
    for (name, version) in [("web", &web), ("base", &base)] {
        let file = stage.catalogue(name, version)?;
        stage
            .run(&format!("catalogue add {}", file.display()))
            .await?
            .done()?;
    }
    let file = |values: Value| {
        let web = installation(
            "front",
            json!({"addonRef": {"name": "web"}, "values": values}),
        );
        let base = installation(
            "base",
            json!({"addonRef": {"name": "base", "version": "1.0.0"}}),
        );
        stage.write("set.yaml", &set(&[web, base]))
    };
    let path = file(json!({"a": "mine", "b": "mine"}))?;
    let apply = format!("apply -f {} --yes", path.display());
    let said = stage.run(&format!("{apply} --dry-run")).await?.done()?;
    ensure!(
        said.stderr.contains("nothing was changed"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("addoninstallation", "front").await?);

    stage.run(&apply).await?.done()?;
    let data = |object: Value| object["data"].clone();
    ensure!(data(stage.must("configmap", "web").await?) == json!({"a": "mine", "b": "mine"}));
    ensure!(stage.has("configmap", "base").await?);
    let mark = stage.cluster.audit().mark()?;
    let again = stage.run(&apply).await?.done()?;
    ensure!(
        again.stderr.matches("nothing to do").count() == 2,
        "{}",
        again.stderr
    );
    let requests = stage.requests(mark)?;
    let writes = requests.of("kubectl-addons").filter(|one| one.is_write());
    ensure!(writes.count() == 0, "{requests:?}");

    // What the file says no more falls back to the catalogue.
    file(json!({"a": "mine"}))?;
    stage.run(&apply).await?.done()?;
    ensure!(data(stage.must("configmap", "web").await?) == json!({"a": "mine", "b": "default"}));

    all_mistakes_are_told(&stage).await
}

/// With any mistake, nothing is written, and each one is told.
async fn all_mistakes_are_told(stage: &Stage) -> Result<()> {
    let wrong = [
        installation(
            "front",
            json!({"addonRef": {"name": "web"}, "valus": {"a": 1}}),
        ),
        installation(
            "back",
            json!({"addonRef": {"name": "web"}, "suspend": "no"}),
        ),
    ];
    let misspelt = set(&wrong).replacen("AddonInstallation", "AddonInstalation", 1);
    let unknown = [
        installation("front", json!({"addonRef": {"name": "wbe"}})),
        installation(
            "back",
            json!({"addonRef": {"name": "web", "catalogue": "nowhere"}}),
        ),
        installation(
            "side",
            json!({"addonRef": {"name": "web", "version": "0.0.1"}}),
        ),
    ];
    for (text, words) in [
        (
            set(&wrong),
            &[
                "unknown field spec.valus; did you mean values?",
                "spec.suspend must be",
            ][..],
        ),
        (
            misspelt,
            &["; did you mean AddonInstallation?", "spec.suspend must be"],
        ),
        (
            set(&unknown),
            &[
                "no add-on named wbe; did you mean web",
                "no catalogue named nowhere",
                "web has no version 0.0.1",
            ],
        ),
    ] {
        let path = stage.write("wrong.yaml", &text)?;
        for line in ["apply --yes -f", "plan -f", "diff -f"] {
            let said = stage.run(&format!("{line} {}", path.display())).await?;
            ensure!(said.code != 0, "{line}: {said:?}");
            for word in words {
                ensure!(
                    said.stderr.contains(word),
                    "{line}: {word}: {}",
                    said.stderr
                );
            }
        }
    }
    ensure!(!stage.has("addoninstallation", "back").await?);
    Ok(())
}

/// Deletes the nodes of a cluster, and returns them as they are created again.
async fn without_nodes(plugin: &Plugin) -> Result<Value> {
    let nodes = plugin
        .kubectl(&["get", "nodes", "-o", "json"])
        .await?
        .done()?
        .stdout;
    let mut nodes: Value = serde_json::from_str(&nodes)?;
    let kept = nodes["items"].as_array_mut().context("no nodes")?;
    for node in kept.iter_mut() {
        let metadata = node["metadata"].as_object_mut().context("no metadata")?;
        metadata.retain(|field, _| ["name", "labels", "annotations"].contains(&field.as_str()));
        node["status"] = json!({});
    }
    plugin
        .kubectl(&["delete", "nodes", "--all"])
        .await?
        .done()?;
    Ok(nodes)
}

/// Adds a catalogue with this version of an add-on; the installation of a set that asks for it.
async fn listed(plugin: &Plugin, name: &str, version: &Value) -> Result<Value> {
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": name}, "spec": {"addons": [{"name": name, "versions": [version]}]}});
    let file = plugin.home().join(format!("{name}.json"));
    std::fs::write(&file, catalogue.to_string())?;
    let add = ["catalogue", "add", &file.to_string_lossy()];
    plugin.run(&add).await?.done()?;
    Ok(installation(name, json!({"addonRef": {"name": name}})))
}

/// A new cluster: its nodes become ready through what comes first, and what comes after waits for one.
#[tokio::test]
async fn where_no_node_is_ready_the_network_comes_first() -> Result<()> {
    let cluster = definitions::cluster(Options::default()).await?;
    let plugin = Plugin::admin(&cluster)?;
    let nodes = without_nodes(&plugin).await?;
    let home = plugin.home();
    let mut documents = Vec::new();
    for name in ["cilium", "web"] {
        let version = json!({"version": "1.0.0", "defaultNamespace": "default",
            "source": {"inline": {"manifest": config_map(name, "1")}}});
        documents.push(listed(&plugin, name, &version).await?);
    }
    documents.reverse();
    let file = home.join("set.yaml");
    std::fs::write(&file, set(&documents))?;
    let file = file.to_string_lossy();
    let apply = ["apply", "-f", &file, "--yes", "--timeout", "3s"];
    let said = plugin.run(&apply).await?.ended(3)?;
    ensure!(
        said.stderr.contains("1 add-ons wait for one"),
        "{}",
        said.stderr
    );
    let client = cluster.client().await?;
    let config_map = async |name: &str| {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        objects::read(&client, &path).await
    };
    ensure!(config_map("cilium").await?.is_some() && config_map("web").await?.is_none());

    let create = ["create", "-f", "-"];
    plugin
        .kubectl_with_input(&create, &nodes.to_string())
        .await?
        .done()?;
    let apply = ["apply", "-f", &file, "--yes"];
    plugin.run(&apply).await?.done()?;
    ensure!(config_map("web").await?.is_some());
    Ok(())
}

/// What is only known of a cluster with nodes is in what comes after them.
#[tokio::test]
async fn what_follows_the_nodes_is_rendered_with_their_facts() -> Result<()> {
    let cluster = definitions::cluster(Options::default()).await?;
    let plugin = Plugin::admin(&cluster)?;
    let mut nodes = without_nodes(&plugin).await?;
    let provided = nodes["items"].as_array_mut().context("no nodes")?;
    for node in provided.iter_mut() {
        node["spec"]["providerID"] = json!("aws:///eu-central-1a/i-0123");
    }
    let home = plugin.home();
    let mut documents = Vec::new();
    for name in ["cilium", "web"] {
        let manifest = config_map(name, "of {{ .Cluster.CloudProviderName }}");
        let version = json!({"version": "1.0.0", "defaultNamespace": "default",
            "template": {"method": "go-template"}, "source": {"inline": {"manifest": manifest}}});
        documents.push(listed(&plugin, name, &version).await?);
    }
    let file = home.join("set.yaml");
    std::fs::write(&file, set(&documents))?;
    let file = file.to_string_lossy();
    let mut process = plugin.start(&["apply", "-f", &file, "--yes", "--timeout", "120s"])?;
    let client = cluster.client().await?;
    let config_map = async |name: &str| {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        objects::read(&client, &path).await
    };
    until("cilium comes first", async || {
        let found = config_map("cilium").await?;
        Ok(found.ok_or_else(|| "it is not there".to_owned()))
    })
    .await?;
    let create = ["create", "-f", "-"];
    plugin
        .kubectl_with_input(&create, &nodes.to_string())
        .await?
        .done()?;
    let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
    let said = std::fs::read_to_string(home.join("stderr"))?;
    ensure!(ended.code() == Some(0), "{ended:?}: {said}");
    for name in ["cilium", "web"] {
        let found = config_map(name).await?.context(name)?;
        ensure!(found["data"]["key"] == "of aws", "{found}: {said}");
    }
    Ok(())
}

/// From wherever it is applied, and without a namespace in the file.
#[tokio::test]
async fn the_index_of_a_set_lies_beside_its_file() -> Result<()> {
    let stage = Stage::new("set-index").await?;
    stage.index(
        "git/indexes/addons.yaml",
        &[("db", "1.0.0", &config_map("db", "1"))],
    )?;
    let db = |index: &str| installation("db", json!({"addonRef": {"name": "db", "index": index}}));
    let path = stage.write("git/set.yaml", &set(&[db("indexes/addons.yaml")]))?;
    let path = path.display();
    stage
        .run(&format!("plan -f {path} --exit-code"))
        .await?
        .ended(1)?;
    stage.run(&format!("apply -f {path} --yes")).await?.done()?;
    ensure!(stage.has("configmap", "db").await?);
    let record = stage.record("db").await?;
    let index = record["spec"]["addonRef"]["index"]
        .as_str()
        .context("none")?;
    ensure!(
        index.starts_with("file:///") && index.ends_with("/git/indexes/addons.yaml"),
        "{index}"
    );
    stage
        .run(&format!("plan -f {path} --exit-code"))
        .await?
        .done()?;

    // What is not there yet has nothing to be mended but the file.
    let other = installation(
        "other",
        json!({"addonRef": {"name": "db", "index": "none.yaml"}}),
    );
    let path = stage.write("git/other.yaml", &set(&[other]))?;
    let said = stage
        .run(&format!("plan -f {}", path.display()))
        .await?
        .ended(1)?;
    ensure!(
        said.stderr.contains("/git/none.yaml") && !said.stderr.contains("kubectl addons upgrade"),
        "{}",
        said.stderr
    );
    Ok(())
}
