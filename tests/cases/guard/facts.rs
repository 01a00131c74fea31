//! What core add-ons follow from: core alone writes it, and a fact that others write neither uninstalls a core add-on nor leads it to
//! another cluster.

use std::sync::Arc;

use addons_tests::control_plane::ControlPlane;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{apply, catalogue, installation};
use addons_tests::stage::config_map as keyed;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CORE_ADDON_ROLLOUT, CORE_ADDON_RULES, CORE_GROUP,
    CUSTOM_CORE_ADDONS, FINALIZER_CORE_GUARD, LABEL_KUBECONFIG_SECRET, SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

use crate::core_addons::listed_for;

use super::core::{config_map, denied, kubectl, listed, until_denied};

/// An administrator, and a member of the core group, of a cluster with the policies and without the webhook.
struct Team {
    admin: Plugin,
    core: Plugin,
    _cluster: Arc<ControlPlane>,
}

impl Team {
    async fn new() -> Result<Self> {
        let cluster = ControlPlane::alone().await?;
        let core = cluster.user("facts-core", &["system:masters", CORE_GROUP])?;
        let team = Self {
            admin: Plugin::admin(&cluster)?,
            core: Plugin::new(&cluster, &core.kubeconfig)?,
            _cluster: cluster,
        };
        let init = ["init", "--policies", "--yes"];
        team.core.run(&init).await?.done()?;
        let create = format!("create configmap {CORE_ADDON_ROLLOUT} -n {SYSTEM_NAMESPACE}");
        until_denied(&team.admin, &create, POLICY).await?;
        Ok(team)
    }

    /// One pass of the loop, with the rights of the core group.
    async fn reconcile(&self) -> Result<String> {
        Ok(self.core.run(&["reconcile"]).await?.stderr)
    }

    /// What `kubectl get WHAT` prints.
    async fn get(&self, what: &str) -> Result<String> {
        let line = format!("get {what} --ignore-not-found");
        Ok(kubectl(&self.admin, &line).await?.done()?.stdout)
    }

    async fn apply(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            apply(&self.core, object, &[]).await?.done()?;
        }
        Ok(())
    }
}

/// What denies to write what core sets follow from.
const POLICY: &str = "ValidatingAdmissionPolicy 'kubectl-addons-core'";

/// A ConfigMap of core sets.
fn text(name: &str, key: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {key: text},
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
    })
}

/// Lists add-ons for the cluster with the list.
fn list(addons: &str) -> Value {
    let label = format!("kubernetes.io/metadata.name: {SYSTEM_NAMESPACE}");
    text(
        CUSTOM_CORE_ADDONS,
        "addons.yaml",
        &listed_for(&label, addons),
    )
}

#[tokio::test]
async fn g01_core_addons_follow_what_core_wrote_and_no_fact_uninstalls_them() -> Result<()> {
    let team = Team::new().await?;
    let mut core = catalogue(
        "core",
        SYSTEM_NAMESPACE,
        listed("dns", &config_map("dns", None)),
    );
    core["spec"]["class"] = json!("Core");
    let mut extra = catalogue(
        "extra",
        SYSTEM_NAMESPACE,
        listed("extra", &config_map("extra", None)),
    );
    extra["spec"]["class"] = json!("Core");
    let rules = r#"[{name: staged, when: '"stage" in labels', addons: [{name: dns}]}]"#;
    let rules = text(CORE_ADDON_RULES, "rules.yaml", rules);
    team.apply(&[core, extra, rules, list("[]")]).await?;
    for line in [
        format!("delete addoncatalogue core -n {SYSTEM_NAMESPACE}"),
        format!(
            r#"patch addoncatalogue core -n {SYSTEM_NAMESPACE} --type=merge -p {{"spec":{{"registry":"other.test"}}}}"#
        ),
        format!(
            r#"patch configmap {CUSTOM_CORE_ADDONS} -n {SYSTEM_NAMESPACE} --type=merge -p {{"data":null}}"#
        ),
        format!("delete configmap {CORE_ADDON_RULES} -n {SYSTEM_NAMESPACE}"),
        format!("delete configmaps --all -n {SYSTEM_NAMESPACE}"),
        format!("create configmap {CORE_ADDON_ROLLOUT} -n {SYSTEM_NAMESPACE}"),
    ] {
        denied(&team.admin, &line, POLICY).await?;
    }
    let line = format!("create configmap plain -n {SYSTEM_NAMESPACE}");
    kubectl(&team.admin, &line).await?.done()?;

    a_fact_releases_nothing(&team).await?;
    a_namespace_that_leads_elsewhere_gets_nothing(&team).await?;
    only_the_cluster_of_a_namespace_takes_its_guard(&team).await
}

/// A label of the namespace is a fact that administrators write.
async fn a_fact_releases_nothing(team: &Team) -> Result<()> {
    let label = |stage: &str| format!("label namespace {SYSTEM_NAMESPACE} stage{stage}");
    kubectl(&team.admin, &label("=prod")).await?.done()?;
    let said = team.reconcile().await?;
    ensure!(
        team.get("configmap dns -n dns -o name")
            .await?
            .contains("dns"),
        "{said}"
    );
    kubectl(&team.admin, &label("-")).await?.done()?;
    for _ in 0..2 {
        let said = team.reconcile().await?;
        let waits = format!("{SYSTEM_NAMESPACE}/dns  needs confirmation");
        let fix = "kubectl addons core release dns";
        ensure!(said.contains(&waits) && said.contains(fix), "{said}");
        let left = team.get("configmap dns -n dns -o name").await?;
        ensure!(left.contains("dns"), "{said}");
    }
    let release = ["core", "release", "dns", "-n", SYSTEM_NAMESPACE];
    team.core.run(&release).await?.done()?;
    let said = team.reconcile().await?;
    let left = team.get("configmap dns -n dns -o name").await?;
    ensure!(left.is_empty(), "{left}{said}");
    Ok(())
}

/// As if the kubeconfig of the namespace led to another cluster than before: the uids of its records are those of the former one.
async fn a_namespace_that_leads_elsewhere_gets_nothing(team: &Team) -> Result<()> {
    let uid = team
        .get("namespace kube-system -o jsonpath={.metadata.uid}")
        .await?;
    let lead = async |uid: &str| {
        let patch = json!({"status": {"cluster": {"kubeSystemUid": uid}}});
        let record = format!("addoninstallation addons-policies -n {SYSTEM_NAMESPACE}");
        let line = format!("patch {record} --subresource=status --type=merge -p {patch}");
        kubectl(&team.core, &line).await?.done().map(drop)
    };
    lead("another").await?;
    team.apply(&[list("[{name: extra}]")]).await?;
    let said = team.reconcile().await?;
    let words = "addons-policies is recorded as an installation of another cluster";
    ensure!(said.contains(words), "{said}");
    let found = format!("addoninstallation extra -n {SYSTEM_NAMESPACE} -o name");
    ensure!(team.get(&found).await?.is_empty(), "{said}");
    let install = ["install", "extra", "--yes"];
    let said = team.core.run(&install).await?.ended(4)?.stderr;
    let accept = "adopt addons-policies --new-cluster";
    ensure!(said.contains(words) && said.contains(accept), "{said}");
    ensure!(team.get(&found).await?.is_empty(), "{said}");
    lead(&uid).await?;
    let said = team.reconcile().await?;
    ensure!(team.get(&found).await?.contains("extra"), "{said}");
    Ok(())
}

/// A Cluster of the Cluster API in a namespace, and a core add-on there. Nothing leads to the cluster itself.
async fn only_the_cluster_of_a_namespace_takes_its_guard(team: &Team) -> Result<()> {
    let api = "cluster.x-k8s.io";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("clusters.{api}"), "annotations":
            {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/cluster-api"}},
        "spec": {
            "group": api, "scope": "Namespaced",
            "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let label = json!({LABEL_KUBECONFIG_SECRET: "site-kubeconfig"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sites", "labels": label},
    });
    team.apply(&[definition, namespace]).await?;
    let established = format!("wait --for=condition=Established crd clusters.{api}");
    kubectl(&team.admin, &established).await?.done()?;
    let cluster = |name: &str| {
        json!({
            "apiVersion": format!("{api}/v1beta1"), "kind": "Cluster",
            "metadata": {"name": name, "namespace": "sites", "finalizers": ["example.test/cleanup"]},
        })
    };
    let spec = json!({"addonRef": {"name": "dns", "catalogue": "core"}, "coreAddon": true});
    let mut record = installation("dns", "sites", spec);
    record["metadata"]["finalizers"] = json!([FINALIZER_CORE_GUARD]);
    team.apply(&[cluster("site"), record, cluster("foreign")])
        .await?;
    for (name, is_marked) in [("foreign", false), ("site", true)] {
        let delete = format!("delete cluster.{api} {name} --wait=false -n sites");
        kubectl(&team.admin, &delete).await?.done()?;
        let said = team.reconcile().await?;
        let found = team.get("namespace sites -o json").await?;
        let record = team.get("addoninstallation dns -n sites -o json").await?;
        ensure!(
            found.contains(ANNOTATION_CLUSTER_DELETING) == is_marked
                && record.contains(r#""finalizers""#) != is_marked,
            "{name}: {found}{record}{said}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn g02_a_core_addon_is_installed_from_what_core_accepted() -> Result<()> {
    let team = Team::new().await?;
    let others = catalogue(
        "others",
        SYSTEM_NAMESPACE,
        listed("dns", &keyed("dns", "1")),
    );
    apply(&team.admin, &others, &[]).await?.done()?;
    team.core
        .run(&["install", "dns@1.0.0", "--core", "--yes"])
        .await?
        .done()?;
    let key = "configmap dns -n dns -o jsonpath={.data.key}";
    ensure!(team.get(key).await? == "1");

    // Others replace the content of the version.
    let others = catalogue(
        "others",
        SYSTEM_NAMESPACE,
        listed("dns", &keyed("dns", "2")),
    );
    apply(&team.admin, &others, &[]).await?.done()?;
    let said = team.reconcile().await?;
    ensure!(
        said.contains("and spec.addonRef.digest is ") && team.get(key).await? == "1",
        "{said}"
    );
    let record = format!("addoninstallation dns -n {SYSTEM_NAMESPACE} -o json");
    ensure!(team.get(&record).await?.contains("ContentChanged"));
    team.core.run(&["upgrade", "dns", "--yes"]).await?.done()?;
    ensure!(team.get(key).await? == "2");
    let said = team.reconcile().await?;
    ensure!(!said.contains("spec.addonRef.digest"), "{said}");

    a_core_set_takes_nothing_that_others_write(&team).await?;
    a_source_that_moves_is_refused(&team).await
}

async fn a_core_set_takes_nothing_that_others_write(team: &Team) -> Result<()> {
    let mut web = listed("web", &keyed("web", "1"));
    apply(
        &team.admin,
        &catalogue("web", SYSTEM_NAMESPACE, web.clone()),
        &[],
    )
    .await?
    .done()?;
    let rules = text(CORE_ADDON_RULES, "rules.yaml", "[]");
    team.apply(&[rules, list("[{name: web}]")]).await?;
    let said = team.reconcile().await?;
    let found = format!(
        "addoninstallation web -n {SYSTEM_NAMESPACE} -o jsonpath={{.spec.addonRef.version}}"
    );
    ensure!(team.get(&found).await?.is_empty(), "{said}");
    let (_, digest) = said
        .split_once("or name the entry with digest: ")
        .with_context(|| said.clone())?;
    let digest: String = digest.chars().take_while(char::is_ascii_hexdigit).collect();
    team.apply(&[list(&format!("[{{name: web, digest: \"{digest}\"}}]"))])
        .await?;
    let said = team.reconcile().await?;
    ensure!(team.get(&found).await? == "1.0.0", "{said}");

    // A newer version of others is not followed.
    let source = json!({"inline": {"manifest": keyed("web", "9")}});
    let newer = json!({"version": "99.0.0", "source": source});
    web[0]["versions"]
        .as_array_mut()
        .context("no versions")?
        .push(newer);
    apply(&team.admin, &catalogue("web", SYSTEM_NAMESPACE, web), &[])
        .await?
        .done()?;
    let said = team.reconcile().await?;
    ensure!(team.get(&found).await? == "1.0.0", "{said}");
    Ok(())
}

/// Whoever may write there would decide what is installed.
async fn a_source_that_moves_is_refused(team: &Team) -> Result<()> {
    let git = json!({"remote": "https://git.example.test/core", "ref": {"branch": "main"}});
    let version = json!({"version": "1.0.0", "source": {"git": git}});
    let addons = json!([{"name": "moves", "versions": [version]}]);
    let mut moves = catalogue("moves", SYSTEM_NAMESPACE, addons);
    moves["spec"]["class"] = json!("Core");
    team.apply(&[moves, list("[{name: moves}]")]).await?;
    let said = team.reconcile().await?;
    ensure!(said.contains("give the entry a manifestHash"), "{said}");
    let install = ["install", "moves", "--core", "--yes"];
    let said = team.core.run(&install).await?.ended(4)?.stderr;
    ensure!(said.contains("give the entry a manifestHash"), "{said}");
    Ok(())
}
