//! Uninstallations are shown, planned and run like everything else, with the namespace that goes with them.

use addons_tests::control_plane::audit::Requests;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A user with two add-ons in namespaces of their own, the first of which requires the second. What is required is looked for in the
/// whole cluster, which other tests use at the same time: their names are of one test alone.
async fn stage(what: &str, [upper, lower]: [&str; 2]) -> Result<Stage> {
    let stage = Stage::new(what).await?;
    for (name, requires) in [(upper, json!([{"name": lower}])), (lower, json!([]))] {
        let version = json!({"version": "1.0.0", "requires": requires,
            "defaultNamespace": made(&stage, name),
            "source": {"inline": {"manifest": config_map(name, "1")}}});
        let file = stage.catalogue(name, &version)?;
        let add = format!("catalogue add {}", file.display());
        stage.run(&add).await?.done()?;
    }
    Ok(stage)
}

/// The namespace that an add-on creates.
fn made(stage: &Stage, name: &str) -> String {
    format!("{}-{name}", stage.namespace)
}

fn plan(stage: &Stage, file: &str) -> Result<Value> {
    let text = std::fs::read_to_string(stage.plugin.home().join(file))?;
    Ok(serde_json::from_str(&text)?)
}

#[tokio::test]
async fn a_plan_says_which_namespace_comes_and_goes() -> Result<()> {
    let stage = stage("plan-gone", ["roof", "wall"]).await?;
    let namespace = made(&stage, "roof");
    let said = stage.run("plan roof wall -o plan.json").await?.done()?;
    let creates = format!("create    Namespace {namespace}");
    ensure!(said.stderr.contains(&creates), "{}", said.stderr);
    let planned = plan(&stage, "plan.json")?;
    let mut names = planned["installations"].as_array().into_iter().flatten();
    ensure!(
        names.any(|one| one["createNamespace"] == namespace),
        "{planned}"
    );
    stage.run("apply plan.json --yes").await?.done()?;

    let refused = stage.run("plan --uninstall wall").await?.ended(1)?;
    ensure!(
        refused.stderr.contains("requires wall"),
        "{}",
        refused.stderr
    );
    let line = "plan --uninstall wall roof -o gone.json";
    let said = stage.run(line).await?.done()?;
    let deletes = format!("delete    Namespace {namespace}");
    ensure!(said.stderr.contains(&deletes), "{}", said.stderr);
    let planned = plan(&stage, "gone.json")?;
    let first = &planned["installations"][0];
    ensure!(first["deleteNamespace"] == namespace, "{planned}");
    ensure!(first["verb"] == "uninstall", "{planned}");

    // What was edited meanwhile is looked at again.
    let edit = [
        "patch",
        "configmap",
        "roof",
        "-n",
        &namespace,
        "--type=merge",
    ];
    let edit = [&edit[..], &["-p", r#"{"data":{"key":"2"}}"#]].concat();
    stage.plugin.kubectl(&edit).await?.done()?;
    let moved = stage.run("apply gone.json --yes").await?.ended(4)?;
    for words in [
        "ConfigMap roof: edited",
        "look:   kubectl addons uninstall roof wall --dry-run",
        "fix:    write the plan again with the command that wrote it",
    ] {
        ensure!(moved.stderr.contains(words), "{}", moved.stderr);
    }
    stage.run(line).await?.done()?;
    let done = stage.run("apply gone.json --yes").await?.done()?;
    ensure!(
        done.stderr.contains("roof 1.0.0 uninstalled"),
        "{}",
        done.stderr
    );
    for name in ["roof", "wall"] {
        ensure!(!stage.has("addoninstallation", name).await?, "{name}");
    }
    let namespace = stage.get("namespace", &namespace).await?;
    let is_going = |found: &Value| !found["metadata"]["deletionTimestamp"].is_null();
    ensure!(namespace.as_ref().is_none_or(is_going), "{namespace:?}");
    let twice = stage.run("apply gone.json --yes").await?.ended(4)?;
    ensure!(twice.stderr.contains("it is gone"), "{}", twice.stderr);
    Ok(())
}

#[tokio::test]
async fn the_server_is_asked_about_deletions() -> Result<()> {
    let stage = stage("asked-gone", ["hinge", "doorway"]).await?;
    stage.run("install hinge doorway --yes").await?.done()?;
    let mark = stage.cluster.audit().mark()?;
    let shown = stage
        .run("uninstall hinge doorway --dry-run=server")
        .await?
        .done()?;
    ensure!(
        shown.stderr.contains("nothing was changed"),
        "{}",
        shown.stderr
    );
    let Requests(requests) = stage.requests(mark)?;
    let deletions = requests.iter().filter(|one| one.verb == "delete");
    ensure!(deletions.count() == 4, "{requests:?}");
    for name in ["hinge", "doorway"] {
        ensure!(stage.has("addoninstallation", name).await?, "{name}");
    }

    // Who may only read is told what would be refused.
    let reader = format!("{}-reader", stage.namespace);
    let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": reader}, "rules": [rule]});
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": reader},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": reader},
        "subjects": [{"apiGroup": group, "kind": "User", "name": reader}]});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]});
    stage.apply(&list.to_string()).await?;
    let line = format!("uninstall hinge doorway --dry-run=server --as {reader}");
    let refused = stage.run(&line).await?.ended(1)?;
    for words in ["/ConfigMap hinge:", "/AddonInstallation hinge:"] {
        let mut lines = refused.stderr.lines();
        let is_said = lines.any(|line| line.contains("refused") && line.contains(words));
        ensure!(is_said, "{words}: {}", refused.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn all_of_a_cluster_is_planned_like_what_is_named() -> Result<()> {
    let stage = stage("all-gone", ["lantern", "bracket"]).await?;
    stage.run("install lantern bracket --yes").await?.done()?;
    let refused = stage.run("plan --uninstall").await?.ended(2)?;
    ensure!(
        refused
            .stderr
            .contains("--uninstall requires names, or --all"),
        "{}",
        refused.stderr
    );
    let line = "plan --uninstall --all -o gone.json";
    stage.run(line).await?.done()?;
    let planned = plan(&stage, "gone.json")?;
    let installations = planned["installations"].as_array();
    ensure!(installations.is_some_and(|all| all.len() == 2), "{planned}");
    stage.run("apply gone.json --yes").await?.done()?;
    for name in ["lantern", "bracket"] {
        ensure!(!stage.has("addoninstallation", name).await?, "{name}");
    }
    Ok(())
}
