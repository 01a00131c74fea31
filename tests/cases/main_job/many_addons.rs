//! kops' own largest index: 16 add-ons of v1.30.0 install and upgrade to the newest ones (corpus/kops).

use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::control_plane::ControlPlane;
use addons_tests::plugin::Plugin;
use addons_tests::shared;
use addons_tests::stage::{Stage, sha256};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names::owner_hash;
use serde_json::Value;

/// Kinds whose backends cannot run here: a webhook or aggregated API that no Pod here serves.
const LEFT_OUT: [&str; 3] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "APIService",
];

/// The indexes of kops 1.30 and of today.
pub(crate) fn corpus(tally: &mut Tally) -> Option<(PathBuf, PathBuf)> {
    let old = shared::path("corpus/kops/many-addons-v1.30.0");
    let pair = old.zip(shared::path("corpus/kops/many-addons"));
    if pair.is_none() {
        tally.left_out("corpus/kops is not beside the checkout");
    }
    pair
}

/// Copies an index without the objects that cannot work here; manifests and hashes are rewritten where objects left.
pub(crate) fn copy(from: &Path, to: &Path, tally: &mut Tally) -> Result<Vec<String>> {
    let mut index = fs::read_to_string(from.join("bootstrap-channel.yaml"))?;
    let mut names = Vec::new();
    let parsed: Value = serde_saphyr::from_str(&index)?;
    for addon in parsed["spec"]["addons"].as_array().context("spec.addons")? {
        let path = addon["manifest"].as_str().context("manifest")?;
        let old = addon["manifestHash"].as_str().context("manifestHash")?;
        let text = fs::read_to_string(from.join(path))?;
        let kept: Vec<&str> = text
            .split("\n---\n")
            .filter(|document| {
                let out = LEFT_OUT
                    .iter()
                    .find(|kind| document.lines().any(|line| line == format!("kind: {kind}")));
                if let Some(kind) = out {
                    tally.left_out(format!(
                        "{}: {path}: a {kind}, whose backend cannot run here",
                        from.display()
                    ));
                }
                out.is_none()
            })
            .collect();
        let text = kept.join("\n---\n");
        index = index.replace(old, &sha256(text.trim()));
        let target = to.join(path);
        fs::create_dir_all(target.parent().context("a folder")?)?;
        fs::write(target, text)?;
        names.push(addon["name"].as_str().context("name")?.to_owned());
    }
    fs::write(to.join("bootstrap-channel.yaml"), index)?;
    Ok(names)
}

/// Every object of these add-ons, as `Kind namespace/name`, by kubectl: other tests install theirs at the same time.
async fn owned(stage: &Stage, addons: &[String]) -> Result<Vec<String>> {
    let owners: Vec<_> = addons
        .iter()
        .map(|addon| owner_hash(&stage.namespace, addon))
        .collect();
    let label = format!("kubectl-addons.dev/owner in ({})", owners.join(","));
    let kinds = "configmaps,serviceaccounts,services,deployments,daemonsets,poddisruptionbudgets,roles,rolebindings,clusterroles,\
                 clusterrolebindings,customresourcedefinitions,storageclasses,csidrivers,ingressclasses,limitranges";
    let template =
        "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    let args = ["get", kinds, "-A", "-l", &label, "-o", template];
    let output = stage.plugin.kubectl(&args).await?.done()?;
    let mut lines: Vec<String> = output.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons of kops")]
async fn sixteen_addons_install_and_upgrade() -> Result<()> {
    let mut tally = Tally::new("main_job::many_addons");
    let Some((old, new)) = corpus(&mut tally) else {
        return Ok(());
    };
    let stage = Stage::new("many-addons").await?;
    nodes(&stage.cluster, &stage.plugin).await?;
    let (from, to) = (
        stage.plugin.home().join("old"),
        stage.plugin.home().join("new"),
    );
    let names = copy(&old, &from, &mut tally)?;
    let names_new = copy(&new, &to, &mut tally)?;
    ensure!(
        names.len() == 16 && names_new.len() == 16,
        "{} and {} add-ons",
        names.len(),
        names_new.len()
    );

    let from_index = from.join("bootstrap-channel.yaml");
    let to_index = to.join("bootstrap-channel.yaml");
    let apply = |index: &Path| format!("channel apply {} --yes --timeout 2m", index.display());
    stage.run(&apply(&from_index)).await?.done()?;
    let before = owned(&stage, &names).await?;
    ensure!(before.len() > 100, "{} objects", before.len());

    records_are_those_of(&stage, &from).await?;
    nothing_is_written(&stage, &apply(&from_index)).await?;

    let upgraded = stage.run(&apply(&to_index)).await?.done()?;
    let after = owned(&stage, &names).await?;
    let gone: Vec<_> = before
        .iter()
        .filter(|object| !after.contains(object))
        .collect();
    // corpus/README.md: of the three objects that left, one is a definition and stays behind.
    ensure!(gone.len() == 2, "pruned: {gone:?}\n{}", upgraded.stderr);
    ensure!(
        gone.iter()
            .any(|object| object.starts_with("PodDisruptionBudget ")),
        "{gone:?}"
    );
    ensure!(
        gone.iter().any(|object| object.starts_with("ConfigMap ")),
        "{gone:?}"
    );

    records_are_those_of(&stage, &to).await?;
    nothing_is_written(&stage, &apply(&to_index)).await?;
    for _ in names {
        tally.ran();
    }
    Ok(())
}

/// kops' records hold ids and hashes of the index as they are written there.
async fn records_are_those_of(stage: &Stage, index: &Path) -> Result<()> {
    let location = index.join("bootstrap-channel.yaml");
    let parsed: Value = serde_saphyr::from_str(&fs::read_to_string(&location)?)?;
    let listed = stage.run("channel list -o json").await?.done()?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let rows = listed["items"].as_array().context("items")?;
    for entry in parsed["spec"]["addons"].as_array().context("addons")? {
        let row = rows
            .iter()
            .find(|row| row["namespace"] == "kube-system" && row["name"] == entry["name"]);
        let row = row.with_context(|| format!("{} is not recorded", entry["name"]))?;
        ensure!(
            row["id"] == entry["id"]
                && row["manifestHash"] == entry["manifestHash"]
                && row["channel"] == format!("file://{}", location.display()),
            "{row} is not {entry}"
        );
    }
    Ok(())
}

/// Some of the add-ons run on the control plane only, and their host ports and rolling updates need more nodes than one.
pub(crate) async fn nodes(cluster: &ControlPlane, user: &Plugin) -> Result<()> {
    for name in ["second", "third"] {
        cluster.add_node(name).await?;
    }
    let label = [
        "label",
        "nodes",
        "--all",
        "--overwrite",
        "node-role.kubernetes.io/control-plane=",
    ];
    user.kubectl(&label).await?.done().map(drop)
}

/// Runs a line again.
async fn nothing_is_written(stage: &Stage, line: &str) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    stage.run(line).await?.done()?;
    let requests = stage.requests(mark)?;
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "a second run wrote: {:?}",
        requests.by_verb("kubectl-addons")
    );
    Ok(())
}
