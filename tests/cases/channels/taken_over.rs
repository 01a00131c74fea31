//! Add-ons that kops' own tool has installed, at their first update here.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Entry, index, record, recorded_by_kops};

/// Applies a manifest as kops does.
async fn applied_by_kops(stage: &Stage, manifest: &str) -> Result<()> {
    let args = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=kops",
        "-n",
        &stage.namespace,
        "-f",
        "-",
    ];
    stage
        .plugin
        .kubectl_with_input(&args, manifest)
        .await?
        .done()
        .map(drop)
}

fn labelled(name: &str, labels: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{{labels}}}}}\ndata: {{key: {value:?}}}\n---\n"
    )
}

async fn has(stage: &Stage, names: &[(&str, bool)], case: &str) -> Result<()> {
    for (name, expected) in names {
        let found = stage.has("configmap", name).await?;
        ensure!(found == *expected, "{case}: {name} is there: {found}");
    }
    Ok(())
}

/// The rules of an entry find what the old version had and the new one does not; what they do not find stays, and so does what
/// another installation or a controller has.
#[tokio::test]
async fn what_kops_installed_is_pruned_by_the_rules_of_the_entry() -> Result<()> {
    let stage = Stage::new("kops-prune").await?;
    let ours = "app.kubernetes.io/managed-by: kops, addon.kops.k8s.io/name: NAME";
    let selector = "labelSelector: addon.kops.k8s.io/name=NAME,app.kubernetes.io/managed-by=kops";
    let namespace = format!("namespaces: [{}]", stage.namespace);
    for (case, fields, pruned) in [
        (
            "kinds",
            vec![
                "prune:",
                "  kinds:",
                "  - kind: ConfigMap",
                "    SELECTOR",
                "    NAMESPACE",
            ],
            true,
        ),
        (
            "unserved",
            vec![
                "prune:",
                "  kinds:",
                "  - {group: gone.example, kind: Till, labelSelector: a=b}",
            ],
            false,
        ),
        (
            "open",
            vec!["prune:", "  kinds:", "  - kind: ConfigMap", "    NAMESPACE"],
            false,
        ),
        (
            "selector",
            vec!["selector: {addon.kops.k8s.io/name: NAME}"],
            true,
        ),
        ("empty", vec!["selector: {}"], false),
    ] {
        let label = format!("{}-{case}", stage.namespace);
        let of = |text: &str| text.replace("NAME", &label);
        let labels = of(ours);
        let [kept, dropped, foreign, owned] =
            ["kept", "dropped", "foreign", "owned"].map(|name| format!("{case}-{name}"));
        applied_by_kops(
            &stage,
            &[
                labelled(&kept, &labels, "old"),
                labelled(&dropped, &labels, "old"),
                labelled(&foreign, "app: other", "old"),
                labelled(&owned, &labels, "old"),
            ]
            .concat(),
        )
        .await?;
        // A controller made it, and copied the labels.
        let owner = stage.must("configmap", &foreign).await?;
        stage
            .patch(
                "configmap",
                &owned,
                &json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": foreign,
                    "uid": owner["metadata"]["uid"], "controller": true}]}}),
            )
            .await?;
        let kept_before = stage.must("configmap", &kept).await?;
        recorded_by_kops(
            &stage,
            &label,
            r#"{"id":"old","manifestHash":"old","systemGeneration":1}"#,
        )
        .await?;
        let manifest = labelled(&kept, &labels, "new");
        let fields: Vec<String> = fields
            .into_iter()
            .map(|field| {
                let field = field.replace("SELECTOR", &of(selector));
                field
                    .replace("NAMESPACE", &namespace)
                    .replace("NAME", &label)
            })
            .collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let entry = Entry {
            name: &label,
            fields: &fields,
            manifest: &manifest,
        };
        let channel = index(&stage, &format!("{case}.yaml"), &[entry])?;
        let shown = stage
            .run(&format!("channel apply {channel}"))
            .await?
            .done()?;
        ensure!(
            shown.stderr.contains(&format!("ConfigMap {dropped}")) == pruned,
            "{case}: {}",
            shown.stderr
        );
        has(&stage, &[(&dropped, true)], case).await?;
        stage
            .run(&format!("channel apply {channel} --yes"))
            .await?
            .done()?;
        has(
            &stage,
            &[
                (&kept, true),
                (&dropped, !pruned),
                (&foreign, true),
                (&owned, true),
            ],
            case,
        )
        .await?;
        let live = stage.must("configmap", &kept).await?;
        ensure!(
            live["data"]["key"] == "new"
                && live["metadata"]["uid"] == kept_before["metadata"]["uid"],
            "{case}: {live}"
        );
        let again = stage
            .run(&format!("channel apply {channel}"))
            .await?
            .done()?;
        ensure!(
            again.stderr.contains("No update required"),
            "{case}: {}",
            again.stderr
        );
    }
    Ok(())
}

/// A field that kops set and the new version does not have is gone, as it would be with kops' own tool.
#[tokio::test]
async fn fields_of_kops_are_ours_afterwards() -> Result<()> {
    let stage = Stage::new("kops-fields").await?;
    let old =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dns}\ndata: {kept: '1', dropped: '1'}\n";
    applied_by_kops(&stage, old).await?;
    recorded_by_kops(
        &stage,
        "dns",
        r#"{"id":"old","manifestHash":"old","systemGeneration":1}"#,
    )
    .await?;
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dns}\ndata: {kept: '2'}\n";
    let entry = Entry {
        name: "dns",
        fields: &[],
        manifest,
    };
    let channel = index(&stage, "index.yaml", &[entry])?;
    stage
        .run(&format!("channel apply {channel} --yes"))
        .await?
        .done()?;
    let live = stage.must("configmap", "dns").await?;
    ensure!(live["data"] == json!({"kept": "2"}), "{live}");
    ensure!(
        record(&stage, "dns")
            .await?
            .context("no record")?
            .contains(&channel)
    );
    // An object that kops has not recorded is refused, as everywhere.
    let foreign = config_map("foreign", "1");
    applied_by_kops(&stage, &foreign).await?;
    let entry = Entry {
        name: "other",
        fields: &[],
        manifest: &foreign,
    };
    let channel = index(&stage, "other.yaml", &[entry])?;
    let refused = stage.run(&format!("channel apply {channel} --yes")).await?;
    ensure!(refused.code == 4, "{}: {}", refused.code, refused.stderr);
    Ok(())
}
