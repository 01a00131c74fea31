//! Core add-ons, and what they consist of: their records, their namespaces, their names, and what guards them.

use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::scene::{Scene, catalogue, create, installation, version};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{
    ANNOTATION_DEFAULTED, ANNOTATION_KKP_VERSION, ANNOTATION_RELEASED, CORE_GROUP,
    FINALIZER_CORE_GUARD, LABEL_CLUSTER, LABEL_HOLDS_CORE, SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

/// Runs `kubectl LINE`.
pub(super) async fn kubectl(user: &Plugin, line: &str) -> Result<Output> {
    let args: Vec<_> = line.split_whitespace().collect();
    user.kubectl(&args).await
}

/// Runs `kubectl LINE`, which must fail with these words.
pub(super) async fn denied(user: &Plugin, line: &str, words: &str) -> Result<()> {
    let said = kubectl(user, line).await?;
    ensure!(
        said.code != 0 && said.stderr.contains(words),
        "{line}: {}{}",
        said.stdout,
        said.stderr
    );
    Ok(())
}

/// Waits until `kubectl LINE --dry-run=server` is denied with these words: the watches of the webhook may be a moment behind.
pub(super) async fn until_denied(user: &Plugin, line: &str, words: &str) -> Result<()> {
    until(words, async || {
        let said = kubectl(user, &format!("{line} --dry-run=server")).await?;
        let is_denied = said.stderr.contains(words);
        Ok(is_denied.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await
}

pub(super) fn config_map(name: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map(|name| format!(", namespace: {name}"));
    let namespace = namespace.unwrap_or_default();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{namespace}}}\n")
}

pub(super) fn listed(name: &str, manifest: &str) -> Value {
    let source = json!({"source": {"inline": {"manifest": manifest}}});
    json!([{"name": name, "versions": [version("1.0.0", source)]}])
}

#[tokio::test]
async fn g03_labels_annotations_and_finalizers_of_core_are_written_by_core_alone() -> Result<()> {
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let name = unique("annotated");
    let manifest = config_map(&name, None);
    scene.source(&name, listed(&name, &manifest)).await?;
    kubectl(&core, &format!("addons install {name} --core --yes"))
        .await?
        .done()?;
    let record = format!("addoninstallation {name} -n {SYSTEM_NAMESPACE}");
    until_denied(&admin, &format!("delete {record}"), "is a core add-on").await?;
    let finalizers = r#"{"metadata":{"finalizers":["example.test/hold"]}}"#;
    for (line, words) in [
        (
            format!("annotate {record} --overwrite {ANNOTATION_DEFAULTED}={{}}"),
            "metadata.annotations: only group kubectl-addons:core changes core add-ons",
        ),
        (
            format!("label {record} team=a"),
            "metadata.labels: only group kubectl-addons:core changes core add-ons",
        ),
        (
            format!("patch {record} --type=merge -p {finalizers}"),
            "metadata.finalizers: only group kubectl-addons:core sets example.test/hold",
        ),
        (
            format!(
                "annotate namespace {SYSTEM_NAMESPACE} --overwrite {ANNOTATION_KKP_VERSION}=0.1.0"
            ),
            "the namespace holds core add-ons",
        ),
    ] {
        denied(&admin, &line, words).await?;
        kubectl(&core, &format!("{line} --dry-run=server"))
            .await?
            .done()?;
    }
    Ok(())
}

#[tokio::test]
async fn g04_what_guards_core_is_core() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    let core = cluster.user("guard-core", &["system:masters", CORE_GROUP])?;
    let core = Plugin::new(&cluster, &core.kubeconfig)?;
    let init = ["init", "--policies", "--yes"];
    let said = admin.run(&init).await?.ended(6)?;
    let fix = "fix:    add --as USER --as-group kubectl-addons:core";
    ensure!(said.stderr.contains(fix), "{}", said.stderr);
    core.run(&init).await?.done()?;

    let record = format!("addoninstallation addons-policies -n {SYSTEM_NAMESPACE}");
    let of = |policy: &str| format!("ValidatingAdmissionPolicy 'kubectl-addons-{policy}'");
    until_denied(&admin, &format!("delete {record}"), &of("installations")).await?;
    let definition = "customresourcedefinition addoninstallations.kubectl-addons.dev";
    until_denied(&admin, &format!("delete {definition}"), &of("guards")).await?;
    let index = r#"{"spec":{"addonRef":{"index":"https://other.example.test/i.yaml"}}}"#;
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let schema = format!(
        r#"[{{"op":"remove","path":"{field}/x-kubernetes-validations"}},{{"op":"remove","path":"{field}/properties/coreAddon"}}]"#
    );
    for (line, policy) in [
        (format!("delete {record}"), "installations"),
        (
            format!("delete addoninstallations --all -n {SYSTEM_NAMESPACE}"),
            "installations",
        ),
        (
            format!("patch {record} --type=merge -p {index}"),
            "installations",
        ),
        (
            format!("patch {definition} --type=json -p {schema}"),
            "guards",
        ),
        (
            format!("annotate {definition} --overwrite kubectl-addons.dev/crd-version=99.0.0"),
            "guards",
        ),
        (format!("delete namespace {SYSTEM_NAMESPACE}"), "namespaces"),
    ] {
        denied(&admin, &line, &of(policy)).await?;
    }
    admin
        .run(&["uninstall", "addons-policies", "--yes"])
        .await?
        .ended(6)?;

    // RBAC decides who deletes policies; what doctor says then is the way back.
    let all = "validatingadmissionpolicies,validatingadmissionpolicybindings";
    let ours = format!("{all} -l app.kubernetes.io/part-of=kubectl-addons");
    kubectl(&admin, &format!("delete {ours}")).await?.done()?;
    let said = admin.run(&["doctor"]).await?.ended(1)?;
    ensure!(
        said.stdout.contains("kubectl addons init --policies"),
        "{}",
        said.stdout
    );
    core.run(&init).await?.done()?;
    let found = kubectl(&admin, &format!("get {ours} -o name"))
        .await?
        .done()?;
    ensure!(found.stdout.lines().count() > 7, "{}", found.stdout);
    until_denied(&admin, &format!("delete {record}"), &of("installations")).await
}

#[tokio::test]
async fn g05_no_one_keeps_a_core_addon_out_by_its_name() -> Result<()> {
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let name = unique("reserved");
    let ns = scene.cluster.namespace("reserved").await?;
    kubectl(
        &admin,
        &format!("label namespace {ns} {LABEL_CLUSTER}=local"),
    )
    .await?
    .done()?;
    let custom = catalogue(
        &name,
        SYSTEM_NAMESPACE,
        listed(&name, &config_map(&name, None)),
    );
    create(&admin, &custom, &[]).await?.done()?;

    // A record of a core set reserves its name in every namespace.
    let reference = json!({"name": name, "index": "https://addons.example.test/index.yaml"});
    let mut record = installation(
        &name,
        &ns,
        json!({"addonRef": reference, "coreAddon": true}),
    );
    record["metadata"]["finalizers"] = json!([FINALIZER_CORE_GUARD]);
    until("the webhook knows the namespace", async || {
        let said = create(&core, &record, &[]).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    let squatter = installation(&name, SYSTEM_NAMESPACE, json!({"addonRef": reference}));
    let words = format!("metadata.name: {name} is a core add-on in namespace {ns}");
    until("the name is reserved", async || {
        let said = create(&admin, &squatter, &["--dry-run=server"]).await?;
        let is_denied = said.stderr.contains(&words);
        Ok(is_denied.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    create(&core, &squatter, &["--dry-run=server"])
        .await?
        .done()?;

    // A catalogue of class Core takes its names.
    let taker = unique("taker");
    let mut of_core = catalogue(
        &taker,
        SYSTEM_NAMESPACE,
        listed(&name, &config_map(&name, None)),
    );
    of_core["spec"]["class"] = json!("Core");
    let warning =
        format!("{name} is in catalogue {name} of class Custom, which does not offer it any more");
    until("the webhook knows the catalogue", async || {
        let said = create(&core, &of_core, &["--dry-run=server"])
            .await?
            .done()?;
        let is_warned = said.stderr.contains(&warning);
        Ok(is_warned.then_some(()).ok_or(said.stderr))
    })
    .await?;
    create(&core, &of_core, &[]).await?.done()?;

    let release =
        r#"{"metadata":{"annotations":{"kubectl-addons.dev/released":"true"},"finalizers":null}}"#;
    for line in [
        format!("patch addoninstallation {name} -n {ns} --type=merge -p {release}"),
        format!("delete addoninstallation {name} -n {ns}"),
        format!("delete addoncatalogue {taker} -n {SYSTEM_NAMESPACE}"),
        format!("delete addoncatalogue {name} -n {SYSTEM_NAMESPACE}"),
    ] {
        kubectl(&core, &line).await?.done()?;
    }
    Ok(())
}

#[tokio::test]
async fn g17_every_namespace_with_objects_of_core_is_guarded() -> Result<()> {
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let (name, beside, own) = (unique("spread"), unique("beside"), unique("own"));
    let manifest = [
        config_map(&name, None),
        config_map(&name, Some(&beside)),
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}}}\n"),
        config_map(&name, Some(&own)),
    ];
    scene
        .source(&name, listed(&name, &manifest.join("---\n")))
        .await?;
    kubectl(&admin, &format!("create namespace {beside}"))
        .await?
        .done()?;
    kubectl(&core, &format!("addons install {name} --core --yes"))
        .await?
        .done()?;
    let words = format!("holds a core add-on of this cluster ({name})");
    for namespace in [&name, &beside, &own] {
        let line = format!("get namespace {namespace} -o json");
        let found: Value = serde_json::from_str(&kubectl(&admin, &line).await?.done()?.stdout)?;
        let mark = &found["metadata"]["labels"][LABEL_HOLDS_CORE];
        ensure!(mark == "true", "{namespace}: {found}");
        until_denied(&admin, &format!("delete namespace {namespace}"), &words).await?;
    }

    // doctor finds a mark that is missing, and its command sets it.
    let unmark = format!("label namespace {beside} {LABEL_HOLDS_CORE}-");
    denied(&admin, &unmark, "the label stays").await?;
    kubectl(&core, &unmark).await?.done()?;
    let fix = format!("kubectl label namespace {beside} {LABEL_HOLDS_CORE}=true");
    let said = kubectl(&admin, "addons doctor -o json").await?.ended(1)?;
    ensure!(said.stdout.contains(&fix), "{}", said.stdout);
    kubectl(&core, fix.trim_start_matches("kubectl "))
        .await?
        .done()?;
    let said = kubectl(&admin, "addons doctor -o json").await?;
    ensure!(!said.stdout.contains(&fix), "{}", said.stdout);

    let release = format!(
        "annotate addoninstallation {name} -n {SYSTEM_NAMESPACE} {ANNOTATION_RELEASED}=true"
    );
    kubectl(&core, &release).await?.done()?;
    kubectl(&core, &format!("addons uninstall {name} --yes"))
        .await?
        .done()?;
    Ok(())
}
