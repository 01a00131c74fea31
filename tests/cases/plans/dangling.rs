//! Objects that a plan names and that exist nowhere are warnings of the plan, of `diff` and of each preview.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::Value;

/// A Deployment that names a Secret, and an optional ConfigMap.
const TILL: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: till}
spec:
  replicas: 0
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec:
      containers: [{name: till, image: registry.test/till:1, envFrom: [{configMapRef: {name: maybe, optional: true}}]}]
      volumes: [{name: creds, secret: {secretName: creds}}]
";
const CREDS: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: creds}\n";

/// The lines of a command that say something about the Secret.
async fn told(stage: &Stage, line: &str) -> Result<Vec<String>> {
    let said = stage.run(line).await?;
    ensure!(matches!(said.code, 0 | 1), "{line}: {}", said.stderr);
    let all = format!("{}\n{}", said.stdout, said.stderr);
    let lines = all.lines().filter(|line| line.contains("Secret creds"));
    Ok(lines.map(|line| line.trim().to_owned()).collect())
}

#[tokio::test]
async fn what_exists_nowhere_is_a_warning_of_the_plan() -> Result<()> {
    let stage = Stage::new("dangling").await?;
    stage.run("init").await?.done()?;
    let at = &stage.namespace;
    let index = stage.index(
        "index.yaml",
        &[
            ("till", "1.0.0", TILL),
            ("creds", "1.0.0", CREDS),
            ("plain", "1.0.0", &config_map("plain", "1")),
        ],
    )?;
    let warning = format!(
        "{at}/Deployment till: spec.template.spec.volumes[creds].secret.secretName: {at}/Secret creds does not exist, and \
         nothing in this command creates it: pods do not start without it"
    );
    let source = format!("--channel {index}");
    let install = format!("install till {source} --dry-run");
    for line in [
        format!("plan till {source}"),
        install.clone(),
        format!("diff till {source}"),
    ] {
        let told = told(&stage, &line).await?;
        ensure!(
            matches!(told.as_slice(), [one] if one.ends_with(&warning)),
            "{line}: {told:?}"
        );
    }
    let shown = stage.run(&format!("diff till {source} -o json")).await?;
    let shown: Value = serde_json::from_str(&shown.ended(1)?.stdout)?;
    ensure!(
        shown.to_string().contains("Secret creds does not"),
        "{shown}"
    );
    // Another add-on of the command has it.
    let both = told(&stage, &format!("plan till creds {source}")).await?;
    ensure!(both.is_empty(), "{both:?}");

    // One request looks for it, and none if everything is known.
    let count = async |name: &str| {
        let mark = stage.cluster.audit().mark()?;
        stage.run(&format!("plan {name} {source}")).await?.done()?;
        anyhow::Ok(stage.requests(mark)?.total("kubectl-addons"))
    };
    let (plain, dangling) = (count("plain").await?, count("till").await?);
    ensure!(dangling == plain + 1, "{plain} {dangling}");

    // Who may not read it learns nothing about it.
    let rights = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {at}-weak}}\nrules:\n\
         - {{apiGroups: [''], resources: [namespaces, configmaps], verbs: ['*']}}\n\
         - {{apiGroups: [apps, kubectl-addons.dev], resources: ['*'], verbs: ['*']}}\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {at}-weak}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {at}-weak}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {at}-weak}}]\n"
    );
    stage.apply(&rights).await?;
    let weak = format!("plan till {source} --as {at}-weak");
    stage.run(&weak).await?.done()?;
    let unread = told(&stage, &weak).await?;
    ensure!(unread.is_empty(), "{unread:?}");

    // A warning stops nothing.
    let installed = format!("install till {source} --yes");
    stage.run(&installed).await?.done()?;
    stage
        .apply(&CREDS.replace(
            "{name: creds}",
            &format!("{{name: creds, namespace: {at}}}"),
        ))
        .await?;
    let more = stage.index(
        "index.yaml",
        &[("till", "1.0.1", &TILL.replace("till:1", "till:2"))],
    )?;
    let there = told(&stage, &format!("plan till --channel {more}")).await?;
    ensure!(there.is_empty(), "{there:?}");
    Ok(())
}
