//! Records that older versions kept in kube-system or in the namespaces of entries move to the system namespace, and nothing else
//! does (semantics 5).

mod forged;
mod interrupted;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::Plugin;
use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Context as _, Result, ensure};
use common::api::names::{field_manager, owner_hash};
use serde_json::Value;

const OWNER: &str = "kubectl-addons.dev/owner";

/// One object with everything, or null.
async fn get(plugin: &Plugin, kind: &str, namespace: &str, name: &str) -> Result<Value> {
    let args = ["get", kind, name, "-n", namespace, "-o", "json"];
    let flags = ["--ignore-not-found", "--show-managed-fields"];
    let said = plugin
        .kubectl(&[&args[..], &flags].concat())
        .await?
        .done()?;
    if said.stdout.trim().is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(&said.stdout)?)
}

/// What an apply could have changed: all but the marks, and what follows from them. The generation of a Deployment counts changes of
/// its annotations, too.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Deployment" {
        object["metadata"]["generation"] = Value::Null;
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["labels", "annotations", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
    }
    object["status"] = Value::Null;
    object
}

/// The uids of the pods of the Deployment.
async fn pods_of(plugin: &Plugin, namespace: &str) -> Result<Vec<String>> {
    let args = ["get", "pods", "-n", namespace, "-l", "app=web", "-o"];
    let uids = "jsonpath={.items[*].metadata.uid}";
    let said = plugin
        .kubectl(&[&args[..], &[uids]].concat())
        .await?
        .done()?;
    let mut uids: Vec<String> = said.stdout.split_whitespace().map(str::to_owned).collect();
    ensure!(!uids.is_empty(), "there are no pods");
    uids.sort();
    Ok(uids)
}

/// Runs the plugin with the arguments separated by blanks.
async fn run(plugin: &Plugin, line: &str, code: i32) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = plugin.run(&words).await?;
    let said = said.ended(code).with_context(|| line.to_owned())?;
    Ok(said.stderr)
}

/// An index with one entry `name`, whose objects go to the namespace `target`.
fn index(plugin: &Plugin, name: &str, target: &str, manifest: &str) -> Result<String> {
    let file = format!("{name}-{target}.yaml");
    std::fs::write(plugin.home().join(&file), manifest)?;
    let index = format!(
        "kind: Addons\nmetadata: {{name: test}}\nspec:\n  addons:\n  \
         - {{name: {name}, version: 1.0.0, namespace: {target}, manifest: {file}}}\n"
    );
    let path = plugin.home().join(format!("index-{file}"));
    std::fs::write(&path, index)?;
    Ok(path.to_string_lossy().into_owned())
}

/// An installation as an older version left it. Never by a label: what stands for this cluster is seen by every test on it.
async fn install(plugin: &Plugin, at: &str, name: &str, index: &str) -> Result<()> {
    let line = format!("install {name} --system-namespace={at} --channel {index} --yes");
    run(plugin, &line, 0).await.map(drop)
}

/// That an object has this owner and nothing is left of the former one.
fn handed_over(object: &Value, from: (&str, &str), to: (&str, &str)) -> Result<()> {
    let metadata = &object["metadata"];
    let hash = owner_hash(to.0, to.1);
    ensure!(metadata["labels"][OWNER] == hash.as_str(), "{object:#}");
    let pair = &metadata["annotations"]["kubectl-addons.dev/installation"];
    ensure!(*pair == format!("{}/{}", to.0, to.1), "{object:#}");
    let managers = metadata["managedFields"].to_string();
    let (former, new) = (field_manager(from.0, from.1), field_manager(to.0, to.1));
    ensure!(!managers.contains(&former), "{managers}");
    ensure!(
        object["kind"] == "Namespace" || managers.contains(&new),
        "{managers}"
    );
    Ok(())
}

/// Objects of the installation in kube-system; those with a namespace are in `shop`.
const OBJECTS: [(&str, &str); 5] = [
    ("configmap", "settings"),
    ("secret", "key"),
    ("clusterrole", "dns"),
    ("deployment", "web"),
    ("namespace", "shop"),
];
const OTHERS: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {a: b}\n---\n\
    apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: dns}\nrules: []\n---\n\
    apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  ttlSecondsAfterFinished: 1\n  template:\n    \
    spec: {restartPolicy: Never, containers: [{name: main, image: 'example.test/once:1'}]}\n---\n";

async fn objects(plugin: &Plugin) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (kind, name) in OBJECTS {
        objects.push(get(plugin, kind, "shop", name).await?);
    }
    Ok(objects)
}

/// Every command says what to do about it, and init does nothing by itself.
async fn stays_until_the_user_agrees(admin: &Plugin) -> Result<()> {
    let refused = run(admin, "upgrade dns --yes", 2).await?;
    ensure!(refused.contains("kubectl addons init"), "{refused}");
    let listed = run(admin, "list", 0).await?;
    for words in ["kube-system/dns", "kubectl addons init"] {
        ensure!(listed.contains(words), "{words}: {listed}");
    }
    let asked = run(admin, "init", 0).await?;
    for words in [
        "index file://",
        "written   by kubectl-addons",
        "--move kube-system/dns",
    ] {
        ensure!(asked.contains(words), "{words}: {asked}");
    }
    let unknown = run(admin, "init --move kube-system/dms", 2).await?;
    ensure!(unknown.contains("kube-system/dms"), "{unknown}");
    let moved = get(admin, "addoninstallation", "kubectl-addons", "dns").await?;
    ensure!(moved == Value::Null, "{moved:#}");
    Ok(())
}

/// trust 1: kube-system is where older versions kept records of indexes.
#[tokio::test]
async fn t01_a_record_of_an_older_version_moves_and_nothing_is_applied_again() -> Result<()> {
    let cluster = ControlPlane::start(Options::api_only()).await?;
    let admin = Plugin::admin(&cluster)?;
    run(&admin, "init", 0).await?;
    let manifest = format!(
        "{}{}{OTHERS}",
        config_map("settings", "1"),
        deployment("web", 2, None)
    );
    let index = index(&admin, "dns", "shop", &manifest)?;
    install(&admin, "kube-system", "dns", &index).await?;
    let (pods, before) = (pods_of(&admin, "shop").await?, objects(&admin).await?);
    let old = get(&admin, "addoninstallation", "kube-system", "dns").await?;
    stays_until_the_user_agrees(&admin).await?;

    let moved = run(&admin, "init --move kube-system/dns", 0).await?;
    let words = "kube-system/dns moved to kubectl-addons/dns";
    ensure!(moved.contains(words), "{moved}");
    let gone = get(&admin, "addoninstallation", "kube-system", "dns").await?;
    ensure!(gone == Value::Null, "{gone:#}");
    let new = get(&admin, "addoninstallation", "kubectl-addons", "dns").await?;
    ensure!(new["spec"] == old["spec"], "{new:#}");
    for field in ["installed", "createdNamespace", "phase", "history"] {
        let (now, then) = (&new["status"][field], &old["status"][field]);
        ensure!(now == then, "{field}: {now:#}\ninstead of\n{then:#}");
    }
    ensure!(new["status"]["operation"] == Value::Null, "{new:#}");
    for (now, before) in objects(&admin).await?.iter().zip(&before) {
        let (is, was) = (content(now), content(before));
        ensure!(is == was, "{now:#}\ninstead of\n{before:#}");
        handed_over(now, ("kube-system", "dns"), ("kubectl-addons", "dns"))?;
    }

    // The moved installation is one as any other.
    let mark = cluster.audit().mark()?;
    let said = run(&admin, "upgrade dns --yes", 0).await?;
    ensure!(said.contains("nothing to do"), "{said}");
    let writes = cluster.audit().since(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{writes} writes");
    // All but the Secret, of which no digest is kept, is known to be as it was applied; the Job does not run again.
    let said = run(&admin, "upgrade dns --repair --yes", 0).await?;
    ensure!(said.contains("1 changed, 4 unchanged"), "{said}");
    let now = pods_of(&admin, "shop").await?;
    ensure!(now == pods, "pods were restarted: {now:?}, not {pods:?}");
    let again = run(&admin, "init", 0).await?;
    ensure!(!again.contains("dns"), "{again}");
    run(&admin, "uninstall dns --yes", 0).await?;
    for left in objects(&admin).await? {
        let is_going = !left["metadata"]["deletionTimestamp"].is_null();
        ensure!(left == Value::Null || is_going, "{left:#}");
    }
    Ok(())
}

/// trust 1: kops tells entries of one name apart by their namespaces.
#[tokio::test]
async fn t01_a_record_whose_name_is_taken_gets_another_one() -> Result<()> {
    let stage = Stage::new("taken").await?;
    let (plugin, system) = (&stage.plugin, stage.namespace.as_str());
    let old = format!("{system}-old");
    plugin
        .kubectl(&["create", "namespace", &old])
        .await?
        .done()?;
    let second = index(plugin, "dns", &old, &config_map("dns", "2"))?;
    install(plugin, &old, "dns", &second).await?;
    let first = stage.index("first.yaml", &[("dns", "1.0.0", &config_map("dns", "1"))])?;
    run(plugin, &format!("install dns --channel {first} --yes"), 0).await?;
    let before = get(plugin, "configmap", &old, "dns").await?;
    let other = stage.record("dns").await?;
    let said = run(plugin, &format!("init --move {old}/dns"), 0).await?;
    let name = common::api::names::second_name("dns", &old);
    ensure!(
        said.contains(&format!("moved to {system}/{name}")),
        "{said}"
    );
    ensure!(
        stage.record("dns").await? == other,
        "the other one was changed"
    );
    let now = get(plugin, "configmap", &old, "dns").await?;
    ensure!(content(&now) == content(&before), "{now:#}");
    handed_over(&now, (&old, "dns"), (system, &name))?;
    // It is the name that install itself would choose.
    for line in [
        format!("upgrade {name} --yes"),
        format!("install dns --channel {second} --yes"),
    ] {
        let said = run(plugin, &line, 0).await?;
        ensure!(
            said.contains(&format!("{name}  1.0.0  nothing to do")),
            "{line}: {said}"
        );
    }
    Ok(())
}
