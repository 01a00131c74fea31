//! Events of several clusters, and of one that has none of our definitions.

use std::path::Path;

use addons_tests::control_plane::ControlPlane;

use super::*;

/// Two clusters, of which one has none of our definitions: it gets them before anything is applied, and each line says where it happened.
#[tokio::test]
async fn a_new_cluster_is_told_by_its_name() -> Result<()> {
    let stage = Stage::new("events-new").await?;
    stage.run("init").await?.done()?;
    let new = ControlPlane::alone_api_only().await?;
    let read = |path: &Path| -> Result<Value> {
        Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
    };
    let mut both = json!({"apiVersion": "v1", "kind": "Config"});
    let kubeconfigs = [read(stage.plugin.kubeconfig())?, read(new.kubeconfig())?];
    for (name, mut one) in ["old", "new"].into_iter().zip(kubeconfigs) {
        one["contexts"][0]["context"]["cluster"] = json!(name);
        one["contexts"][0]["context"]["user"] = json!(name);
        for list in ["clusters", "users", "contexts"] {
            let mut entry = one[list][0].take();
            entry["name"] = json!(name);
            let mut entries = both[list].as_array().cloned().unwrap_or_default();
            entries.push(entry);
            both[list] = json!(entries);
        }
    }
    let file = stage.write("both.json", &both.to_string())?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let mut watched = Watched {
        stage,
        seen: BTreeSet::new(),
    };
    let install = format!(
        "install web --channel {index} --context old,new --kubeconfig {}",
        file.display()
    );
    let (events, said) = watched.run(&install, 0).await?;
    let of = |cluster: &str| {
        let of_it = events.0.iter().filter(|event| event["cluster"] == cluster);
        let kinds = of_it.filter_map(|event| event["type"].as_str());
        kinds.collect::<Vec<_>>()
    };
    let (old, new) = (of("old"), of("new"));
    ensure!(
        old.len() + new.len() + 1 == events.0.len(),
        "a line without a cluster: {}",
        said.stdout
    );
    ensure!(!old.contains(&"defined"), "{}", said.stdout);
    let last = new.iter().rposition(|kind| *kind == "defined");
    let applied = new.iter().position(|kind| *kind == "applied");
    ensure!(last.is_some() && last < applied, "{}", said.stdout);
    let defined = events.objects("defined");
    let expected = ["catalogues", "installations", "policies"];
    let expected = expected.map(|kind| format!("addon{kind}.kubectl-addons.dev"));
    ensure!(
        defined
            .iter()
            .copied()
            .eq(expected.iter().map(String::as_str)),
        "{defined:?}"
    );
    for event in events.of("defined") {
        ensure!(
            event["object"]["kind"] == "CustomResourceDefinition",
            "{event}"
        );
        let message = event["message"].as_str().unwrap_or_default();
        ensure!(message.ends_with(" created"), "{event}");
    }
    Ok(())
}
