//! `adopt` without a name lists what is there, and the command that takes it over.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A ConfigMap with this label.
fn labelled(name: &str, label: &str) -> String {
    config_map(name, "1").replace("metadata: {", &format!("metadata: {{labels: {{{label}}}, "))
}

/// What each tool leaves behind; names hold the namespace, for other tests leave theirs.
async fn install(stage: &Stage) -> Result<()> {
    let at = stage.namespace.as_str();
    stage.apply(&labelled("a", "app: web")).await?;
    stage.apply(&labelled("b", "app: web")).await?;
    let kapp = labelled("c", &format!("kapp.k14s.io/app: {at}"));
    stage.apply(&kapp).await?;
    let mode = labelled(
        "d",
        "addonmanager.kubernetes.io/mode: Reconcile, k8s-app: dns",
    );
    stage.apply(&mode).await?;
    let kops = labelled("e", &format!("addon.kops.k8s.io/name: {at}"));
    stage.apply(&kops).await?;
    let noted = r#"{"version":"1.2.0","channel":"https://example.org/index.yaml"}"#;
    let annotate = [
        "annotate",
        "namespace",
        at,
        &format!("addons.k8s.io/{at}={noted}"),
    ];
    stage.plugin.kubectl(&annotate).await?.done()?;

    let shelf = Shelf::new()?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: f, labels: {helm.sh/chart: front-1.0.0}}\n";
    let chart = shelf.chart("front", "1.0.0", &[("templates/map.yaml", map)])?;
    let (chart, helm) = (chart.to_string_lossy(), binaries::helm()?);
    let kubeconfig = stage.plugin.kubeconfig().to_string_lossy().into_owned();
    let args = [
        "install",
        "till",
        &chart,
        "--namespace",
        at,
        "--kubeconfig",
        &kubeconfig,
    ];
    stage.plugin.program(&helm, &args).await?.done()?;

    let old = stage.index("old.yaml", &[("old", "1.0.0", &config_map("g", "1"))])?;
    stage
        .run(&format!("install old --channel {old} --yes"))
        .await?
        .done()?;
    stage.delete("addoninstallation", "old").await?;
    let kept = stage.index("kept.yaml", &[("kept", "1.0.0", &config_map("h", "1"))])?;
    stage
        .run(&format!("install kept --channel {kept} --yes"))
        .await?
        .done()?;
    Ok(())
}

/// Add-ons for some of them.
fn offer(stage: &Stage) -> Result<String> {
    let web = [labelled("a", "app: web"), labelled("b", "app: web")].concat();
    let front = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: f}\n";
    stage.index(
        "index.yaml",
        &[
            ("web", "1.0.0", &web),
            ("dns", "1.0.0", &config_map("d", "1")),
            ("front", "1.0.0", front),
            ("old", "1.0.0", &config_map("g", "1")),
        ],
    )
}

/// Marks, name, objects, version and command of each row.
fn expected(at: &str, index: &str) -> [(&'static str, String, usize, Value, Value); 6] {
    let adopt = |rest: String| json!(format!("kubectl addons adopt {rest}"));
    let plain = |name: &str| adopt(format!("{name} --channel {index}"));
    let kops = format!("{at} --channel https://example.org/index.yaml --target-namespace {at}");
    let helm = format!("front@1.0.0 --channel {index} --name till --target-namespace {at}");
    let none = Value::Null;
    [
        ("kubectl", "web".to_owned(), 2, none.clone(), plain("web")),
        ("kapp", at.to_owned(), 1, none.clone(), none.clone()),
        (
            "addonManager",
            "dns".to_owned(),
            1,
            none.clone(),
            plain("dns"),
        ),
        ("orphan", "old".to_owned(), 1, none, plain("old")),
        ("kops", at.to_owned(), 1, json!("1.2.0"), adopt(kops)),
        ("helm", "till".to_owned(), 1, json!("1.0.0"), adopt(helm)),
    ]
}

#[tokio::test]
async fn what_other_tools_installed_is_listed() -> Result<()> {
    let stage = Stage::new("adopt-found").await?;
    let at = stage.namespace.as_str();
    install(&stage).await?;
    let index = offer(&stage)?;
    let json = format!("adopt --channel {index} -o json");
    let listed: Value = serde_json::from_str(&stage.run(&json).await?.done()?.stdout)?;
    let items = listed["items"].as_array().context("no items")?;
    let row = |found_by: &str, name: &str| {
        let is_it = |item: &&Value| {
            let here = item["namespace"] == at || item["namespace"].is_null();
            item["foundBy"] == found_by && item["name"] == name && here
        };
        let found = items.iter().find(is_it);
        found.with_context(|| format!("{found_by} {name}: {listed:#}"))
    };
    for (found_by, name, objects, version, command) in expected(at, &index) {
        let row = row(found_by, &name)?;
        ensure!(
            row["objects"] == objects && row["version"] == version && row["adopt"] == command,
            "{row:#}"
        );
    }
    ensure!(
        row("orphan", "kept").is_err() && row("kubectl", "h").is_err(),
        "{listed:#}"
    );
    let list = format!("adopt --channel {index}");
    let table = stage.run(&list).await?.done()?.stdout;
    ensure!(table.starts_with("FOUND BY "), "{table}");

    // The commands work as they are printed; what was taken over is not listed any more.
    for (found_by, name) in [("kubectl", "web"), ("orphan", "old"), ("helm", "till")] {
        let command = row(found_by, name)?["adopt"].as_str().unwrap_or_default();
        let line = command.strip_prefix("kubectl addons ");
        let line = line.context("no command")?;
        stage.run(&format!("{line} --yes")).await?.done()?;
    }
    let after = stage.run(&list).await?.done()?.stdout;
    let mine = after
        .lines()
        .filter(|line| line.contains(&format!(" {at} ")));
    let left: Vec<&str> = mine
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    for name in ["web", "old", "till"] {
        ensure!(!left.contains(&name), "{name} is listed: {after}");
    }
    Ok(())
}
