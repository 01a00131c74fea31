//! The labels that make a namespace stand for a cluster need a right of their own (semantics 6).

use addons_tests::control_plane::unique;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{Scene, apply, create};
use anyhow::{Result, ensure};
use common::api::names::{CLUSTER_LOCAL, ENROL, GROUP, LABEL_CLUSTER, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

const DENIED: &str =
    r#"admission webhook "clusters.kubectl-addons.dev" denied the request: metadata.labels"#;

fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// A user who may write namespaces, do everything with installations of the system namespace, and `verbs` with all of them.
async fn user(scene: &Scene, name: &str, verbs: &[&str]) -> Result<Plugin> {
    let name = unique(name);
    let rbac = |kind: &str, rules: &Value| {
        let metadata = json!({"name": name, "namespace": SYSTEM_NAMESPACE});
        let api = "rbac.authorization.k8s.io";
        let binding = format!("{kind}Binding");
        [
            json!({"apiVersion": format!("{api}/v1"), "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": format!("{api}/v1"), "kind": binding, "metadata": metadata,
                "roleRef": {"apiGroup": api, "kind": kind, "name": name},
                "subjects": [{"apiGroup": api, "kind": "User", "name": name}],
            }),
        ]
    };
    let records = |verbs: &[&str]| json!({"apiGroups": [GROUP], "resources": ["addoninstallations"], "verbs": verbs});
    let namespaces = json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]});
    let everywhere = json!([namespaces, records(verbs)]);
    let (admin, _) = scene.user("admin", &[])?;
    for object in rbac("ClusterRole", &everywhere)
        .iter()
        .chain(&rbac("Role", &json!([records(&["*"])])))
    {
        create(&admin, object, &[]).await?.done()?;
    }
    let user = scene.cluster.user(&name, &[])?;
    Plugin::new(&scene.cluster, &user.kubeconfig)
}

/// trust 1.
#[tokio::test]
async fn t01_only_who_may_enrol_makes_a_namespace_stand_for_the_cluster() -> Result<()> {
    let scene = Scene::get().await?;
    let tenant = user(
        scene,
        "tenant",
        &["get", "create", "update", "patch", "delete"],
    )
    .await?;
    let operator = user(scene, "operator", &[ENROL]).await?;
    let (admin, _) = scene.user("admin", &[])?;
    let local = json!({LABEL_CLUSTER: CLUSTER_LOCAL});

    // At creation, and later.
    let name = unique("labelled");
    let said = create(&tenant, &namespace(&name, &local), &[]).await?;
    ensure!(
        said.code == 1 && said.stderr.contains(DENIED),
        "{}",
        said.stderr
    );
    let other = json!({"team": "a"});
    create(&tenant, &namespace(&name, &other), &[])
        .await?
        .done()?;
    for more in [&[][..], &["--server-side", "--force-conflicts"]] {
        let said = apply(&tenant, &namespace(&name, &local), more).await?;
        ensure!(
            said.code == 1 && said.stderr.contains(DENIED),
            "{}",
            said.stderr
        );
    }
    let elsewhere = json!({LABEL_CLUSTER: "elsewhere"});
    apply(&tenant, &namespace(&name, &elsewhere), &[])
        .await?
        .done()?;
    let said = apply(&tenant, &namespace(&name, &local), &[]).await?;
    ensure!(
        said.code == 1 && said.stderr.contains(DENIED),
        "{}",
        said.stderr
    );
    ensure!(
        said.stderr
            .contains("the right to enrol addoninstallations in the whole cluster"),
        "{}",
        said.stderr
    );

    // Who has the right may, and what is labelled can be changed otherwise by others.
    apply(&operator, &namespace(&name, &local), &[])
        .await?
        .done()?;
    let more = json!({LABEL_CLUSTER: CLUSTER_LOCAL, "team": "b"});
    apply(&tenant, &namespace(&name, &more), &[])
        .await?
        .done()?;
    apply(&tenant, &namespace(&name, &json!({})), &[])
        .await?
        .done()?;
    apply(&admin, &namespace(&name, &local), &[])
        .await?
        .done()?;
    tenant
        .kubectl(&["delete", "namespace", &name, "--wait=false"])
        .await?
        .done()?;
    Ok(())
}
