//! kops' own tool and `channel apply` side by side: one index on two clusters makes the same objects and the same records, and
//! either tool finds nothing to do where the other one was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::control_plane::{ControlPlane, Options, binaries};
use addons_tests::plugin::Plugin;
use addons_tests::shared;
use addons_tests::stage::OF_SERVER;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, bail, ensure};
use common::api::names::GROUP;
use serde_json::{Value, json};

use crate::main_job::many_addons::{copy, nodes};

/// Runs of kops' tool, which takes seconds for one on a busy machine, until it must have nothing left to do.
const KOPS_RUNS: usize = 30;
/// What a cluster holds that tools of channels do not write: made by controllers, by nodes or by Kubernetes itself.
const OF_THE_CLUSTER: [&str; 14] = [
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "FlowSchema",
    "IPAddress",
    "Lease",
    "Node",
    "CSINode",
    "Pod",
    "PriorityLevelConfiguration",
    "ReplicaSet",
    "ServiceCIDR",
    "APIService",
];

/// An index that kops' tool applied before on both clusters, and the one that is compared.
struct Case {
    before: Option<&'static str>,
    index: String,
}

/// Where there is more to do than in a first install: prune rules, other ids, everything of an add-on gone.
const UPDATES: [(&str, &str); 4] = [
    ("many-addons-v1.30.0", "many-addons"),
    ("many-addons-ccm", "many-addons-ccm-irsa"),
    ("minimal-1.32", "minimal-1.35"),
    ("minimal-1.35", "external_dns_irsa"),
];

/// The updates, and every index installed.
fn cases(corpus: &Path, tally: &mut Tally) -> Result<Vec<Case>> {
    let updates = UPDATES.into_iter().map(|(before, index)| Case {
        before: Some(before),
        index: index.to_owned(),
    });
    let mut cases: Vec<Case> = updates.collect();
    let mut installs = Vec::new();
    for folder in fs::read_dir(corpus)? {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().into_owned();
        if name.contains("ipv6") {
            tally.left_out(format!(
                "{name}: the cluster has IPv4 alone, and its addresses are fixed"
            ));
        } else if folder.path().join("bootstrap-channel.yaml").is_file() {
            installs.push(name);
        }
    }
    installs.sort();
    let installs = installs.into_iter().map(|index| Case {
        before: None,
        index,
    });
    cases.extend(installs);
    Ok(cases)
}

/// A cluster of its own with the nodes that kops' add-ons ask for.
struct Side {
    cluster: ControlPlane,
    plugin: Plugin,
}

impl Side {
    async fn start() -> Result<Self> {
        let cluster = ControlPlane::start(Options::default()).await?;
        let plugin = Plugin::admin(&cluster)?;
        let kubeconfig = cluster.kubeconfig().display().to_string();
        let plugin = plugin.variable("KUBECONFIG", &kubeconfig);
        nodes(&cluster, &plugin).await?;
        plugin.run(&["init"]).await?.done()?;
        Ok(Self { cluster, plugin })
    }

    /// One run of kops' tool.
    async fn channels(&self, url: &str, more: &[&str]) -> Result<String> {
        let program = binaries::channels()?;
        let args = [&["apply", "channel", url], more].concat();
        let output = self.plugin.program(&program, &args).await?;
        Ok(format!("{}{}", output.stdout, output.stderr))
    }

    /// kops' tool until nothing is due, as its loop on a control plane does: it applies in a random order, so that definitions may
    /// come after their objects, and it does not wait for what it has applied.
    async fn kops(&self, url: &str) -> Result<()> {
        let mut said = String::new();
        for _ in 0..KOPS_RUNS {
            said = self.channels(url, &["--yes"]).await?;
            if said.contains("No update required") {
                return Ok(());
            }
        }
        bail!("kops' tool has not ended with {url} after {KOPS_RUNS} runs: {said}")
    }

    /// Our command; like kops' tool it does not wait, for some of these add-ons ask for the same port of every node.
    async fn ours(&self, url: &str) -> Result<String> {
        let flags = "--yes --wait=false --allow-prune 100%";
        let line = format!("channel apply {url} {flags}");
        let words: Vec<&str> = line.split(' ').collect();
        Ok(self.plugin.run(&words).await?.done()?.stderr)
    }

    /// Every object that a person or a tool wrote, without what differs from cluster to cluster.
    async fn objects(&self) -> Result<BTreeMap<String, Value>> {
        let args = ["api-resources", "--verbs=list", "-o", "name"];
        let kinds = self.plugin.kubectl(&args).await?.done()?.stdout;
        let kinds: Vec<&str> = kinds
            .lines()
            .filter(|kind| !kind.ends_with(".kubectl-addons.dev"))
            .collect();
        let kinds = kinds.join(",");
        let args = ["get", &kinds, "-A", "-o", "json"];
        let output = self.plugin.kubectl(&args).await?.done()?;
        let list: Value = serde_json::from_str(&output.stdout)?;
        let items = list["items"].as_array().context("items")?;
        let mut objects = BTreeMap::new();
        for item in items {
            let kind = item["kind"].as_str().context("kind")?;
            if OF_THE_CLUSTER.contains(&kind) || !item["metadata"]["ownerReferences"].is_null() {
                continue;
            }
            let key = [&item["metadata"]["namespace"], &item["metadata"]["name"]];
            let key = key.map(|part| part.as_str().unwrap_or_default()).join("/");
            // Ours, and what the API server makes for itself with its own port.
            if key.contains("kubectl-addons") || key == "default/kubernetes" {
                continue;
            }
            objects.insert(format!("{kind} {key}"), comparable(item));
        }
        Ok(objects)
    }
}

/// The object without what the API server and we write.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    for field in OF_SERVER {
        remove(&mut object["metadata"], field);
    }
    for place in ["labels", "annotations"] {
        let marks = object["metadata"][place].as_object_mut();
        let is_empty = marks.is_none_or(|marks| {
            marks.retain(|key, _| !key.starts_with(GROUP));
            marks.is_empty()
        });
        if is_empty {
            remove(&mut object["metadata"], place);
        }
    }
    remove(&mut object, "status");
    match object["kind"].as_str() {
        Some("Service") => {
            for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
                remove(&mut object["spec"], field);
            }
            for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
                remove(port, "nodePort");
            }
        }
        // Certificates are other ones each time.
        Some("Secret") => {
            for value in object["data"]
                .as_object_mut()
                .into_iter()
                .flat_map(|data| data.values_mut())
            {
                *value = json!("…");
            }
        }
        Some("ConfigMap") if object["metadata"]["name"] == "extension-apiserver-authentication" => {
            remove(&mut object, "data");
        }
        Some("ConfigMap") if object["metadata"]["name"] == "kube-root-ca.crt" => {
            remove(&mut object, "data");
        }
        Some("Namespace") => {
            // Our record has the version on top, which tools older than 1.22 need.
            let annotations = object["metadata"]["annotations"].as_object_mut();
            for (_, record) in annotations.into_iter().flatten() {
                let parsed: Option<Value> = record
                    .as_str()
                    .and_then(|text| serde_json::from_str(text).ok());
                if let Some(mut parsed) = parsed {
                    remove(&mut parsed, "version");
                    *record = parsed;
                }
            }
        }
        _ => {}
    }
    object
}

fn remove(from: &mut Value, field: &str) {
    if let Some(from) = from.as_object_mut() {
        from.remove(field);
    }
}

/// Every difference, an object a line.
fn differences(kops: &BTreeMap<String, Value>, ours: &BTreeMap<String, Value>) -> Vec<String> {
    let names = kops
        .keys()
        .chain(ours.keys().filter(|name| !kops.contains_key(*name)));
    names
        .filter_map(|name| match (kops.get(name), ours.get(name)) {
            (Some(a), Some(b)) if a == b => None,
            (Some(a), Some(b)) => Some(format!("{name}: kops {a}\n   ours {b}")),
            (Some(_), None) => Some(format!("{name}: kops alone")),
            _ => Some(format!("{name}: ours alone")),
        })
        .collect()
}

async fn compared(corpus: &Path, case: &Case, folder: &Path, tally: &mut Tally) -> Result<()> {
    let (kops, ours) = tokio::try_join!(Side::start(), Side::start())?;
    let url = |at: &PathBuf| format!("file://{}", at.join("bootstrap-channel.yaml").display());
    if let Some(before) = case.before {
        let before_folder = folder.join(before);
        copy(&corpus.join(before), &before_folder, tally)?;
        let before = url(&before_folder);
        tokio::try_join!(kops.kops(&before), ours.kops(&before))?;
    }
    let target = folder.join(&case.index);
    let names = copy(&corpus.join(&case.index), &target, tally)?;
    let url = url(&target);
    let ((), said) = tokio::try_join!(kops.kops(&url), ours.ours(&url))?;
    let found = differences(&kops.objects().await?, &ours.objects().await?);
    ensure!(found.is_empty(), "{}\n{said}", found.join("\n"));

    let after_us = ours.channels(&url, &[]).await?;
    ensure!(
        after_us.contains("No update required"),
        "kops after us: {after_us}"
    );
    let after_kops = kops.ours(&url).await?;
    ensure!(
        after_kops.contains("No update required"),
        "we after kops: {after_kops}"
    );
    ensure!(
        kops.cluster.server() != ours.cluster.server(),
        "one cluster"
    );
    for _ in names {
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: compares with kops' own tool on two clusters"
)]
async fn the_same_index_makes_the_same_cluster() -> Result<()> {
    let mut tally = Tally::new("channels::parity");
    let Some(corpus) = shared::path("corpus/kops") else {
        tally.left_out("corpus/kops is not beside the checkout");
        return Ok(());
    };
    let folder = addons_tests::guard::Folder::new("parity-")?;
    let mut failed = Vec::new();
    for (i, case) in cases(&corpus, &mut tally)?.iter().enumerate() {
        let folder = folder.path().join(i.to_string());
        let what = format!("{} after {:?}", case.index, case.before);
        if let Err(error) = compared(&corpus, case, &folder, &mut tally).await {
            failed.push(format!("{what}: {error:#}"));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    Ok(())
}
