//! Definitions are in force before what needs them: changed schemas, `crds/` of charts, versions that are stored and lost
//! (semantics 12, 18).

use addons_tests::control_plane::binaries;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

fn crd(stage: &Stage) -> String {
    format!("jars.{}", group(stage))
}

/// A definition with one version for each name, of which the last is stored; the fields of `spec` are texts.
fn definition(stage: &Stage, versions: &[&str], fields: &[String]) -> Value {
    let spec = fields.iter().map(|field| {
        let about = "What a description of an operator is like, which says at length what the field is for. ";
        (field.clone(), json!({"type": "string", "description": about.repeat(3)}))
    });
    let spec: Map<String, Value> = spec.collect();
    let versions = versions.iter().enumerate().map(|(place, name)| {
        json!({"name": name, "served": true, "storage": place + 1 == versions.len(), "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}})
    });
    let versions: Vec<Value> = versions.collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": crd(stage)},
        "spec": {"group": group(stage), "scope": "Namespaced", "names": {"plural": "jars", "singular": "jar", "kind": "Jar"},
            "versions": versions},
    })
}

fn jar(stage: &Stage, name: &str, fields: &[&str]) -> Value {
    let spec = fields.iter().map(|field| ((*field).to_owned(), json!("1")));
    let spec: Map<String, Value> = spec.collect();
    json!({"apiVersion": format!("{}/v1", group(stage)), "kind": "Jar", "metadata": {"name": name}, "spec": spec})
}

fn manifest(objects: &[Value]) -> String {
    let objects = objects.iter().map(|object| format!("{object}\n---\n"));
    objects.collect()
}

/// A large definition gets another field with each version, which its objects set at once.
#[tokio::test]
async fn n14_objects_wait_for_the_changed_schema_of_their_definition() -> Result<()> {
    const FIELDS: usize = 1_000;
    let stage = Stage::new("n14-schema").await?;
    let all: Vec<String> = (0..FIELDS + 6)
        .map(|field| format!("field{field}"))
        .collect();
    let version = |number: usize| -> Result<String> {
        let known = all.get(..FIELDS + number).context("no fields")?;
        let last = known.last().context("no field")?.as_str();
        let objects = [
            definition(&stage, &["v1"], known),
            jar(&stage, "old", &[last]),
            jar(&stage, &format!("new-{number}"), &["field0", last]),
        ];
        let index = format!("{number}.yaml");
        let version = format!("1.{number}.0");
        stage.index(&index, &[("jars", &version, &manifest(&objects))])
    };
    let line = format!("install jars --channel {} --yes", version(0)?);
    stage.run(&line).await?.done()?;
    for number in 1..6 {
        let index = version(number)?;
        let line = format!("upgrade jars -n {} --channel {index}", stage.namespace);
        // What the server cannot know yet is not refused.
        let shown = stage.run(&format!("{line} --dry-run=server")).await?;
        let shown = shown.done()?.stderr;
        ensure!(!shown.contains("refused"), "{shown}");
        let why = "the definition of Jar is part of the plan";
        ensure!(shown.contains(why), "{shown}");
        let done = stage.run(&format!("{line} --yes")).await?.done()?;
        ensure!(!done.stderr.contains("failed"), "{}", done.stderr);
        let last = format!("field{}", FIELDS + number - 1);
        for name in ["old", &format!("new-{number}")] {
            let live = stage.must(&crd(&stage), name).await?;
            ensure!(
                live["spec"][&last] == "1",
                "{name} has no {last}: {}",
                live["spec"]
            );
        }
    }
    Ok(())
}

/// An object that its own definition refuses fails soon: it is not waited for as long as the command may take.
#[tokio::test]
async fn n14_what_the_definition_in_force_refuses_fails() -> Result<()> {
    let stage = Stage::new("n14-wrong").await?;
    let fields = ["size".to_owned()];
    let index = stage.index(
        "crd.yaml",
        &[(
            "jars",
            "1.0.0",
            &manifest(&[definition(&stage, &["v1"], &fields)]),
        )],
    )?;
    stage
        .run(&format!("install jars --channel {index} --yes"))
        .await?
        .done()?;
    let wrong = manifest(&[jar(&stage, "wrong", &["sise"])]);
    let index = stage.index("jar.yaml", &[("wrong", "1.0.0", &wrong)])?;
    let line = format!("install wrong --channel {index} --yes --timeout 120s");
    let refused = stage.run(&line).await?;
    ensure!(refused.code != 0, "{}", refused.stderr);
    ensure!(refused.stderr.contains("sise"), "{}", refused.stderr);
    ensure!(refused.elapsed.as_secs() < 60, "{:?}", refused.elapsed);
    Ok(())
}

/// Helm applies `crds/` first; a hook may use them.
#[tokio::test]
async fn n14_the_definitions_of_a_chart_come_before_its_hooks() -> Result<()> {
    let stage = Stage::new("n14-crds").await?;
    let hook = |name: &str, occasion: &str| {
        config_map(name, "1").replace(
            &format!("{{name: {name}}}"),
            &format!("{{name: {name}, annotations: {{helm.sh/hook: '{occasion}'}}}}"),
        )
    };
    let about = "apiVersion: v2\nname: jars\nversion: 1.0.0\n";
    let path = stage.write("chart/Chart.yaml", about)?;
    let crds = definition(&stage, &["v1"], &["size".to_owned()]).to_string();
    stage.write("chart/crds/jars.yaml", &crds)?;
    let templates = [
        hook("before", "pre-install,pre-upgrade"),
        config_map("with", "1"),
        hook("after", "post-install"),
    ];
    stage.write("chart/templates/all.yaml", &templates.concat())?;
    let folder = path.parent().context("no folder")?;
    let helm = binaries::helm()?;
    let line = format!(
        "install {} --helm-bin {} --target-namespace {} --yes",
        folder.display(),
        helm.display(),
        stage.namespace
    );
    let mark = stage.cluster.audit().mark()?;
    // Also where readiness is not waited for.
    stage.run(&format!("{line} --wait=false")).await?.done()?;
    let requests = stage.requests(mark)?;
    let applied = requests.of("kubectl-addons").filter(|one| {
        let is_dry = one.uri.contains("dryRun");
        one.verb == "patch" && !is_dry && !one.uri.contains("/kubectl-addons.dev/")
    });
    let applied: Vec<&str> = applied.map(|one| one.object.name.as_str()).collect();
    let crd = crd(&stage);
    ensure!(
        applied == [crd.as_str(), "before", "with", "after"],
        "{applied:?}"
    );
    Ok(())
}

/// A version in `status.storedVersions` that the definition does not have any more is nothing that could be migrated.
#[tokio::test]
async fn n14_a_stored_version_that_is_lost_leaves_the_status() -> Result<()> {
    let stage = Stage::new("n14-lost").await?;
    let fields = ["size".to_owned(), "color".to_owned()];
    let known = |count: usize| fields.get(..count).unwrap_or_default();
    let version = |versions: &[&str], count: usize| {
        let objects = [
            definition(&stage, versions, known(count)),
            jar(&stage, "a", &["size"]),
        ];
        manifest(&objects)
    };
    let index = stage.index("1.yaml", &[("jars", "1.0.0", &version(&["v1"], 1))])?;
    stage
        .run(&format!("install jars --channel {index} --yes"))
        .await?
        .done()?;
    let crd = crd(&stage);
    let stored = json!({"storedVersions": ["v1alpha1", "v1"]});
    let patch = json!({"status": stored}).to_string();
    let args = [
        "patch",
        "customresourcedefinition",
        &crd,
        "--subresource=status",
    ];
    let args = [&args[..], &["--type=merge", "-p", &patch]].concat();
    stage.kubectl(&args).await?;

    let index = stage.index("2.yaml", &[("jars", "2.0.0", &version(&["v1"], 2))])?;
    let line = format!("jars -n {} --channel {index}", stage.namespace);
    let diff = stage.run(&format!("diff {line}")).await?.ended(1)?;
    let told = diff.stdout + &diff.stderr;
    ensure!(
        told.contains("color") && !told.contains("refused"),
        "{told}"
    );
    let shown = stage
        .run(&format!("upgrade {line} --dry-run=server"))
        .await?;
    let shown = shown.done()?.stderr;
    let word = "v1alpha1 leaves status.storedVersions";
    ensure!(
        shown.contains(word) && !shown.contains("refused"),
        "{shown}"
    );
    ensure!(!shown.contains("migrate"), "{shown}");
    let done = stage.run(&format!("upgrade {line} --yes")).await?.done()?;
    ensure!(done.stderr.contains(word), "{}", done.stderr);
    let live = stage.must("customresourcedefinition", &crd).await?;
    ensure!(
        live["status"]["storedVersions"] == json!(["v1"]),
        "{}",
        live["status"]
    );

    // Beside a version that is migrated as ever.
    stage.kubectl(&args).await?;
    let index = stage.index("3.yaml", &[("jars", "3.0.0", &version(&["v1", "v2"], 2))])?;
    let line = format!(
        "upgrade jars -n {} --channel {index} --yes",
        stage.namespace
    );
    stage.run(&line).await?.done()?;
    let both = json!({"status": {"storedVersions": ["v1alpha1", "v1", "v2"]}}).to_string();
    let args = [
        "patch",
        "customresourcedefinition",
        &crd,
        "--subresource=status",
    ];
    let args = [&args[..], &["--type=merge", "-p", &both]].concat();
    stage.kubectl(&args).await?;
    let only = definition(&stage, &["v2"], known(2));
    let mut jar = jar(&stage, "a", &["size"]);
    jar["apiVersion"] = json!(format!("{}/v2", group(&stage)));
    let index = stage.index("4.yaml", &[("jars", "4.0.0", &manifest(&[only, jar]))])?;
    let line = format!(
        "upgrade jars -n {} --channel {index} --migrate-stored-versions --yes",
        stage.namespace
    );
    stage.run(&line).await?.done()?;
    let live = stage.must("customresourcedefinition", &crd).await?;
    ensure!(
        live["status"]["storedVersions"] == json!(["v2"]),
        "{}",
        live["status"]
    );
    let jar = stage.must(&crd, "a").await?;
    ensure!(jar["spec"]["size"] == "1", "{jar:#}");
    Ok(())
}
