//! What a live Argo CD or Flux object applies is not taken from it.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

/// A definition of another project, as far as it matters here.
fn definition(group: &str, version: &str, kind: &str, plural: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}, singular: {}}}\n  \
         versions:\n  - name: {version}\n    served: true\n    storage: true\n    \
         schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n---\n",
        kind.to_lowercase()
    )
}

#[tokio::test]
async fn what_a_live_object_applies_is_refused_by_name() -> Result<()> {
    let stage = Stage::new("adopt-live").await?;
    let at = stage.namespace.as_str();
    for (group, version, kind, plural) in [
        ("argoproj.io", "v1alpha1", "Application", "applications"),
        (
            "kustomize.toolkit.fluxcd.io",
            "v1",
            "Kustomization",
            "kustomizations",
        ),
        (
            "helm.toolkit.fluxcd.io",
            "v2",
            "HelmRelease",
            "helmreleases",
        ),
    ] {
        let text = definition(group, version, kind, plural);
        stage.apply(&text).await?;
        let name = format!("crd/{plural}.{group}");
        let wait = ["wait", "--for=condition=Established", &name];
        stage.kubectl(&wait).await?;
        // Two objects by one owner: it is asked for once.
        let marks = match kind {
            "Application" => format!(
                "annotations: {{argocd.argoproj.io/tracking-id: '{at}:/ConfigMap:{at}/settings'}}"
            ),
            _ => format!("labels: {{{group}/name: shop, {group}/namespace: {at}}}"),
        };
        let marked = |name: &str| {
            config_map(name, "1")
                .replace(&format!("name: {name}"), &format!("name: {name}, {marks}"))
        };
        stage
            .apply(&[marked("settings"), marked("more")].concat())
            .await?;
        let manifest = [config_map("settings", "2"), config_map("more", "2")].concat();
        let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
        let line = format!("install web --channel {index} --adopt --yes");
        let name = if kind == "Application" { at } else { "shop" };
        let owner = format!(
            "apiVersion: {group}/{version}\nkind: {kind}\nmetadata: {{name: {name}}}\n---\n"
        );

        stage.apply(&owner).await?;
        let said = stage.run(&line).await?.ended(4)?.stderr;
        let called = match kind {
            "Application" => {
                format!("is applied by Argo CD application {at}, which would take it back")
            }
            _ => format!("is applied by Flux {kind} {at}/shop, which would take it back"),
        };
        ensure!(said.matches(&called).count() == 2, "{called}: {said}");
        ensure!(said.contains("accept: --adopt --force-adopt"), "{said}");
        stage.run(&format!("{line} --force-adopt")).await?.done()?;
        stage.run("uninstall web --yes").await?.done()?;

        // It is gone: what it left behind belongs to no one.
        stage
            .apply(&[marked("settings"), marked("more")].concat())
            .await?;
        stage
            .kubectl(&["delete", &format!("{plural}.{group}"), name])
            .await?;
        let said = stage.run(&line).await?.done()?.stderr;
        ensure!(said.contains("2 adopted"), "{said}");
        stage.run("uninstall web --yes").await?.done()?;
    }
    Ok(())
}

#[tokio::test]
async fn what_a_controller_makes_is_refused() -> Result<()> {
    let stage = Stage::new("adopt-controlled").await?;
    stage.apply(&config_map("front", "1")).await?;
    let front = stage.must("configmap", "front").await?;
    let uid = front["metadata"]["uid"].as_str().unwrap_or_default();
    let marks = format!(
        "name: settings, ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: front, uid: {uid}, controller: true}}]"
    );
    stage
        .apply(&config_map("settings", "1").replace("name: settings", &marks))
        .await?;
    let index = stage.index(
        "index.yaml",
        &[("web", "1.0.0", &config_map("settings", "2"))],
    )?;
    let line = format!("install web --channel {index} --adopt --force-adopt --yes");
    let said = stage.run(&line).await?.ended(4)?.stderr;
    ensure!(
        said.contains("ConfigMap settings is made by its controller, ConfigMap front"),
        "{said}"
    );
    Ok(())
}
