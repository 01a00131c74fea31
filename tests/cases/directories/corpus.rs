//! The addon-manager's own trees of three releases, one after another (corpus/addon-manager). Documents are split and named line by
//! line, without the parser under test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::shared;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};

use super::Directory;

const RELEASES: [&str; 3] = ["release-1.20", "release-1.30", "release-1.36"];
/// Files that another program has to fill in before they are manifests, and alternatives to other files.
const FILES: [(&str, &str); 9] = [
    ("fluentd-gcp/fluentd-gcp-ds.yaml", "a template"),
    ("kube-proxy/kube-proxy-ds.yaml", "a template"),
    (
        "metadata-agent/stackdriver/metadata-agent.yaml",
        "a template",
    ),
    ("es-image/config/elasticsearch.yml", "not an object"),
    (
        "node-problem-detector/standalone/npd-binding.yaml",
        "an alternative to npd.yaml",
    ),
    (
        "legacy-kubelet-user-disable/kubelet-binding.yaml",
        "an alternative to legacy-kubelet-user",
    ),
    (
        "storage-class/azure/default.yaml",
        "an alternative to storage-class/gce",
    ),
    (
        "storage-class/local/default.yaml",
        "an alternative to storage-class/gce",
    ),
    (
        "storage-class/openstack/default.yaml",
        "an alternative to storage-class/gce",
    ),
];
/// Kinds that this cluster does not serve, or that have no backend in it.
const KINDS: [(&str, &str, &str); 3] = [
    (
        "apiextensions.k8s.io/v1beta1",
        "CustomResourceDefinition",
        "not served since 1.22",
    ),
    (
        "policy/v1beta1",
        "PodSecurityPolicy",
        "not served since 1.25",
    ),
    (
        "apiregistration.k8s.io/v1",
        "APIService",
        "its Service has no backend here",
    ),
];
/// They stay when their manifest is gone.
const KEPT: [&str; 4] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolumeClaim",
    "PersistentVolume",
];

/// One document of a manifest.
#[derive(Default)]
struct Document {
    api_version: String,
    kind: String,
    name: String,
    namespace: Option<String>,
    mode: Option<String>,
    service: bool,
}

impl Document {
    fn of(text: &str) -> Self {
        let mut document = Self::default();
        let mut section = Vec::new();
        for line in text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
        {
            let Some((key, value)) = line
                .split_once(": ")
                .or_else(|| line.trim_end().split_once(':'))
            else {
                continue;
            };
            let depth = key.len() - key.trim_start().len();
            section.retain(|(other, _): &(usize, String)| *other < depth);
            let path: Vec<&str> = section.iter().map(|(_, name)| name.as_str()).collect();
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            let key = key.trim();
            match (path.join("/").as_str(), key) {
                ("", "apiVersion") => document.api_version = value,
                ("", "kind") => document.kind = value,
                ("metadata", "name") => document.name = value,
                ("metadata", "namespace") => document.namespace = Some(value),
                ("metadata/labels", "addonmanager.kubernetes.io/mode") => {
                    document.mode = Some(value)
                }
                ("metadata/labels", "kubernetes.io/cluster-service") => {
                    document.service = value == "true"
                }
                _ => {}
            }
            section.push((depth, key.to_owned()));
        }
        document
    }

    fn key(&self) -> String {
        let namespace = self.namespace.as_deref().filter(|_| !self.is_of_cluster());
        let namespace = namespace.unwrap_or_default();
        format!("{} {namespace}/{}", self.kind, self.name)
    }

    /// Some manifests name a namespace of such objects, too.
    fn is_of_cluster(&self) -> bool {
        let kinds = ["StorageClass", "CSIDriver", "CustomResourceDefinition"];
        self.kind.starts_with("Cluster") || kinds.contains(&self.kind.as_str())
    }

    fn is_managed(&self) -> bool {
        self.service || matches!(self.mode.as_deref(), Some("Reconcile" | "EnsureExists"))
    }
}

/// The objects of one tree.
#[derive(Default)]
struct Tree {
    managed: BTreeSet<String>,
    /// Never pruned.
    kept: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

/// Copies a tree without what cannot be installed here.
fn copy(from: &Path, to: &Path, tally: &mut Tally) -> Result<Tree> {
    let mut tree = Tree::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(from.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            if let Some((_, why)) = FILES.iter().find(|(file, _)| name.ends_with(file)) {
                tally.left_out(format!("{}: {name}: {why}", from.display()));
                continue;
            }
            let text = fs::read_to_string(from.join(&path))?;
            let is_read = [".yaml", ".yml", ".json"]
                .iter()
                .any(|ending| name.ends_with(ending));
            let text = if is_read {
                tree.add(&text, &name, tally)
            } else {
                text
            };
            let target = to.join(&path);
            fs::create_dir_all(target.parent().context("a folder")?)?;
            fs::write(target, text)?;
        }
    }
    Ok(tree)
}

impl Tree {
    /// The text without the documents that are left out.
    fn add(&mut self, text: &str, file: &str, tally: &mut Tally) -> String {
        let text = format!("{text}\n---\n");
        let documents = text.split_inclusive("\n---");
        let kept = documents.filter(|text| {
            let document = Document::of(text);
            let unserved = KINDS.iter().find(|(version, kind, _)| {
                document.api_version == *version && document.kind == *kind
            });
            if let Some((_, _, why)) = unserved {
                tally.left_out(format!("{file}: {}: {why}", document.key()));
                return false;
            }
            let key = document.key();
            if document.kind.is_empty() {
                return true;
            }
            if !document.is_managed() {
                self.ignored.insert(key);
                return true;
            }
            if document.mode.as_deref() == Some("EnsureExists")
                || KEPT.contains(&document.kind.as_str())
            {
                self.kept.insert(key.clone());
            }
            self.managed.insert(key);
            true
        });
        let kept: String = kept.collect();
        // An empty file is one that is still being written.
        format!("# a release of the addon-manager\n{kept}")
    }
}

/// Every object with our label (Endpoints and Events copy labels), as `Kind NAMESPACE/NAME`, by kubectl.
async fn owned(stage: &Stage) -> Result<BTreeSet<String>> {
    let args = ["api-resources", "--verbs=list", "-o", "name"];
    let kinds = stage.plugin.kubectl(&args).await?.done()?.stdout;
    let kinds: Vec<&str> = kinds
        .lines()
        .filter(|kind| !kind.starts_with("e"))
        .collect();
    let template =
        "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    let kinds = kinds.join(",");
    let args = [
        "get",
        &kinds,
        "-A",
        "-l",
        "kubectl-addons.dev/owner",
        "-o",
        template,
    ];
    let output = stage.plugin.kubectl(&args).await?.done()?;
    Ok(output.stdout.lines().map(str::to_owned).collect())
}

fn assert_same(found: &BTreeSet<String>, expected: &BTreeSet<String>, when: &str) -> Result<()> {
    let missing: Vec<_> = expected.difference(found).collect();
    let more: Vec<_> = found.difference(expected).collect();
    ensure!(
        missing.is_empty() && more.is_empty(),
        "{when}: missing {missing:#?}, and too many {more:#?}"
    );
    Ok(())
}

/// Semantics 21: after each release exactly its labelled objects are there, and what is never pruned of the releases before.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real trees of the addon-manager")]
async fn the_trees_of_the_addon_manager() -> Result<()> {
    let mut tally = Tally::new("directories::corpus");
    let Some(corpus) = shared::path("corpus/addon-manager") else {
        tally.left_out("corpus/addon-manager is not beside the checkout");
        return Ok(());
    };
    let cluster = ControlPlane::start(Options::default()).await?;
    let stage = Stage::on(cluster, "trees").await?;
    let directory = Directory {
        path: stage.plugin.home().join("addons"),
        stage,
    };
    let stage = &directory.stage;
    let mut kept = BTreeSet::new();
    let mut counts = BTreeMap::new();
    for release in RELEASES {
        if directory.path.exists() {
            fs::remove_dir_all(&directory.path)?;
        }
        let tree = copy(&corpus.join(release), &directory.path, &mut tally)?;
        ensure!(
            tree.managed.len() > 80,
            "{release}: {} objects",
            tree.managed.len()
        );
        let flags = "--yes --wait=false --recreate DaemonSet/node-problem-detector";
        let flags = if release == "release-1.36" {
            flags
        } else {
            "--yes --wait=false"
        };
        let said = stage
            .run(&directory.line(flags))
            .await?
            .done()
            .with_context(|| release)?;
        for ignored in &tree.ignored {
            let name = ignored.rsplit('/').next().unwrap_or_default();
            ensure!(
                said.stderr.contains(&format!("{name} is ignored")),
                "{release}: {ignored}: {}",
                said.stderr
            );
        }
        let expected = tree.managed.union(&kept).cloned().collect();
        assert_same(&owned(stage).await?, &expected, release)?;
        kept.extend(tree.kept);
        counts.insert(release, expected.len());
        let mark = stage.cluster.audit().mark()?;
        stage
            .run(&directory.line("--yes --wait=false"))
            .await?
            .done()?;
        let requests = stage.requests(mark)?;
        ensure!(
            requests.writes("kubectl-addons") == 0,
            "{release}: {:?}",
            requests.by_verb("kubectl-addons")
        );
        tally.ran();
    }
    tally.note(format!("objects after each release: {counts:?}"));
    Ok(())
}
