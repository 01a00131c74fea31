//! What is absent in the view of a client may exist in the cluster: a kind that its table does not have, a version that is not
//! served, a field that a manifest leaves out, an API server or a definition that cannot be asked.

use addons_tests::control_plane::unique;
use addons_tests::plugin::{Output, Plugin};
use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::stage::{Stage, config_map, deployment, recorded};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// API group of a user's own kind `Till`.
fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

/// Name of its definition.
fn crd(stage: &Stage) -> String {
    format!("tills.{}", group(stage))
}

/// A version of the definition: its name, whether it is served, whether it is stored, the fields of `spec`.
fn version(name: &str, served: bool, storage: bool, fields: &[&str]) -> Value {
    let fields = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({"type": "string"})));
    let fields: serde_json::Map<String, Value> = fields.collect();
    json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}})
}

fn definition(stage: &Stage, versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": crd(stage)},
        "spec": {"group": group(stage), "scope": "Namespaced", "names": {"plural": "tills", "singular": "till", "kind": "Till"},
            "versions": versions},
    })
}

fn simple(stage: &Stage) -> Value {
    definition(stage, &[version("v1", true, true, &["color"])])
}

fn till(stage: &Stage, version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{}/{version}", group(stage)), "kind": "Till", "metadata": {"name": name},
        "spec": {"color": "red"}})
}

fn manifest(objects: &[Value]) -> String {
    let objects = objects.iter().map(|object| format!("{object}\n---\n"));
    [config_map("always", "1")]
        .into_iter()
        .chain(objects)
        .collect()
}

/// Applies a definition as another client, and waits until its kind is served.
async fn define(stage: &Stage, definition: &Value) -> Result<()> {
    stage.apply(&definition.to_string()).await?;
    let crd = format!("customresourcedefinition/{}", crd(stage));
    stage
        .kubectl(&["wait", "--for=condition=Established", "--timeout=30s", &crd])
        .await?;
    serves(stage, "v1", true).await
}

/// Waits until the API server serves a version of Tills, or does not any more.
async fn serves(stage: &Stage, version: &str, served: bool) -> Result<()> {
    let path = format!("/apis/{}/{version}", group(stage));
    until(&format!("{path}: {served}"), async || {
        let found = stage.plugin.kubectl(&["get", "--raw", &path]).await?;
        let is_served = found.stdout.contains("\"tills\"");
        Ok(if is_served == served {
            Ok(())
        } else {
            Err(found.stderr)
        })
    })
    .await
}

/// Another machine of the user of a stage, whose table of kinds is as old as this call.
async fn elsewhere(stage: &Stage) -> Result<Plugin> {
    let plugin = Plugin::new(&stage.cluster, stage.plugin.kubeconfig())?;
    let plugin = plugin.system_namespace(&stage.namespace);
    let index = stage.index(
        "known.yaml",
        &[("known", "1.0.0", &config_map("known", "1"))],
    )?;
    said(&plugin, &format!("install known --channel {index} --yes"))
        .await?
        .done()?;
    Ok(plugin)
}

async fn said(plugin: &Plugin, line: &str) -> Result<Output> {
    plugin
        .run(&line.split_whitespace().collect::<Vec<_>>())
        .await
}

#[tokio::test]
async fn n01_a_definition_that_others_use_stays_although_its_kind_is_not_known_here() -> Result<()>
{
    let stage = Stage::new("unknown-kind").await?;
    let here = elsewhere(&stage).await?;
    let operator = manifest(&[simple(&stage)]);
    let app = till(&stage, "v1", "a").to_string();
    let index = stage.index(
        "index.yaml",
        &[("operator", "1.0.0", &operator), ("app", "1.0.0", &app)],
    )?;
    for name in ["operator", "app"] {
        stage
            .run(&format!("install {name} --channel {index} --yes"))
            .await?
            .done()?;
    }
    let out = said(&here, "uninstall operator --delete-crds --yes")
        .await?
        .done()?;
    let why = format!(
        "CustomResourceDefinition {} is retained: {}/app has objects of its kind",
        crd(&stage),
        stage.namespace
    );
    ensure!(out.stderr.contains(&why), "{}", out.stderr);
    ensure!(
        stage.has(&crd(&stage), "a").await?,
        "the object of app is gone"
    );
    Ok(())
}

/// The installation is recorded in another cluster, or by a client that works elsewhere: only its objects show it.
#[tokio::test]
async fn n01_a_definition_or_namespace_with_objects_of_an_installation_that_is_recorded_elsewhere_stays()
-> Result<()> {
    let stage = Stage::new("recorded-far").await?;
    let house = format!("{}-house", stage.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": house}});
    let index = stage.index(
        "index.yaml",
        &[("operator", "1.0.0", &manifest(&[simple(&stage), namespace]))],
    )?;
    stage
        .run(&format!("install operator --channel {index} --yes"))
        .await?
        .done()?;
    let mut theirs = till(&stage, "v1", "theirs");
    theirs["metadata"]["labels"] = json!({"kubectl-addons.dev/owner": "0123456789abcdef"});
    theirs["metadata"]["annotations"] = json!({"kubectl-addons.dev/installation": "cluster-a/app"});
    theirs["metadata"]["namespace"] = json!(house);
    let manifest = theirs.to_string();
    let applied = stage
        .plugin
        .kubectl_with_input(&["apply", "-f", "-"], &manifest)
        .await?;
    applied.done()?;
    let out = stage
        .run("uninstall operator --delete-crds --delete-namespaces --yes")
        .await?
        .done()?;
    for (kept, place) in [
        (
            format!("CustomResourceDefinition {}", crd(&stage)),
            "of its kind",
        ),
        (format!("Namespace {house}"), "in it"),
    ] {
        let why = format!(
            "{kept} is retained: {house}/Till theirs is {place} and belongs to cluster-a/app"
        );
        ensure!(out.stderr.contains(&why), "no {why}: {}", out.stderr);
    }
    let left = ["get", &crd(&stage), "theirs", "-n", &house, "-o", "name"];
    stage.plugin.kubectl(&left).await?.done()?;
    Ok(())
}

#[tokio::test]
async fn n02_a_conversion_that_is_left_out_is_lost_and_with_it_the_data_that_it_converts()
-> Result<()> {
    let stage = Stage::new("conversion-left-out").await?;
    let mut old = definition(&stage, &[version("v1beta1", true, true, &["color"])]);
    old["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}});
    let both = [
        version("v1beta1", true, false, &["color"]),
        version("v1", true, true, &["paint"]),
    ];
    let new = definition(&stage, &both);
    let index = stage.index("one.yaml", &[("shop", "1.0.0", &manifest(&[old]))])?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;
    stage
        .apply(&till(&stage, "v1beta1", "theirs").to_string())
        .await?;
    let index = stage.index("two.yaml", &[("shop", "2.0.0", &manifest(&[new]))])?;
    let out = stage
        .run(&format!("upgrade shop --channel {index} --yes"))
        .await?
        .ended(1)?;
    ensure!(
        out.stderr.contains("would lose data in 1 Till"),
        "{}",
        out.stderr
    );
    let live = stage.must("crd", &crd(&stage)).await?;
    ensure!(
        live["spec"]["conversion"]["strategy"] == "Webhook",
        "{live:#}"
    );
    let theirs = stage.must(&crd(&stage), "theirs").await?;
    ensure!(theirs["spec"]["color"] == "red", "{theirs:#}");
    Ok(())
}

#[tokio::test]
async fn n03_an_object_of_a_version_that_the_upgrade_stops_serving_is_pruned() -> Result<()> {
    let stage = Stage::new("unserved-version").await?;
    let versions = |beta: bool| {
        let fields = ["color"];
        definition(
            &stage,
            &[
                version("v1", true, true, &fields),
                version("v1beta1", beta, false, &fields),
            ],
        )
    };
    let beta = |name: &str| till(&stage, "v1beta1", name);
    let first = manifest(&[versions(true), beta("a"), beta("b")]);
    let second = manifest(&[versions(false), till(&stage, "v1", "a")]);
    let index = stage.index("one.yaml", &[("shop", "1.0.0", &first)])?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;
    let index = stage.index("two.yaml", &[("shop", "2.0.0", &second)])?;
    stage
        .run(&format!("upgrade shop --channel {index} --yes"))
        .await?
        .done()?;
    ensure!(
        !stage.has(&crd(&stage), "b").await?,
        "it lives on, and no record has it"
    );
    ensure!(
        stage.has(&crd(&stage), "a").await?,
        "what is wanted is gone"
    );
    Ok(())
}

/// The table of this client has the recorded version, and another client has stopped serving it.
#[tokio::test]
async fn n03_an_unserved_version_is_not_gone() -> Result<()> {
    let stage = Stage::new("unserved-elsewhere").await?;
    let versions = |beta: bool| {
        let fields = ["color"];
        definition(
            &stage,
            &[
                version("v1", true, true, &fields),
                version("v1beta1", beta, false, &fields),
            ],
        )
    };
    define(&stage, &versions(true)).await?;
    stage
        .apply(&till(&stage, "v1beta1", "before").to_string())
        .await?;
    let mut adopted = till(&stage, "v1beta1", "before");
    adopted["spec"]["color"] = json!("red");
    let objects = manifest(&[till(&stage, "v1beta1", "ours"), adopted]);
    let index = stage.index("index.yaml", &[("shop", "1.0.0", &objects)])?;
    stage
        .run(&format!("install shop --adopt --channel {index} --yes"))
        .await?
        .done()?;
    define(&stage, &versions(false)).await?;
    serves(&stage, "v1beta1", false).await?;
    let out = stage.run("status shop").await?;
    ensure!(!out.stdout.contains("is gone"), "{}", out.stdout);
    stage.run("uninstall shop --yes").await?.done()?;
    ensure!(
        !stage.has(&crd(&stage), "ours").await?,
        "it lives on, and no record has it"
    );
    Ok(())
}

#[tokio::test]
async fn n04_objects_of_the_definitions_of_an_add_on_are_found_by_an_old_table() -> Result<()> {
    let stage = Stage::new("old-table").await?;
    let here = elsewhere(&stage).await?;
    let first = manifest(&[
        simple(&stage),
        till(&stage, "v1", "a"),
        till(&stage, "v1", "b"),
    ]);
    let second = manifest(&[simple(&stage), till(&stage, "v1", "a")]);
    let index = stage.index("one.yaml", &[("shop", "1.0.0", &first)])?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;

    let index = stage.index("two.yaml", &[("shop", "2.0.0", &second)])?;
    said(&here, &format!("upgrade shop --channel {index} --yes"))
        .await?
        .done()?;
    ensure!(!stage.has(&crd(&stage), "b").await?, "it was forgotten");
    let record = stage.record("shop").await?;
    let a = recorded(&record)
        .find(|object| object["name"] == "a")
        .cloned();
    ensure!(
        a.as_ref()
            .is_some_and(|a| a["state"].is_null() || a["state"] == "owned"),
        "{a:?}"
    );
    Ok(())
}

#[tokio::test]
async fn n04_an_object_of_somebody_else_is_refused_although_its_kind_is_not_known_here()
-> Result<()> {
    let stage = Stage::new("old-table-foreign").await?;
    let here = elsewhere(&stage).await?;
    let index = stage.index(
        "one.yaml",
        &[("shop", "1.0.0", &manifest(&[simple(&stage)]))],
    )?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;
    stage.apply(&till(&stage, "v1", "mine").to_string()).await?;
    let second = manifest(&[simple(&stage), till(&stage, "v1", "mine")]);
    let index = stage.index("two.yaml", &[("shop", "2.0.0", &second)])?;
    let out = said(&here, &format!("upgrade shop --channel {index} --yes"))
        .await?
        .ended(4)?;
    ensure!(out.stderr.contains("Till mine"), "{}", out.stderr);
    let mine = stage.must(&crd(&stage), "mine").await?;
    ensure!(
        mine["metadata"]["labels"]["kubectl-addons.dev/owner"].is_null(),
        "{mine:#}"
    );
    Ok(())
}

/// Charts have Jobs that apply their definitions before anything else.
#[tokio::test]
async fn n04_a_definition_that_a_hook_of_the_add_on_made_is_its_own() -> Result<()> {
    let stage = Stage::new("made-by-hook").await?;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "definitions", "annotations": {"helm.sh/hook": "pre-install,pre-upgrade"}},
        // It begins when the test, which plays it, has made the definition.
        "spec": {"parallelism": 0, "completions": 1, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "example.test/job:1"}]}}}});
    let objects = manifest(&[job, simple(&stage)]);
    let index = stage.index("index.yaml", &[("shop", "1.0.0", &objects)])?;
    let line = format!("install shop --channel {index} --yes --timeout 120s");
    let mut process = stage
        .plugin
        .start(&line.split_whitespace().collect::<Vec<_>>())?;
    let leash = process.leash();
    let ended = tokio::task::spawn_blocking(move || process.wait());
    until("the Job", async || {
        let job = stage.get("job", "definitions").await?;
        Ok(job.map(drop).ok_or_else(|| "it is not there".to_owned()))
    })
    .await?;
    stage.apply(&simple(&stage).to_string()).await?;
    stage
        .patch("job", "definitions", &json!({"spec": {"parallelism": 1}}))
        .await?;
    let status = ended.await??;
    drop(leash);
    let told = std::fs::read_to_string(stage.plugin.home().join("stderr"))?;
    ensure!(status.success(), "{told}");
    stage
        .run("uninstall shop --delete-crds --yes")
        .await?
        .done()?;
    let left = stage.get("crd", &crd(&stage)).await?;
    let is_going = left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string());
    ensure!(is_going, "its definition stays: {told}");
    Ok(())
}

#[tokio::test]
async fn n05_what_is_gone_with_its_definition_keeps_no_record() -> Result<()> {
    let stage = Stage::new("definition-gone").await?;
    define(&stage, &simple(&stage)).await?;
    let index = stage.index(
        "index.yaml",
        &[("app", "1.0.0", &manifest(&[till(&stage, "v1", "a")]))],
    )?;
    stage
        .run(&format!("install app --channel {index} --yes"))
        .await?
        .done()?;
    stage.kubectl(&["delete", "crd", &crd(&stage)]).await?;
    let out = stage.run("uninstall app --yes").await?.done()?;
    let told = format!(
        "{}/Till a is forgotten: the cluster no longer serves Till",
        stage.namespace
    );
    ensure!(out.stderr.contains(&told), "{}", out.stderr);
    ensure!(
        !stage.has("addoninstallation", "app").await?,
        "the record is left"
    );
    Ok(())
}

/// A definition that exists and serves nothing still has its objects.
#[tokio::test]
async fn n05_what_no_version_is_served_of_stays_recorded() -> Result<()> {
    let stage = Stage::new("nothing-served").await?;
    define(&stage, &simple(&stage)).await?;
    let index = stage.index(
        "index.yaml",
        &[("app", "1.0.0", &manifest(&[till(&stage, "v1", "a")]))],
    )?;
    stage
        .run(&format!("install app --channel {index} --yes"))
        .await?
        .done()?;
    let unserved = definition(&stage, &[version("v1", false, true, &["color"])]);
    stage.apply(&unserved.to_string()).await?;
    serves(&stage, "v1", false).await?;
    let out = stage.run("uninstall app --yes").await?.ended(1)?;
    let told = format!(
        "no version of CustomResourceDefinition {} is served",
        crd(&stage)
    );
    ensure!(out.stderr.contains(&told), "{}", out.stderr);
    define(&stage, &simple(&stage)).await?;
    stage.run("uninstall app --yes").await?.done()?;
    ensure!(!stage.has(&crd(&stage), "a").await?, "it lives on");
    Ok(())
}

#[tokio::test]
async fn n05_a_version_that_the_command_itself_stops_serving_is_refused_before_the_first_write()
-> Result<()> {
    let stage = Stage::new("own-version-unserved").await?;
    let fields = ["color"];
    let both = [
        version("v1", true, true, &fields),
        version("v1beta1", true, false, &fields),
    ];
    let first = manifest(&[definition(&stage, &both)]);
    let index = stage.index("one.yaml", &[("shop", "1.0.0", &first)])?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;
    // With this, the table of kinds has both versions.
    let early = till(&stage, "v1beta1", "early").to_string();
    let index = stage.index("early.yaml", &[("app", "1.0.0", &early)])?;
    stage
        .run(&format!("install app --channel {index} --yes"))
        .await?
        .done()?;
    let second = manifest(&[simple(&stage), till(&stage, "v1beta1", "late")]);
    let index = stage.index("two.yaml", &[("shop", "2.0.0", &second)])?;
    let out = stage
        .run(&format!("upgrade shop --channel {index} --yes"))
        .await?;
    ensure!(out.code != 0, "{}", out.stderr);
    let told = format!(
        "the cluster does not serve Till in {}/v1beta1",
        group(&stage)
    );
    ensure!(out.stderr.contains(&told), "{}", out.stderr);
    let live = stage.must("crd", &crd(&stage)).await?;
    ensure!(
        live["spec"]["versions"]
            .as_array()
            .is_some_and(|all| all.len() == 2),
        "{live:#}"
    );
    Ok(())
}

#[tokio::test]
async fn n05_a_namespace_stays_while_an_api_group_is_silent() -> Result<()> {
    let stage = Stage::new("silent-group").await?;
    let made = format!("{}-made", stage.namespace);
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("a", "1"))])?;
    let line = format!("install web --target-namespace {made} --channel {index} --yes");
    stage.run(&line).await?.done()?;

    let groups = stage
        .plugin
        .kubectl(&["get", "--raw", "/apis"])
        .await?
        .done()?;
    let mut groups: Value = serde_json::from_str(&groups.stdout)?;
    let version = json!({"groupVersion": "silent.example.test/v1", "version": "v1"});
    let silent = json!({"name": "silent.example.test", "versions": [version.clone()], "preferredVersion": version});
    if let Some(groups) = groups["groups"].as_array_mut() {
        // Groups of other tests may be gone in a moment, and would be silent as well.
        groups.retain(|group| {
            let name = group["name"].as_str().unwrap_or_default();
            !name.contains('.') || name.ends_with(".k8s.io") || name == "kubectl-addons.dev"
        });
        groups.push(silent);
    }
    let proxy = Proxy::start(&stage.cluster)?;
    proxy.fault(Fault::always(Action::Say(groups.to_string())).at_path("/apis"));
    let plugin =
        Plugin::new(&stage.cluster, proxy.kubeconfig())?.system_namespace(&stage.namespace);
    let out = said(&plugin, "uninstall web --yes --timeout 20s").await?;
    ensure!(
        out.stderr.contains("API group silent.example.test"),
        "{}",
        out.stderr
    );
    let kept = stage.get("namespace", &made).await?;
    let stays = kept.is_some_and(|kept| kept["metadata"]["deletionTimestamp"].is_null());
    ensure!(stays, "{}", out.stderr);
    stage
        .kubectl(&["delete", "namespace", &made, "--wait=false"])
        .await?;
    Ok(())
}

#[tokio::test]
async fn n05_what_a_reader_may_not_read_is_not_broken() -> Result<()> {
    let stage = Stage::new("may-not-read").await?;
    let objects = [config_map("always", "1"), deployment("web", 1, None)].concat();
    let index = stage.index("index.yaml", &[("shop", "1.0.0", &objects)])?;
    stage
        .run(&format!("install shop --channel {index} --yes"))
        .await?
        .done()?;
    let name = unique("reader");
    let api = "rbac.authorization.k8s.io";
    let rules = json!([
        {"apiGroups": ["kubectl-addons.dev"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["get", "list"]}]);
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": name}]});
    for object in [role, binding] {
        stage.apply(&object.to_string()).await?;
    }
    let user = stage.cluster.user(&name, &[])?;
    let reader = Plugin::new(&stage.cluster, &user.kubeconfig)?.system_namespace(&stage.namespace);
    for line in ["list", "status shop"] {
        let out = said(&reader, line).await?;
        ensure!(
            out.code == 0 && !out.stdout.contains("Degraded"),
            "{line}: {out:?}"
        );
    }
    let out = said(&reader, "status shop").await?;
    ensure!(out.stdout.contains("cannot be read"), "{out:?}");
    Ok(())
}

#[tokio::test]
async fn n05_a_server_that_finds_nothing_is_not_an_empty_cluster() -> Result<()> {
    let stage = Stage::new("finds-nothing").await?;
    let proxy = Proxy::start(&stage.cluster)?;
    proxy.fault(Fault::always(Action::Answer {
        status: 404,
        retry_after: None,
    }));
    let plugin = Plugin::new(&stage.cluster, proxy.kubeconfig())?;
    let out = said(&plugin, "list").await?.ended(1)?;
    ensure!(
        out.stderr
            .contains("does not answer as a Kubernetes API server does"),
        "{out:?}"
    );
    Ok(())
}
