//! The indexes of the corpus: what they hold, what is chosen from them, what is due between two of them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test whose input is broken has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::shared;
use addons_tests::tally::Tally;
use addons_versions::tolerant;
use common::api::installation::{AddonInstallationSpec, Installed};
use common::catalogue::channel::{self, KopsIndex, resolve_manifest};
use common::catalogue::due::{DueVerdict, decide_due};
use common::catalogue::select::{ClusterVersions, EntryRequest, Selection, SelectionRules, select};
use common::catalogue::{Catalogue, Origin};
use sha2::{Digest, Sha256};

fn read(index: &Path) -> KopsIndex {
    let location = index.to_str().unwrap();
    channel::parse(&fs::read(index).unwrap(), location).unwrap_or_else(|error| panic!("{error}"))
}

/// The index `corpus/kops/PATH`, or a note in the tally.
fn corpus(path: &str, tally: &mut Tally) -> Option<PathBuf> {
    let found = shared::path(&format!("corpus/kops/{path}"));
    if found.is_none() {
        tally.left_out(format!("corpus/kops/{path} is not beside the checkout"));
    }
    found
}

/// All indexes below `folder`, sorted.
fn indexes(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            indexes(&path, found);
        } else if [
            "bootstrap-channel.yaml",
            "addon.yaml",
            "addon.yml",
            "addons.yaml",
        ]
        .iter()
        .any(|name| path.ends_with(name))
        {
            found.push(path);
        }
    }
}

fn choose(channel: &KopsIndex, addon: &str, kubernetes: &str, rules: SelectionRules) -> Selection {
    let origin = Origin::Index {
        location: "index".to_owned(),
    };
    let request = EntryRequest {
        addon,
        ..EntryRequest::default()
    };
    let facts = ClusterVersions {
        kubernetes: Some(tolerant::parse_kubernetes(kubernetes).unwrap()),
        kkp: None,
        profile: None,
    };
    select(
        &Catalogue::from_spec(&channel.spec, origin),
        &request,
        &facts,
        rules,
    )
}

/// corpus/README.md: 20 generated indexes, 214 entries; every manifest is there and has its hash once trimmed.
#[test]
fn generated_indexes() {
    let mut tally = Tally::new("channel::generated_indexes");
    let Some(root) = corpus("", &mut tally) else {
        return;
    };
    let mut found = Vec::new();
    indexes(&root, &mut found);
    found.retain(|path| !path.starts_with(root.join("legacy")));
    let mut entries = 0;
    for index in &found {
        let channel = read(index);
        assert_eq!(channel.name, "bootstrap");
        assert_eq!(
            channel.warnings,
            Vec::<String>::new(),
            "{}",
            index.display()
        );
        for version in channel.spec.addons.iter().flat_map(|addon| &addon.versions) {
            let manifest = &version.source.url.as_ref().unwrap().manifest;
            let path = resolve_manifest(channel.spec.base_url.as_ref().unwrap(), manifest).unwrap();
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let hash = Sha256::digest(text.trim().as_bytes());
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(version.manifest_hash.as_ref(), Some(&hash), "{path}");
            entries += 1;
            tally.ran();
        }
    }
    assert_eq!((found.len(), entries), (20, 214));
}

/// corpus/README.md: all 19 can be read; what is wrong with them (missing manifests, foreign hashes) shows later.
#[test]
fn legacy_indexes() {
    let mut tally = Tally::new("channel::legacy_indexes");
    let Some(root) = corpus("legacy", &mut tally) else {
        return;
    };
    let mut found = Vec::new();
    indexes(&root, &mut found);
    let is_index = |path: &PathBuf| fs::read_to_string(path).unwrap().contains("kind: Addons");
    found.retain(is_index);
    assert_eq!(found.len(), 19);
    for index in &found {
        let channel = read(index);
        assert!(!channel.spec.addons.is_empty(), "{}", index.display());
        let warnings: &[&str] = if index.ends_with("prometheus-operator/addon.yaml") {
            &[
                "spec.addons[2].kubernetesversion is read as kubernetesVersion: write it so",
                "spec.addons[3].kubernetesversion is read as kubernetesVersion: write it so",
            ]
        } else {
            &[]
        };
        assert_eq!(channel.warnings, warnings, "{}", index.display());
        tally.ran();
    }
    let opzkit = read(&root.join("third-party/opzkit/rendered/addons.yaml"));
    let version = |addon: usize| opzkit.spec.addons[addon].versions[0].version.clone();
    assert_eq!(
        (version(0), version(1)),
        ("1.0".to_owned(), "0.0.1".to_owned())
    );
}

/// kops-channels §3, "Expected choice under the documented rules"; §1.3 for the channels rules.
#[test]
fn kubernetes_dashboard() {
    let mut tally = Tally::new("channel::kubernetes_dashboard");
    let Some(index) = corpus("legacy/kubernetes-dashboard/addon.yaml", &mut tally) else {
        return;
    };
    let channel = read(&index);
    let table = [
        ("v1.7.16", "1.7.1"),
        ("v1.8.0-beta.1", "1.8.3"),
        ("v1.9.11", "1.8.3"),
        ("v1.10.0", "1.10.1"),
        ("v1.17.17-gke.100", "1.10.1"),
        ("v1.18.0", "2.0.1"),
        ("v1.36.3", "2.0.1"),
    ];
    for (cluster, expect) in table {
        let selection = choose(
            &channel,
            "kubernetes-dashboard",
            cluster,
            SelectionRules::Auto,
        );
        assert_eq!(selection.rules, SelectionRules::Documented);
        assert_eq!(
            selection.chosen.unwrap().version.version,
            expect,
            "{cluster}"
        );
        assert_eq!(selection.rejections.len(), 11);
        let selection = choose(
            &channel,
            "kubernetes-dashboard",
            cluster,
            SelectionRules::Channels,
        );
        assert_eq!(
            selection.chosen.unwrap().version.version,
            "1.1.0",
            "{cluster}"
        );
        tally.ran();
    }
}

/// Which add-ons of `new` are due where `old` is installed, and how many are not.
fn due_between(old: &KopsIndex, new: &KopsIndex) -> (Vec<String>, usize) {
    let (mut names, mut settled) = (Vec::new(), 0);
    for addon in &new.spec.addons {
        let before = choose(old, &addon.name, "v1.36.3", SelectionRules::Auto)
            .chosen
            .unwrap();
        let installed = Installed {
            version: before.version.version,
            id: before.version.id,
            manifest_hash: before.version.manifest_hash.unwrap(),
            ..Installed::default()
        };
        let selection = choose(new, &addon.name, "v1.36.3", SelectionRules::Auto);
        match decide_due(
            &installed,
            &selection.chosen.unwrap(),
            &AddonInstallationSpec::default(),
            selection.rules,
            None,
            "",
        ) {
            DueVerdict::No => settled += 1,
            DueVerdict::Yes { reason } => names.push(format!("{}: {reason}", addon.name)),
            DueVerdict::Downgrade { from, to } => panic!("{}: {from} to {to}", addon.name),
        }
    }
    (names, settled)
}

/// corpus/README.md, "era pair", "id pair" and "smallest real upgrade".
#[test]
fn upgrades() {
    let mut tally = Tally::new("channel::upgrades");
    let mut index = |folder: &str| {
        let path = corpus(&format!("{folder}/bootstrap-channel.yaml"), &mut tally)?;
        tally.ran();
        Some(read(&path))
    };
    if let (Some(old), Some(new)) = (index("many-addons-v1.30.0"), index("many-addons")) {
        let rules = |channel| {
            choose(
                channel,
                "coredns.addons.k8s.io",
                "v1.36.3",
                SelectionRules::Auto,
            )
            .rules
        };
        assert_eq!(
            (rules(&old), rules(&new)),
            (SelectionRules::Documented, SelectionRules::Channels)
        );
        assert_eq!(due_between(&old, &old), (vec![], 16));
        let (due, settled) = due_between(&old, &new);
        assert_eq!((due.len(), settled), (16, 0), "{due:?}");
        assert!(
            due.iter().all(|due| due.ends_with(": manifest changed")),
            "{due:?}"
        );
    }
    if let (Some(old), Some(new)) = (index("many-addons-ccm"), index("many-addons-ccm-irsa")) {
        let (due, _) = due_between(&old, &new);
        let expect = "aws-load-balancer-controller.addons.k8s.io: id k8s-1.19 → k8s-1.19-irsa";
        assert!(
            due.len() == 7 && due.iter().any(|due| due == expect),
            "{due:?}"
        );
    }
    if let (Some(old), Some(new)) = (index("minimal-1.32"), index("minimal-1.35")) {
        let (due, _) = due_between(&old, &new);
        assert_eq!(due, ["aws-ebs-csi-driver.addons.k8s.io: manifest changed"]);
    }
}
