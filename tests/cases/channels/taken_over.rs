//! Add-ons that kops' own tool has installed, at their first update here.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Entry, applied_by_kops, index, record, recorded_by_kops};

const OLD: &str = r#"{"id":"old","manifestHash":"old","systemGeneration":1}"#;

fn labelled(name: &str, labels: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{{labels}}}}}\ndata: {{key: {value:?}}}\n---\n"
    )
}

/// What an entry says of pruning; `NAME` is the add-on, `NAMESPACE` that of the stage.
struct Case {
    name: &'static str,
    fields: &'static [&'static str],
    prunes: bool,
}

const KINDS: Case = Case {
    name: "kinds",
    fields: &[
        "prune:",
        "  kinds:",
        "  - kind: ConfigMap",
        "    labelSelector: addon.kops.k8s.io/name=NAME,app.kubernetes.io/managed-by=kops",
        "    namespaces: [NAMESPACE]",
    ],
    prunes: true,
};
const UNSERVED: Case = Case {
    name: "unserved",
    fields: &[
        "prune:",
        "  kinds:",
        "  - {group: gone.example, kind: Till, labelSelector: a=b}",
    ],
    prunes: false,
};
const OPEN: Case = Case {
    name: "open",
    fields: &[
        "prune:",
        "  kinds:",
        "  - kind: ConfigMap",
        "    namespaces: [NAMESPACE]",
    ],
    prunes: false,
};
const SELECTOR: Case = Case {
    name: "selector",
    fields: &["selector: {addon.kops.k8s.io/name: NAME}"],
    prunes: true,
};
const EMPTY: Case = Case {
    name: "empty",
    fields: &["selector: {}"],
    prunes: false,
};

/// The rules of an entry find what the old version had and the new one does not; what they do not find stays, and so does what
/// a controller has.
#[tokio::test]
async fn what_kops_installed_is_pruned_by_the_rules_of_the_entry() -> Result<()> {
    let stage = Stage::new("kops-prune").await?;
    for case in [KINDS, UNSERVED, OPEN, SELECTOR, EMPTY] {
        let Case { name, prunes, .. } = case;
        pruned(&stage, &case)
            .await
            .with_context(|| format!("{name}, which prunes: {prunes}"))?;
    }
    Ok(())
}

async fn pruned(stage: &Stage, case: &Case) -> Result<()> {
    let addon = format!("{}-{}", stage.namespace, case.name);
    let labels = format!("app.kubernetes.io/managed-by: kops, addon.kops.k8s.io/name: {addon}");
    let [kept, dropped, foreign, owned] =
        ["kept", "dropped", "foreign", "owned"].map(|name| format!("{}-{name}", case.name));
    let old = [
        labelled(&kept, &labels, "old"),
        labelled(&dropped, &labels, "old"),
        labelled(&foreign, "app: other", "old"),
        labelled(&owned, &labels, "old"),
    ];
    applied_by_kops(stage, &old.concat()).await?;
    // A controller made it, and copied the labels.
    let owner = stage.must("configmap", &foreign).await?;
    let controller = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": foreign, "controller": true,
        "uid": owner["metadata"]["uid"]}]);
    let patch = json!({"metadata": {"ownerReferences": controller}});
    stage.patch("configmap", &owned, &patch).await?;
    let before = stage.must("configmap", &kept).await?;
    recorded_by_kops(stage, &addon, OLD).await?;

    let fields = case.fields.iter().map(|field| {
        let field = field.replace("NAMESPACE", &stage.namespace);
        field.replace("NAME", &addon)
    });
    let fields: Vec<String> = fields.collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let manifest = labelled(&kept, &labels, "new");
    let entry = Entry {
        name: &addon,
        fields: &fields,
        manifest: &manifest,
    };
    let channel = index(stage, &format!("{}.yaml", case.name), &[entry])?;
    let shown = stage
        .run(&format!("channel apply {channel}"))
        .await?
        .done()?;
    let is_shown = shown.stderr.contains(&format!("ConfigMap {dropped}"));
    ensure!(is_shown == case.prunes, "{}", shown.stderr);
    ensure!(stage.has("configmap", &dropped).await?);

    stage
        .run(&format!("channel apply {channel} --yes"))
        .await?
        .done()?;
    for (name, expected) in [
        (&kept, true),
        (&dropped, !case.prunes),
        (&foreign, true),
        (&owned, true),
    ] {
        let found = stage.has("configmap", name).await?;
        ensure!(found == expected, "{name} is there: {found}");
    }
    let live = stage.must("configmap", &kept).await?;
    let is_same = live["metadata"]["uid"] == before["metadata"]["uid"];
    ensure!(live["data"]["key"] == "new" && is_same, "{live}");
    let again = stage
        .run(&format!("channel apply {channel}"))
        .await?
        .done()?;
    ensure!(
        again.stderr.contains("No update required"),
        "{}",
        again.stderr
    );
    Ok(())
}

/// A field that kops set and the new version does not have is gone, as it would be with kops' own tool.
#[tokio::test]
async fn fields_of_kops_are_ours_afterwards() -> Result<()> {
    let stage = Stage::new("kops-fields").await?;
    let old =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dns}\ndata: {kept: '1', dropped: '1'}\n";
    applied_by_kops(&stage, old).await?;
    recorded_by_kops(&stage, "dns", OLD).await?;
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
