//! A definition that drops a version in which objects are stored: they are written again in one that stays, step by step. That
//! every step is continued after a crash is in `crash::stored`.

use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A definition with these versions, the last of which is stored.
fn definition(stage: &Stage, versions: &[&str]) -> String {
    let group = group(stage);
    let of = |version: &&str| {
        let storage = versions.last() == Some(version);
        format!(
            "{{name: {version}, served: true, storage: {storage}, schema: {{openAPIV3Schema: {{type: object, \
             properties: {{spec: {{type: object, properties: {{size: {{type: integer}}}}}}}}}}}}}}"
        )
    };
    let versions: Vec<String> = versions.iter().map(of).collect();
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: policies.{group}}}\n\
         spec: {{group: {group}, scope: Namespaced, names: {{kind: Policy, plural: policies, singular: policy}}, \
         versions: [{}]}}\n---\n",
        versions.join(", ")
    )
}

fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

pub(crate) fn plural(stage: &Stage) -> String {
    format!("policies.{}", group(stage))
}

/// Installs a definition, and upgrades it to others.
pub(crate) async fn brought(stage: &Stage, chain: &[&[&str]]) -> Result<()> {
    for (index, versions) in chain.iter().enumerate() {
        let line = line(stage, &format!("{}.0.0", index + 1), versions)?;
        stage.run(&format!("{line} --yes")).await?.done()?;
    }
    Ok(())
}

/// The command that brings these versions.
pub(crate) fn line(stage: &Stage, version: &str, versions: &[&str]) -> Result<String> {
    let manifest = definition(stage, versions);
    let index = stage.index(
        &format!("{version}.yaml"),
        &[("kyverno", version, &manifest)],
    )?;
    let verb = if version == "1.0.0" {
        "install kyverno".to_owned()
    } else {
        format!("upgrade kyverno -n {}", stage.namespace)
    };
    Ok(format!("{verb} --channel {index}"))
}

pub(crate) async fn policies(stage: &Stage, version: &str, names: &[&str]) -> Result<()> {
    for name in names {
        let policy = json!({
            "apiVersion": format!("{}/{version}", group(stage)), "kind": "Policy",
            "metadata": {"name": name}, "spec": {"size": 1},
        });
        stage.apply(&policy.to_string()).await?;
    }
    Ok(())
}

/// The stored versions of the live definition, and all of its versions.
async fn live(stage: &Stage) -> Result<(Value, Vec<String>)> {
    let name = plural(stage);
    let found = stage.must("customresourcedefinition", &name).await?;
    let versions = found["spec"]["versions"].as_array().context("versions")?;
    let names = versions.iter().map(|version| {
        let served = version["served"] == true;
        let name = version["name"].as_str().unwrap_or_default();
        format!("{name}{}", if served { "" } else { " unserved" })
    });
    Ok((found["status"]["storedVersions"].clone(), names.collect()))
}

pub(crate) async fn revision(stage: &Stage, name: &str) -> Result<String> {
    let object = stage.must(&plural(stage), name).await?;
    ensure!(object["spec"]["size"] == 1, "{object:#}");
    let revision = object["metadata"]["resourceVersion"].as_str();
    Ok(revision.unwrap_or_default().to_owned())
}

/// It ends with one version, and nothing is left to do.
pub(crate) async fn ended(stage: &Stage, line: &str) -> Result<()> {
    let found = live(stage).await?;
    ensure!(found == (json!(["v1"]), vec!["v1".to_owned()]), "{found:?}");
    let definition = stage
        .must("customresourcedefinition", &plural(stage))
        .await?;
    let marks = definition["metadata"]["annotations"].to_string();
    ensure!(!marks.contains("migrat"), "{marks}");
    let again = stage.run(&format!("{line} --yes")).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    Ok(())
}

/// trust 23: nothing is stored, so the version leaves the status without a question.
#[tokio::test]
async fn t23_a_stored_version_without_objects_is_taken_out_of_the_status() -> Result<()> {
    let stage = Stage::new("stored-empty").await?;
    brought(&stage, &[&["v1alpha1"], &["v1alpha1", "v1"]]).await?;
    let found = live(&stage).await?.0;
    ensure!(found == json!(["v1alpha1", "v1"]), "{found}");
    let line = line(&stage, "3.0.0", &["v1"])?;
    let shown = stage.run(&format!("{line} --dry-run")).await?.done()?;
    for words in ["v1alpha1", "no object"] {
        ensure!(
            shown.stderr.contains(words),
            "no {words:?}: {}",
            shown.stderr
        );
    }
    stage.run(&format!("{line} --yes")).await?.done()?;
    ended(&stage, &line).await
}

/// trust 23: objects are stored, and nothing happens without acceptance; then each is written again.
#[tokio::test]
async fn t23_objects_are_written_again_where_that_is_accepted() -> Result<()> {
    let stage = Stage::new("stored-objects").await?;
    brought(&stage, &[&["v1alpha1"]]).await?;
    policies(&stage, "v1alpha1", &["a", "b", "c"]).await?;
    brought(&stage, &[&["v1alpha1"], &["v1alpha1", "v1"]]).await?;
    let line = line(&stage, "3.0.0", &["v1"])?;
    let before = revision(&stage, "a").await?;
    let named = ["v1alpha1", "3 Policies", "--migrate-stored-versions"];
    for refused in [format!("{line} --dry-run"), format!("{line} --yes")] {
        let mark = stage.cluster.audit().mark()?;
        let said = stage.run(&refused).await?.ended(4)?;
        for words in named {
            ensure!(said.stderr.contains(words), "no {words:?}: {}", said.stderr);
        }
        let writes = stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{refused}: {writes} writes");
    }
    let accepted = format!("{line} --migrate-stored-versions");
    let shown = stage.run(&format!("{accepted} --dry-run")).await?.done()?;
    for words in ["3 Policies", "written again in v1", "no rollback"] {
        ensure!(
            shown.stderr.contains(words),
            "no {words:?}: {}",
            shown.stderr
        );
    }
    let done = stage.run(&format!("{accepted} --yes")).await?.done()?;
    ensure!(done.stderr.contains("3 migrated"), "{}", done.stderr);
    ensure!(
        revision(&stage, "a").await? != before,
        "it was not written again"
    );
    ended(&stage, &line).await
}

/// trust 23: the version in which objects are stored so far is dropped at once, for a new one; on a terminal it asks.
#[tokio::test]
async fn t23_the_storage_version_itself_is_dropped_and_a_terminal_asks() -> Result<()> {
    let stage = Stage::new("stored-at-once").await?;
    brought(&stage, &[&["v1alpha1"]]).await?;
    policies(&stage, "v1alpha1", &["a", "b"]).await?;
    let line = line(&stage, "2.0.0", &["v1"])?;
    let args: Vec<&str> = line.split_whitespace().collect();
    let told = stage.plugin.run_on_terminal(&args, "n\n").await?.stdout;
    ensure!(
        told.contains("[y/N]") && told.contains("v1alpha1"),
        "{told}"
    );
    let found = live(&stage).await?;
    ensure!(
        found == (json!(["v1alpha1"]), vec!["v1alpha1".to_owned()]),
        "{found:?}"
    );
    let told = stage.plugin.run_on_terminal(&args, "y\ny\n").await?;
    let told = told.done()?.stdout;
    ensure!(told.contains("2 migrated"), "{told}");
    revision(&stage, "b").await?;
    ended(&stage, &line).await
}

/// A policy of the API server that lets nobody change the object `bad`.
fn guard(stage: &Stage) -> Value {
    let name = &stage.namespace;
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
         "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [group(stage)], "apiVersions": ["*"],
            "operations": ["UPDATE"], "resources": ["policies"]}]},
            "validations": [{"expression": "object.metadata.name != 'bad'", "message": "bad stays as it is"}]}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
         "spec": {"policyName": name, "validationActions": ["Deny"]}},
    ]})
}

/// trust 23: an object that admission refuses is named and stops the removal; the next run continues without being asked again.
#[tokio::test]
async fn t23_a_refused_object_is_named_and_stops_the_removal() -> Result<()> {
    let stage = Stage::new("stored-refused").await?;
    brought(&stage, &[&["v1alpha1"]]).await?;
    policies(&stage, "v1alpha1", &["bad", "good"]).await?;
    stage.apply(&guard(&stage).to_string()).await?;
    let (plural, namespace) = (plural(&stage), stage.namespace.clone());
    until("the guard", async || {
        let try_it = [
            "annotate",
            &plural,
            "bad",
            "-n",
            &namespace,
            "a=b",
            "--dry-run=server",
        ];
        let said = stage.plugin.kubectl(&try_it).await?;
        Ok((said.code != 0).then_some(()).ok_or(said.stdout))
    })
    .await?;
    let line = line(&stage, "2.0.0", &["v1"])?;
    let accepted = format!("{line} --migrate-stored-versions --yes");
    let said = stage.run(&accepted).await?.ended(6)?;
    for words in ["Policy bad", "bad stays as it is"] {
        ensure!(said.stderr.contains(words), "no {words:?}: {}", said.stderr);
    }
    let found = live(&stage).await?;
    ensure!(
        found
            == (
                json!(["v1alpha1", "v1"]),
                vec!["v1".to_owned(), "v1alpha1 unserved".to_owned()]
            ),
        "{found:?}"
    );
    for kind in [
        "validatingadmissionpolicybinding",
        "validatingadmissionpolicy",
    ] {
        stage.kubectl(&["delete", kind, &stage.namespace]).await?;
    }
    until("the end of the guard", async || {
        let said = stage.run(&format!("{line} --yes")).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    ended(&stage, &line).await
}
