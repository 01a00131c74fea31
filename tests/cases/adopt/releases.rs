//! What helm installed.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, deployment};
use anyhow::{Result, ensure};
use serde_json::json;

use super::tools::{helm, releases};
use super::{managers, pods, ready};

/// A chart with a password of its own making, and a value that the next version drops.
fn templates(is_dropped: bool) -> [(&'static str, String); 2] {
    let web = deployment("web", 2, None);
    let dropped = if is_dropped { "" } else { ", dropped: 'yes'" };
    let rest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{key: '1'{dropped}}}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: db}}\nstringData: {{password: {{{{ randAlphaNum 20 }}}}}}\n"
    );
    [("templates/web.yaml", web), ("templates/rest.yaml", rest)]
}

#[tokio::test]
async fn a_release_is_adopted_object_by_object() -> Result<()> {
    let stage = Stage::new("adopt-helm").await?;
    let namespace = stage.namespace.as_str();
    let shelf = Shelf::new()?;
    let chart = |version: &str, is_dropped| {
        let files = templates(is_dropped);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        shelf.chart("web", version, &files)
    };
    let (old, new) = (chart("1.0.0", false)?, chart("1.1.0", true)?);
    let old = old.to_string_lossy().into_owned();
    let helm = binaries::helm()?;
    let kubeconfig = stage.plugin.kubeconfig().to_string_lossy().into_owned();
    let flags = ["--namespace", namespace, "--kubeconfig", &kubeconfig];
    let install = [&["install", "web", &old], &flags[..]].concat();
    stage.plugin.program(&helm, &install).await?.done()?;
    ready(&stage).await?;
    let before = pods(&stage).await?;
    let password = stage.must("secret", "db").await?["data"].clone();
    let version = json!({"version": "1.1.0", "template": {"method": "helm"}, "source": {"url": {"manifest": new}}});
    let file = stage.catalogue("web", &version)?;
    let flags = format!("--channel {} --helm-bin {}", file.display(), helm.display());

    let said = stage.run(&format!("install web {flags} --yes")).await?;
    let said = said.ended(4)?.stderr;
    ensure!(
        said.contains(&format!("belongs to Helm release {namespace}/web")),
        "{said}"
    );
    let said = stage
        .run(&format!("install web {flags} --yes --adopt"))
        .await?;
    let said = said.done()?.stderr;
    for words in [
        "3 adopted",
        &format!("{namespace}/ConfigMap settings (from Helm release {namespace}/web)"),
        "generated values stay as they are",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    ready(&stage).await?;
    ensure!(before == pods(&stage).await?, "other pods");
    let secret = stage.must("secret", "db").await?;
    ensure!(secret["data"] == password, "another password");
    let map = stage.must("configmap", "settings").await?;
    ensure!(map["data"] == json!({"key": "1"}), "{map}");
    let metadata = &map["metadata"];
    ensure!(
        metadata["annotations"]["meta.helm.sh/release-name"].is_null(),
        "{metadata}"
    );
    let left = managers(&stage, "configmap", "settings").await?;
    ensure!(left.len() == 1 && !left.contains("helm"), "{left:?}");
    stage.run("uninstall web --yes").await?.done()?;
    ensure!(!stage.has("configmap", "settings").await?, "it stays");
    Ok(())
}

/// A chart whose values set the colour of a ConfigMap, and a password.
fn coloured(shelf: &Shelf, version: &str) -> Result<String> {
    let values = "colour: red\nlevel: 1\nauth: {password: ''}\n";
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {{{{ .Release.Name }}}}-settings, annotations: {{of: '{version}'}}, labels: {{app.kubernetes.io/managed-by: {{{{ .Release.Service }}}}}}}}\n\
         data: {{colour: {{{{ .Values.colour | quote }}}}, level: {{{{ .Values.level | quote }}}}}}\n"
    );
    let files = [
        ("values.yaml", values),
        ("templates/map.yaml", map.as_str()),
    ];
    let packed = shelf.chart("paint", version, &files)?;
    Ok(packed.to_string_lossy().into_owned())
}

/// A catalogue of two versions of the chart.
fn catalogue(stage: &Stage, shelf: &Shelf) -> Result<String> {
    let mut entries = Vec::new();
    for version in ["1.0.0", "1.1.0"] {
        let packed = coloured(shelf, version)?;
        entries.push(json!({
            "version": version,
            "template": {"method": "helm"},
            "source": {"url": {"manifest": packed}},
        }));
    }
    let all = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "paints"},
        "spec": {"addons": [{"name": "paint", "versions": entries}]},
    });
    let file = stage.write("paints.yaml", &all.to_string())?;
    let helm = binaries::helm()?;
    Ok(format!(
        "--channel {} --helm-bin {}",
        file.display(),
        helm.display()
    ))
}

/// Name, namespace, version and values come from the release, and the next upgrade changes what its version changes.
#[tokio::test]
async fn a_release_is_taken_over_with_its_values() -> Result<()> {
    let stage = Stage::new("adopt-values").await?;
    let at = stage.namespace.clone();
    let shelf = Shelf::new()?;
    let flags = catalogue(&stage, &shelf)?;
    let packed = coloured(&shelf, "1.0.0")?;
    let install = ["install", "wall", &packed, "--set", "colour=blue,level=7"];
    helm(&stage, &install).await?.done()?;

    let listed = stage.run(&format!("adopt {flags}")).await?.done()?.stdout;
    let command = "kubectl addons adopt paint@1.0.0";
    ensure!(
        listed.contains(command) && listed.contains("--name wall"),
        "{listed}"
    );
    let line = format!("adopt paint {flags} --target-namespace {at}");
    let said = stage
        .run(&format!("{line} --dry-run"))
        .await?
        .done()?
        .stderr;
    for words in [
        &format!("wall: taken over from Helm release {at}/wall, with its values for colour, level"),
        "0 changed, 0 added, 0 pruned, 1 unchanged",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    // Nothing differs, so nothing is due.
    ensure!(!said.contains("to apply that"), "{said}");
    ensure!(!said.contains("was given values"), "{said}");
    // Without them, the default would come back; the user's own value wins.
    let said = stage
        .run(&format!("{line} --dry-run --reset-values --set level=9"))
        .await?
        .done()?
        .stderr;
    ensure!(
        said.contains("blue → red") && said.contains("7 → 9"),
        "{said}"
    );

    stage
        .run(&format!("{line} --yes --set level=7"))
        .await?
        .done()?;
    ensure!(releases(&stage).await?.is_empty(), "helm finds it");
    let record = stage.record("wall").await?;
    let spec = &record["spec"];
    ensure!(
        spec["values"] == json!({"colour": "blue", "level": 7}),
        "{spec}"
    );
    ensure!(
        spec["targetNamespace"] == at && spec["addonRef"]["version"] == "1.0.0",
        "{spec}"
    );
    let helm_bin = flags.split_once(" --helm-bin").map_or("", |(_, bin)| bin);
    stage
        .run(&format!("upgrade wall --yes --helm-bin{helm_bin}"))
        .await?
        .done()?;
    let map = stage.must("configmap", "wall-settings").await?;
    ensure!(
        map["data"] == json!({"colour": "blue", "level": "7"}),
        "{map}"
    );
    ensure!(map["metadata"]["annotations"]["of"] == "1.1.0", "{map}");
    Ok(())
}

/// Secrets stay in Secrets, and values that cannot be read are not taken for none.
#[tokio::test]
async fn values_that_look_like_secrets_or_cannot_be_read_are_refused() -> Result<()> {
    let stage = Stage::new("adopt-secret-values").await?;
    let at = stage.namespace.clone();
    let shelf = Shelf::new()?;
    let flags = catalogue(&stage, &shelf)?;
    let packed = coloured(&shelf, "1.0.0")?;
    let install = [
        "install",
        "wall",
        &packed,
        "--set",
        "colour=blue,auth.password=hunter2",
    ];
    helm(&stage, &install).await?.done()?;
    stage.run("init").await?.done()?;
    let line = format!("adopt wall {flags} --target-namespace {at}");
    let said = stage.run(&format!("{line} --yes")).await?.ended(4)?.stderr;
    for words in [
        "look like secrets, which everyone who can read the installation would see: auth.password",
        &format!(
            "helm get values wall --namespace {at} --output yaml | kubectl create secret generic wall-values"
        ),
        "--values-from wall-values",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    ensure!(!said.contains("hunter2"), "{said}");
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: wall-values, namespace: {at}, labels: {{kubectl-addons.dev/values: 'true'}}}}\n\
         stringData: {{values.yaml: 'auth: {{password: hunter2}}'}}\n"
    );
    stage.apply(&secret).await?;
    let taken = format!("{line} --values-from wall-values");
    let said = stage
        .run(&format!("{taken} --dry-run"))
        .await?
        .done()?
        .stderr;
    ensure!(
        said.contains("with its values for colour") && !said.contains("was given values"),
        "{said}"
    );

    let rules = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {at}-weak}}\nrules:\n\
         - {{apiGroups: [''], resources: [namespaces, services, nodes, pods], verbs: [get, list, watch]}}\n\
         - {{apiGroups: [''], resources: [secrets], resourceNames: [addon-template-data], verbs: [get]}}\n\
         - {{apiGroups: [apps, kubectl-addons.dev], resources: ['*'], verbs: ['*']}}\n\
         - {{apiGroups: [''], resources: [configmaps], verbs: ['*']}}\n"
    );
    let binding = format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {at}-weak}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {at}-weak}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {at}-weak}}]\n"
    );
    stage.apply(&[rules, binding].concat()).await?;
    // What may be read of the release are the labels of its objects alone, which do not name the chart: its name has to be known.
    let weak =
        format!("adopt paint@1.0.0 --name wall {flags} --target-namespace {at} --as {at}-weak");
    let said = stage
        .run(&format!("{weak} --dry-run"))
        .await?
        .ended(4)?
        .stderr;
    let told =
        format!("the values of Helm release {at}/wall cannot be read, and may not be the defaults");
    ensure!(
        said.contains(&told) && said.contains("--reset-values"),
        "{said}"
    );
    let said = stage
        .run(&format!("{weak} --dry-run --reset-values"))
        .await?
        .done()?
        .stderr;
    ensure!(
        said.contains(&told) && said.contains("blue → red"),
        "{said}"
    );
    Ok(())
}
