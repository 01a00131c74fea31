//! The identities of the loop and of the webhook: which accounts a record can name, who makes a namespace stand for a cluster, and that
//! the rights that are shipped are enough, and no more.

use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{self, Scene, apply, catalogue, create, installation, version};
use addons_tests::stage::{config_map, tenant};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{
    CLUSTER_LOCAL, CORE_GROUP, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, RECONCILER_NAMESPACE,
    SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

use crate::reconcile::deployed::{COMPONENTS, OVERLAY, account, enrolled};

const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/base");
/// What the loop is reconciled with in the system namespace.
const ACCOUNT: &str = "--service-account=addons-admin";

/// The account of the loop with the rights of its manifests, on a cluster with our definitions.
async fn deployed(cluster: &ControlPlane, admin: &Plugin) -> Result<Plugin> {
    admin.run(&["init"]).await?.done()?;
    for file in [
        format!("{OVERLAY}/rbac.yaml"),
        format!("{BASE}/rbac.yaml"),
        format!("{COMPONENTS}/reconciler-admin/binding.yaml"),
        format!("{COMPONENTS}/reconciler-core/rbac.yaml"),
        format!("{COMPONENTS}/reconciler-compatible/rbac.yaml"),
    ] {
        admin.kubectl(&["apply", "-f", &file]).await?.done()?;
    }
    account(cluster, admin).await
}

/// An installation of this manifest, and its catalogue.
async fn record(admin: &Plugin, name: &str, namespace: &str, more: Value) -> Result<()> {
    let source = json!({"source": {"inline": {"manifest": config_map(name, "1")}}});
    let entry = json!([{"name": name, "versions": [version("1.0.0", source)]}]);
    let source = catalogue(name, SYSTEM_NAMESPACE, entry);
    create(admin, &source, &[]).await?.done()?;
    let mut spec = json!({"addonRef": {"name": name, "catalogue": name}});
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    let record = installation(name, namespace, spec);
    create(admin, &record, &[]).await?.done().map(drop)
}

/// `kubectl auth can-i LINE` for each line; the lines with another answer than expected.
async fn differing(user: &Plugin, lines: &[(&str, bool)]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (line, expected) in lines {
        let args: Vec<_> = ["auth", "can-i"]
            .into_iter()
            .chain(line.split_whitespace())
            .collect();
        let said = user.kubectl(&args).await?;
        if said.stdout.starts_with("yes") != *expected {
            wrong.push(format!("{line}: {}{}", said.stdout, said.stderr));
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn g06_the_loop_may_do_what_it_needs_and_no_more() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    let plugin = deployed(&cluster, &admin).await?;
    for object in tenant("shop") {
        apply(&admin, &object, &[]).await?.done()?;
    }
    let wrong = differing(
        &plugin,
        &[
            // Whose rights it takes.
            (
                "impersonate serviceaccounts/addons-admin -n kubectl-addons",
                true,
            ),
            (
                "impersonate serviceaccounts/addons-webhook -n kubectl-addons",
                false,
            ),
            ("impersonate serviceaccounts -n kubectl-addons", false),
            (
                "impersonate serviceaccounts/addons-reconciler -n kubectl-addons-reconciler",
                false,
            ),
            (
                "impersonate serviceaccounts/clusterrole-aggregation-controller -n kube-system",
                false,
            ),
            ("impersonate serviceaccounts/deployer -n shop", false),
            // Secrets.
            ("get secrets/addons-webhook-ca -n kubectl-addons", false),
            ("get secrets -n shop", false),
            ("list secrets -A", false),
            // Revisions of installations, and not those of workloads.
            ("create controllerrevisions.apps -n kubectl-addons", true),
            ("list controllerrevisions.apps -A", false),
            ("delete controllerrevisions.apps -n kube-system", false),
            // ConfigMaps, by name.
            ("create configmaps -n kubectl-addons", false),
            (
                "create configmaps/core-addon-rollout -n kubectl-addons",
                true,
            ),
            ("create configmaps -n shop", false),
            (
                "create addoncatalogues.kubectl-addons.dev/compatible-addons -n shop",
                true,
            ),
            ("get configmaps/addon-template-data -n kubectl-addons", true),
            ("get configmaps/addon-template-data -n shop", false),
            (
                "update configmaps/core-addon-rules -n kubectl-addons",
                false,
            ),
            // Which clusters there are.
            ("enrol addoninstallations.kubectl-addons.dev", false),
            ("create pods -n kubectl-addons-reconciler", false),
        ],
    )
    .await?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    enrolled(&admin, "shop", Some("kubeconfig")).await?;
    let wrong = differing(
        &plugin,
        &[
            ("impersonate serviceaccounts/deployer -n shop", true),
            ("create controllerrevisions.apps -n shop", true),
            ("get configmaps/addon-template-data -n shop", true),
            ("get secrets/kubeconfig -n shop", true),
            ("get secrets/other -n shop", false),
            ("list secrets -n shop", false),
        ],
    )
    .await?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn g06_no_record_names_an_account_of_the_guards() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    let plugin = deployed(&cluster, &admin).await?;
    for name in ["addons-reconciler", "addons-webhook"] {
        record(
            &admin,
            name,
            SYSTEM_NAMESPACE,
            json!({"serviceAccountName": name}),
        )
        .await?;
    }
    record(&admin, "web", SYSTEM_NAMESPACE, json!({})).await?;
    let said = plugin.run(&["reconcile", ACCOUNT]).await?;
    ensure!(said.code != 0, "{}", said.stdout);
    let web = scene::stored(&admin, "web", SYSTEM_NAMESPACE).await?;
    ensure!(web["status"]["phase"] == "Ready", "{web}");
    for name in ["addons-reconciler", "addons-webhook"] {
        let stored = scene::stored(&admin, name, SYSTEM_NAMESPACE).await?;
        let text = stored["status"].to_string();
        ensure!(
            text.contains("\"Forbidden\"") && text.contains("impersonate"),
            "{stored}"
        );
    }

    // Whoever may impersonate all accounts, as an administrator who runs the loop, takes no rights of the core group by a record.
    let core = cluster.user("rights-core", &["system:masters", CORE_GROUP])?;
    let core = Plugin::new(&cluster, &core.kubeconfig)?;
    core.run(&["init", "--policies", "--yes"]).await?.done()?;
    let named = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:addons-reconciler");
    let named = cluster.user(&named, &["system:masters"])?;
    let named = Plugin::new(&cluster, &named.kubeconfig)?;
    let reference = json!({"name": "dns", "index": "https://addons.example.test/index.yaml"});
    let wanted = installation(
        "dns",
        SYSTEM_NAMESPACE,
        json!({"addonRef": reference, "coreAddon": true}),
    );
    let words = "spec.coreAddon: only group kubectl-addons:core installs core add-ons";
    until(
        "the account of the system namespace is not core",
        async || {
            let said = create(&named, &wanted, &["--dry-run=server"]).await?;
            let is_denied = said.stderr.contains(words);
            Ok(is_denied.then_some(()).ok_or(said.stdout + &said.stderr))
        },
    )
    .await?;
    // The loop itself is.
    create(&plugin, &wanted, &["--dry-run=server"])
        .await?
        .done()
        .map(drop)
}

#[tokio::test]
async fn g06_the_narrowed_rights_are_enough() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    let plugin = deployed(&cluster, &admin).await?;
    for object in tenant("shop") {
        apply(&admin, &object, &[]).await?.done()?;
    }
    let deployer = json!({
        "serviceAccountName": "deployer", "targetNamespace": "shop", "createNamespace": false,
    });
    record(&admin, "till", "shop", deployer).await?;
    let process = plugin.start(&["reconcile", "--watch", "--store-compatible", ACCOUNT])?;
    let log = || std::fs::read_to_string(plugin.home().join("stderr")).unwrap_or_default();
    let says = async |word: &str| {
        until(word, async || {
            let record = scene::stored(&admin, "till", "shop").await?.to_string();
            let is_said = record.contains(word);
            Ok(is_said
                .then_some(())
                .ok_or_else(|| format!("{record}\n{}", log())))
        })
        .await
    };
    says("\"Forbidden\"").await?;
    enrolled(&admin, "shop", None).await?;
    says("\"phase\":\"Ready\"").await?;
    for (kind, name) in [
        ("configmap/till", "the object"),
        ("addoncatalogue/compatible-addons", "what fits"),
        ("controllerrevisions", "a revision"),
    ] {
        until(name, async || {
            let args = [
                "get",
                kind,
                "-n",
                "shop",
                "-o",
                "name",
                "--ignore-not-found",
            ];
            let found = admin.kubectl(&args).await?.done()?.stdout;
            Ok((!found.is_empty()).then_some(()).ok_or_else(log))
        })
        .await?;
    }
    drop(process);
    Ok(())
}

/// A user who may do this with all namespaces and installations, by commands as the page has them.
async fn writer(scene: &Scene, admin: &Plugin, verbs: &str) -> Result<Plugin> {
    let name = unique("labels");
    for line in [
        format!("clusterrole {name}-writes --verb=get,patch,update --resource=namespaces"),
        format!(
            "clusterrole {name} --verb={verbs} --resource=addoninstallations.kubectl-addons.dev"
        ),
        format!("clusterrolebinding {name}-writes --clusterrole={name}-writes --user={name}"),
        format!("clusterrolebinding {name} --clusterrole={name} --user={name}"),
    ] {
        let args: Vec<_> = ["create"]
            .into_iter()
            .chain(line.split_whitespace())
            .collect();
        admin.kubectl(&args).await?.done()?;
    }
    let user = scene.cluster.user(&name, &[])?;
    Plugin::new(&scene.cluster, &user.kubeconfig)
}

#[tokio::test]
async fn g06_to_enrol_a_namespace_is_a_right_of_its_own() -> Result<()> {
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let installer = writer(scene, &admin, "get,create,update,delete").await?;
    let enroller = writer(scene, &admin, "enrol").await?;
    let namespace = scene.cluster.namespace("enrolled").await?;
    let of_another = format!("{LABEL_KUBECONFIG_SECRET}=mine");
    let local = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
    let labelled = async |user: &Plugin, namespace: &str, label: &str| {
        let args = ["label", "namespace", namespace, "--overwrite", label];
        user.kubectl(&[&args[..], &["--dry-run=server"]].concat())
            .await
    };
    for label in [&of_another, &local] {
        let said = labelled(&installer, &namespace, label).await?.ended(1)?;
        let words = "needs the right to enrol addoninstallations in the whole cluster";
        ensure!(said.stderr.contains(words), "{label}: {}", said.stderr);
        labelled(&enroller, &namespace, label).await?.done()?;
    }
    // Where it leads elsewhere afterwards, the right is asked for again.
    let args = ["label", "namespace", &namespace, &of_another];
    enroller.kubectl(&args).await?.done()?;
    let other = format!("{LABEL_KUBECONFIG_SECRET}=other");
    labelled(&installer, &namespace, &other).await?.ended(1)?;
    labelled(&installer, &namespace, "team=a").await?.done()?;
    let back = format!("{LABEL_KUBECONFIG_SECRET}-");
    labelled(&installer, &namespace, &back).await?.done()?;

    // What is labelled without a guard stands for nothing all the same.
    for reserved in ["kube-system", RECONCILER_NAMESPACE] {
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": reserved}});
        apply(&admin, &made, &[]).await?.done()?;
        for label in [&of_another, &local] {
            let said = labelled(&admin, reserved, label).await?.ended(1)?;
            let words = format!("{reserved} never stands for a cluster");
            ensure!(said.stderr.contains(&words), "{label}: {}", said.stderr);
        }
    }
    let list = ["delete", "namespace", &namespace, "--wait=false"];
    admin.kubectl(&list).await?.done().map(drop)
}

#[tokio::test]
async fn g06_a_reserved_namespace_stands_for_no_cluster_without_guards() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    admin.run(&["init"]).await?.done()?;
    let label = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
    let args = ["label", "namespace", "kube-system", &label];
    admin.kubectl(&args).await?.done()?;
    let account = json!({
        "serviceAccountName": "clusterrole-aggregation-controller", "targetNamespace": "default",
    });
    record(&admin, "evil", "kube-system", account).await?;
    for line in [
        &["upgrade", "evil", "-n", "kube-system", "--yes"][..],
        &["reconcile", "-n", "kube-system"],
        &["reconcile"],
    ] {
        let said = admin.run(line).await?;
        ensure!(
            !said.stdout.contains("installed"),
            "{line:?}: {}",
            said.stdout
        );
    }
    let args = [
        "get",
        "configmap",
        "evil",
        "-n",
        "default",
        "--ignore-not-found",
    ];
    let found = admin.kubectl(&args).await?.done()?.stdout;
    ensure!(found.is_empty(), "{found}");
    let said = admin
        .run(&["install", "evil", "-n", "kube-system", "--yes"])
        .await?;
    ensure!(
        said.code != 0 && said.stderr.contains("never stands for a cluster"),
        "{}",
        said.stderr
    );
    Ok(())
}
