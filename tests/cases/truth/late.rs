//! What happens after the plan was made: marks that come late, answers that are lost, objects that others replace, versions that leave.

use addons_tests::chaos::rig::Rig;
use addons_tests::plugin::Output;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::{Stage, config_map, recorded};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Runs a command of which one request for each of these faults is held up; `meanwhile` is done when all of them have come.
async fn held_up<const N: usize>(
    rig: &Rig,
    requests: [Fault; N],
    line: &str,
    meanwhile: impl AsyncFn() -> Result<()>,
) -> Result<Output> {
    let before = rig.proxy.hits();
    for request in requests {
        rig.proxy.fault(request);
    }
    let changing = async {
        until("the requests that are held up", async || {
            let hits = rig.proxy.hits() - before;
            Ok((hits == N)
                .then_some(())
                .ok_or_else(|| format!("{hits} of {N}")))
        })
        .await?;
        meanwhile().await?;
        rig.proxy.heal();
        Ok::<_, anyhow::Error>(())
    };
    let (said, changed) = tokio::join!(rig.run(line), changing);
    changed?;
    said
}

/// The first write of this kind to an object, which is held up.
fn held(method: &str, path: &str) -> Fault {
    let held = Fault::at(1, Action::Hold);
    held.method(method).path(path).writes()
}

/// The names of the recorded objects.
async fn names(stage: &Stage, record: &str) -> Result<Vec<String>> {
    let record = stage.record(record).await?;
    let names = recorded(&record).filter_map(|object| object["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

#[tokio::test]
async fn n22_a_mark_counts_until_the_object_is_deleted() -> Result<()> {
    let rig = Rig::new("late-marks").await?;
    let stage = &rig.stage;
    let always = config_map("always", "1");
    let dropped = ["marked", "let-go", "edited", "plain"].map(|name| config_map(name, "1"));
    let all = format!("{always}{}", dropped.concat());
    let first = stage.index("first.yaml", &[("set", "1.0.0", &all)])?;
    let second = stage.index("second.yaml", &[("set", "2.0.0", &always)])?;
    stage
        .run(&format!("install set --channel {first} --yes"))
        .await?
        .done()?;
    let late = ["marked", "let-go", "edited"].map(|name| {
        let path = format!("/configmaps/{name}");
        held("DELETE", &path)
    });
    let upgrade = format!("upgrade set --channel {second} --yes --timeout 100s");
    let said = held_up(&rig, late, &upgrade, async || {
        let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
        stage.patch("configmap", "marked", &keep).await?;
        let unlabel = json!({"metadata": {"labels": {"kubectl-addons.dev/owner": null}}});
        stage.patch("configmap", "let-go", &unlabel).await?;
        stage
            .patch("configmap", "edited", &json!({"data": {"key": "2"}}))
            .await
    })
    .await?
    .done()?
    .stderr;
    for told in [
        "ConfigMap marked: it is retained: it carries helm.sh/resource-policy: keep",
        "ConfigMap let-go: it is left alone and forgotten: it no longer carries our label",
    ] {
        ensure!(said.contains(told), "not said: {told}\n{said}");
    }
    for (name, stays) in [
        ("marked", true),
        ("let-go", true),
        ("edited", false),
        ("plain", false),
    ] {
        ensure!(
            stage.has("configmap", name).await? == stays,
            "{name}: {said}"
        );
    }
    ensure!(names(stage, "set").await? == ["always", "marked"], "{said}");
    // Without the mark it goes with the installation.
    let unmark = json!({"metadata": {"annotations": {"helm.sh/resource-policy": null}}});
    stage.patch("configmap", "marked", &unmark).await?;
    stage.run("uninstall set --yes").await?.done()?;
    ensure!(!stage.has("configmap", "marked").await?, "it stays");
    ensure!(stage.has("configmap", "let-go").await?, "it is deleted");
    Ok(())
}

/// API group of a user's own kind `Till`.
fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

/// Its definition with these versions: name, whether it is stored.
fn definition(stage: &Stage, versions: &[(&str, bool)]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": "string"}}}}}});
    let versions = versions.iter().map(
        |(name, storage)| json!({"name": name, "served": true, "storage": storage, "schema": schema}),
    );
    let group = group(stage);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tills.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "tills", "singular": "till", "kind": "Till"},
            "versions": versions.collect::<Vec<_>>()},
    })
}

fn till(stage: &Stage, version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{}/{version}", group(stage)), "kind": "Till", "metadata": {"name": name}, "spec": spec})
}

/// Objects as the manifest of an add-on.
fn manifest(objects: &[Value]) -> String {
    let objects = objects.iter().map(|object| format!("{object}\n---\n"));
    std::iter::once(config_map("always", "1"))
        .chain(objects)
        .collect()
}

/// A definition is deleted with its objects: none of them may have been kept.
#[tokio::test]
async fn n22_a_definition_stays_for_an_object_that_is_kept_late() -> Result<()> {
    let rig = Rig::new("late-definition").await?;
    let stage = &rig.stage;
    let objects = [
        definition(stage, &[("v1", true)]),
        till(stage, "v1", "a", json!({"color": "red"})),
    ];
    let index = stage.index("index.yaml", &[("shop", "1.0.0", &manifest(&objects))])?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;
    let line = "uninstall shop --delete-crds --yes --timeout 100s";
    let resource = format!("tills.{}", group(stage));
    let said = held_up(&rig, [held("DELETE", "/tills/a")], line, async || {
        let keep = json!({"metadata": {"annotations": {"kubectl-addons.dev/prune": "false"}}});
        stage.patch(&resource, "a", &keep).await
    })
    .await?
    .done()?
    .stderr;
    for told in [
        "Till a: it is retained: it carries kubectl-addons.dev/prune: false".to_owned(),
        format!(
            "CustomResourceDefinition {resource}: it is retained: {}/Till a stays, and is of its kind",
            stage.namespace
        ),
    ] {
        ensure!(said.contains(&told), "not said: {told}\n{said}");
    }
    ensure!(
        stage.has(&resource, "a").await?,
        "it was deleted with its definition"
    );
    stage
        .kubectl(&["delete", "customresourcedefinition", &resource])
        .await
        .map(drop)
}

/// The managers of an object, with the version that each names.
async fn managers(stage: &Stage, resource: &str, name: &str) -> Result<Vec<(String, String)>> {
    let args = ["get", resource, name, "--show-managed-fields", "-o", "json"];
    let live: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let entries = live["metadata"]["managedFields"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = entries.into_iter().flatten();
    Ok(entries
        .map(|entry| (text(&entry["manager"]), text(&entry["apiVersion"])))
        .collect())
}

/// What client-side apply owned becomes ours in a write whose answer is lost; the next apply takes away what only it wanted.
#[tokio::test]
async fn n22_a_write_whose_answer_is_lost_is_not_nothing() -> Result<()> {
    let rig = Rig::new("late-answer").await?;
    let stage = &rig.stage;
    let first = stage.index("first.yaml", &[("set", "1.0.0", &config_map("map", "1"))])?;
    let second = stage.index("second.yaml", &[("set", "2.0.0", &config_map("map", "2"))])?;
    stage
        .run(&format!("install set --channel {first} --yes"))
        .await?
        .done()?;
    let theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {extra: theirs}\n";
    stage.apply(theirs).await?;
    let live = stage.must("configmap", "map").await?;
    ensure!(live["data"]["extra"] == "theirs", "{live:#}");
    // First the apply, then the write that moves the fields.
    let lost = Fault::at(2, Action::Cut { delivered: true });
    let lost = lost.method("PATCH").path("/configmaps/map").writes();
    rig.proxy.fault(lost);
    let upgrade = format!("upgrade set --channel {second} --yes");
    let said = rig.run(&upgrade).await?.done()?.stderr;
    ensure!(rig.proxy.hits() == 1, "no answer was lost: {said}");
    let live = stage.must("configmap", "map").await?;
    ensure!(live["data"] == json!({"key": "2"}), "{said}\n{live:#}");
    let managers = managers(stage, "configmap", "map").await?;
    let is_client_side = |(name, _): &(String, String)| name == "kubectl-client-side-apply";
    ensure!(!managers.iter().any(is_client_side), "{managers:?}");
    let again = stage.run(&upgrade).await?.done()?.stderr;
    ensure!(again.contains("nothing to do"), "{again}");
    Ok(())
}

/// A field of another manager is taken by an apply whose answer is lost.
#[tokio::test]
async fn n22_what_was_taken_is_told_although_the_answer_is_lost() -> Result<()> {
    let rig = Rig::new("late-taken").await?;
    let stage = &rig.stage;
    let first = stage.index("first.yaml", &[("set", "1.0.0", &config_map("map", "1"))])?;
    let second = stage.index("second.yaml", &[("set", "2.0.0", &config_map("map", "2"))])?;
    stage
        .run(&format!("install set --channel {first} --yes"))
        .await?
        .done()?;
    stage
        .patch("configmap", "map", &json!({"data": {"key": "theirs"}}))
        .await?;
    let lost = Fault::at(1, Action::Cut { delivered: true });
    let lost = lost.method("PATCH").path("force=true").writes();
    rig.proxy.fault(lost);
    let upgrade = format!("upgrade set --channel {second} --yes");
    let said = rig.run(&upgrade).await?.done()?.stderr;
    ensure!(rig.proxy.hits() == 1, "no answer was lost: {said}");
    ensure!(
        said.contains("data.key") && said.contains("kubectl-patch"),
        "{said}"
    );
    let live = stage.must("configmap", "map").await?;
    ensure!(live["data"]["key"] == "2", "{live:#}");
    Ok(())
}

/// It is deleted and created again by another client while the apply is under way.
#[tokio::test]
async fn n22_nothing_is_taken_from_an_object_that_others_have_replaced() -> Result<()> {
    let rig = Rig::new("late-replaced").await?;
    let stage = &rig.stage;
    let first = stage.index("first.yaml", &[("set", "1.0.0", &config_map("map", "1"))])?;
    let second = stage.index("second.yaml", &[("set", "2.0.0", &config_map("map", "2"))])?;
    stage
        .run(&format!("install set --channel {first} --yes"))
        .await?
        .done()?;
    let theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {key: theirs, own: theirs}\n";
    let upgrade = format!("upgrade set --channel {second} --yes --timeout 100s");
    let apply = held("PATCH", "/configmaps/map");
    let (namespace, plugin) = (stage.namespace.as_str(), &stage.plugin);
    let said = held_up(&rig, [apply], &upgrade, async || {
        stage.delete("configmap", "map").await?;
        let create = ["create", "-n", namespace, "-f", "-"];
        let created = plugin.kubectl_with_input(&create, theirs).await?;
        created.done().map(drop)
    })
    .await?
    .ended(4)?
    .stderr;
    ensure!(
        said.contains("it was deleted and created again since the plan was made"),
        "{said}"
    );
    let live = stage.must("configmap", "map").await?;
    ensure!(
        live["data"] == json!({"key": "theirs", "own": "theirs"}),
        "{live:#}"
    );
    // The next plan knows whose it is.
    let said = stage.run(&upgrade).await?.done()?.stderr;
    ensure!(said.contains("created again by another client"), "{said}");
    let live = stage.must("configmap", "map").await?;
    ensure!(
        live["data"] == json!({"key": "2", "own": "theirs"}),
        "{live:#}"
    );
    Ok(())
}

/// What a server does with entries of managedFields in a version that their definition no longer has, and what we do about it.
#[tokio::test]
async fn n22_who_owns_what_is_not_forgotten_with_a_version() -> Result<()> {
    let stage = Stage::new("late-versions").await?;
    // With their versions, for kubectl remembers which were served.
    let [alpha, beta, stable] =
        ["v1alpha1", "v1beta1", "v1"].map(|version| format!("tills.{version}.{}", group(&stage)));
    let both = definition(&stage, &[("v1alpha1", false), ("v1beta1", true)]);
    let newer = definition(&stage, &[("v1beta1", true)]);
    let newest = definition(&stage, &[("v1", true)]);
    let index = stage.index(
        "index.yaml",
        &[
            ("shop", "1.0.0", &manifest(&[both])),
            ("shop", "2.0.0", &manifest(&[newer])),
            ("shop", "3.0.0", &manifest(&[newest])),
        ],
    )?;
    let upgrade = |version: &str| format!("upgrade shop@{version} --channel {index} --yes");
    stage
        .run(&format!("install shop@1.0.0 --channel {index} --yes"))
        .await?
        .done()?;
    for name in ["plain", "moved"] {
        let object = till(&stage, "v1beta1", name, json!({"color": "red"})).to_string();
        let apply = [
            "apply",
            "--server-side",
            "--field-manager=theirs",
            "-n",
            &stage.namespace,
            "-f",
            "-",
        ];
        let applied = stage.plugin.kubectl_with_input(&apply, &object).await?;
        applied.done()?;
        let size = json!({"spec": {"size": "big"}}).to_string();
        let patch = ["patch", &alpha, name, "--type=merge", "-p", &size];
        stage
            .kubectl(&[&patch[..], &["--field-manager=sizer"]].concat())
            .await?;
    }
    stage.run(&upgrade("2.0.0")).await?.done()?;
    let is_there =
        |all: &[(String, String)], manager: &str| all.iter().any(|(name, _)| name == manager);
    let before = managers(&stage, &beta, "moved").await?;
    ensure!(
        is_there(&before, "theirs") && is_there(&before, "sizer"),
        "{before:?}"
    );
    // Any other client's write makes the server forget all of them.
    let mut shade = 0;
    until("a server that forgets", async || {
        shade += 1;
        let color = json!({"spec": {"color": format!("blue {shade}")}}).to_string();
        let patch = ["patch", &beta, "plain", "--type=merge", "-p", &color];
        stage.kubectl(&patch).await?;
        let found = managers(&stage, &beta, "plain").await?;
        Ok(found
            .is_empty()
            .then_some(())
            .ok_or_else(|| format!("{found:?}")))
    })
    .await?;

    let migrate = format!("{} --migrate-stored-versions", upgrade("3.0.0"));
    stage.run(&migrate).await?.done()?;
    let after = managers(&stage, &stable, "moved").await?;
    ensure!(
        is_there(&after, "theirs") && is_there(&after, "sizer"),
        "{after:?}"
    );
    let version = format!("{}/v1", group(&stage));
    ensure!(after.iter().all(|(_, of)| *of == version), "{after:?}");
    Ok(())
}

/// An object that was there before us is released although managedFields name a version that is gone.
#[tokio::test]
async fn n22_an_object_is_released_although_a_version_is_gone() -> Result<()> {
    let stage = Stage::new("late-release").await?;
    let resource = format!("tills.{}", group(&stage));
    stage
        .apply(&definition(&stage, &[("v1alpha1", false), ("v1", true)]).to_string())
        .await?;
    let wait = ["wait", "--for=condition=Established", "--timeout=30s"];
    let named = format!("customresourcedefinition/{resource}");
    stage.kubectl(&[&wait[..], &[&named]].concat()).await?;
    let objects = |size: &str| manifest(&[till(&stage, "v1", "a", json!({"size": size}))]);
    let index = stage.index(
        "index.yaml",
        &[
            ("shop", "1.0.0", &objects("1")),
            ("shop", "2.0.0", &objects("2")),
        ],
    )?;
    stage
        .run(&format!("install shop@1.0.0 --channel {index} --yes"))
        .await?
        .done()?;
    // Deleted and created again by another client, in the version that leaves: from now on it is theirs.
    stage.delete(&resource, "a").await?;
    let theirs = till(&stage, "v1alpha1", "a", json!({"color": "red"})).to_string();
    let create = ["create", "-n", &stage.namespace, "-f", "-"];
    let created = stage.plugin.kubectl_with_input(&create, &theirs).await?;
    created.done()?;
    stage
        .run(&format!("upgrade shop@2.0.0 --channel {index} --yes"))
        .await?
        .done()?;
    stage
        .apply(&definition(&stage, &[("v1", true)]).to_string())
        .await?;
    until("the version has left", async || {
        let path = format!("/apis/{}/v1alpha1", group(&stage));
        let found = stage.plugin.kubectl(&["get", "--raw", &path]).await?;
        Ok((found.code != 0).then_some(()).ok_or(found.stdout))
    })
    .await?;
    stage.run("uninstall shop --yes").await?.done()?;
    let live = stage.must(&resource, "a").await?;
    ensure!(live["spec"] == json!({"color": "red"}), "{live:#}");
    let labels = live["metadata"]["labels"].to_string();
    ensure!(!labels.contains("kubectl-addons"), "{live:#}");
    let managers = managers(&stage, &resource, "a").await?;
    ensure!(
        managers.iter().any(|(name, _)| name == "kubectl-create"),
        "{managers:?}"
    );
    Ok(())
}
