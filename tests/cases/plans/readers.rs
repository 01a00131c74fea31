//! A reader of a cluster sees what a change would do, and whoever may make the change carries out the reader's plan.

use addons_tests::plugin::Plugin;
use addons_tests::small;
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};

/// What a pipeline may do beside what the role `view` allows: read records and catalogues, roles, definitions and Secrets.
const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: addons-reader}\nrules:\n\
    - {apiGroups: [kubectl-addons.dev], resources: ['*'], verbs: [get, list]}\n\
    - {apiGroups: [rbac.authorization.k8s.io, apiextensions.k8s.io], resources: ['*'], verbs: [get, list]}\n\
    - {apiGroups: [''], resources: [secrets], verbs: [get, list]}\n";

#[tokio::test]
async fn a_plan_of_a_reader_is_carried_out_by_whoever_may() -> Result<()> {
    let stage = Stage::new("reader").await?;
    let namespace = stage.namespace.clone();
    let first = small::index(&stage, "1.0.0", &small::first())?;
    let line = format!("install small --channel {first} --yes");
    stage.run(&line).await?.done()?;
    stage.apply(ROLE).await?;
    for role in ["view", "addons-reader"] {
        let binding = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: pipeline-{role}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: pipeline}}]\n"
        );
        stage.apply(&binding).await?;
    }
    let user = stage.cluster.user("pipeline", &[])?;
    let reader = Plugin::new(&stage.cluster, &user.kubeconfig)?.system_namespace(&namespace);
    let second = small::index(&stage, "2.0.0", &small::second())?;

    let target = ["small", "-n", &namespace, "--channel", &second];
    let shown = reader.run(&[&["diff"], &target[..]].concat()).await?;
    let shown = shown.ended(1)?.stdout;
    for said in [
        format!("~ {namespace}/ConfigMap kept\n"),
        " one → two\n".to_owned(),
        format!("+ {namespace}/ConfigMap added\n"),
        format!("- {namespace}/ConfigMap dropped-a\n"),
        "not checked by the server: ".to_owned(),
        ", which you may not change\n".to_owned(),
    ] {
        ensure!(shown.contains(&said), "{said:?} is not in\n{shown}");
    }
    let file = reader.home().join("plan.json");
    let file = file.to_string_lossy();
    let plan = [&["plan"], &target[..], &["-o", &file]].concat();
    let planned = reader.run(&plan).await?.done()?;
    ensure!(
        planned.stderr.contains("which you may not change"),
        "{}",
        planned.stderr
    );
    // The reader's own change is refused before the first write.
    let upgrade = [&["upgrade"], &target[..], &["--yes"]].concat();
    let refused = reader.run(&upgrade).await?.ended(1)?;
    ensure!(
        refused.stderr.contains("not allowed: "),
        "{}",
        refused.stderr
    );
    ensure!(stage.has("configmap", "dropped-a").await?);

    stage.run(&format!("apply {file} --yes")).await?.done()?;
    ensure!(!stage.has("configmap", "dropped-a").await?);
    ensure!(stage.must("configmap", "kept").await?["data"]["key"] == "two");
    Ok(())
}
