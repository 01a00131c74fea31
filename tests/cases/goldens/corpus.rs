//! The corpus of real manifests: what claims to load loads, the traps behave as its README says.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a corpus that cannot be read fails them"
)]

use std::path::{Path, PathBuf};

use addons_tests::shared;
use addons_tests::tally::Tally;
use common::manifest::Manifest;
use common::manifest::digest::{HashAlgorithm, HashError, verify};
use common::manifest::parse::{ManifestError, ManifestOptions, ParsedManifests, parse};
use common::manifest::yaml::DuplicateKeys::{self, Error, LastWins};
use common::manifest::yaml::{YamlOptions, YamlProblem, documents};

/// Data files below a folder of the corpus, sorted; `None` where the corpus is not there.
fn files(folder: &str) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![shared::path("corpus")?.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if name.contains(".yaml") || name.contains(".yml") {
                found.push(path);
            }
        }
    }
    found.sort();
    Some(found)
}

/// A manifest of the corpus.
fn manifest(file: &str) -> Result<ParsedManifests, ManifestError> {
    let bytes = std::fs::read(shared::path("corpus").unwrap().join(file)).unwrap();
    parse(&bytes, file, &ManifestOptions::default())
}

/// How many documents with apiVersion and kind a file has; `None` if one of its documents does not load.
fn objects(path: &Path, duplicate_keys: DuplicateKeys) -> Option<usize> {
    let options = YamlOptions {
        duplicate_keys,
        ..YamlOptions::default()
    };
    let bytes = std::fs::read(path).unwrap();
    let mut objects = 0;
    for document in documents(&bytes, &options) {
        let value = document.ok()?.value;
        objects += usize::from(value.get("apiVersion").is_some() && value.get("kind").is_some());
    }
    Some(objects)
}

/// The manifests of an index that it has a hash for: file, hash.
fn hashes(index: &Path) -> Vec<(PathBuf, String)> {
    let bytes = std::fs::read(index).unwrap();
    let index_value = documents(&bytes, &YamlOptions::default())
        .next()
        .unwrap()
        .unwrap()
        .value;
    index_value["spec"]["addons"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|addon| {
            let file = index.with_file_name(addon["manifest"].as_str()?);
            Some((file, addon["manifestHash"].as_str()?.to_owned()))
        })
        .collect()
}

const NO_CORPUS: &str = "the corpus does not lie beside the checkout";

/// Folder, data files, documents with apiVersion and kind, files that are templates: the counts of corpus/README.md.
const FOLDERS: [(&str, usize, usize, usize); 6] = [
    ("kops", 234, 1771, 0),
    ("kops/legacy", 76, 452, 5),
    ("addon-manager", 312, 523, 11),
    ("kkp", 189, 84, 119),
    ("upstream", 53, 265, 0),
    ("minikube", 66, 87, 22),
];

/// Files with a repeated key: only they load in the lenient mode alone.
const REPEATED_KEYS: [&str; 4] = [
    "addon-manager/release-1.20/dns/kube-dns/kube-dns.yaml.base",
    "addon-manager/release-1.20/dns/kube-dns/kube-dns.yaml.sed",
    "addon-manager/release-1.20/dns-horizontal-autoscaler/dns-horizontal-autoscaler.yaml",
    "kops/legacy/ingress-citrix/v1.1.1.yaml",
];

#[test]
fn everything_but_templates_loads() {
    let mut tally = Tally::new("goldens::corpus::files");
    let mut repeated = Vec::new();
    for (folder, files_there, objects_there, templates_there) in FOLDERS {
        let Some(mut files) = files(folder) else {
            tally.left_out(NO_CORPUS);
            return;
        };
        files.retain(|file| folder != "kops" || !file.to_str().unwrap().contains("/legacy/"));
        let (mut all, mut templates) = (0, 0);
        for file in &files {
            tally.ran();
            match objects(file, Error).or_else(|| {
                let lenient = objects(file, LastWins)?;
                repeated.push(file.clone());
                Some(lenient)
            }) {
                Some(objects) => all += objects,
                None => templates += 1,
            }
        }
        assert_eq!(
            (files.len(), all, templates),
            (files_there, objects_there, templates_there),
            "{folder}"
        );
    }
    let corpus = shared::path("corpus").unwrap();
    repeated.sort();
    assert_eq!(repeated, REPEATED_KEYS.map(|file| corpus.join(file)));
}

/// Every manifest of the generated indexes gives its objects and has the hash that the index says; so do those of the
/// old ones that hash with sha1 or the raw bytes. opzkit's md5 proves nothing.
#[test]
fn manifests_of_the_indexes_parse_and_have_their_hash() {
    let mut tally = Tally::new("goldens::corpus::manifests");
    let Some(files) = files("kops") else {
        tally.left_out(NO_CORPUS);
        return;
    };
    let (mut objects, mut verified, mut empty) = (0, Vec::new(), 0);
    for index in files {
        let name = index.file_name().unwrap();
        if name != "bootstrap-channel.yaml" && name != "addon.yaml" && name != "addons.yaml" {
            continue;
        }
        for (file, hash) in hashes(&index) {
            // 58 manifests of bootstrapchannelbuilder-1.15.0 are not in the corpus.
            let Ok(bytes) = std::fs::read(&file) else {
                continue;
            };
            tally.ran();
            let file = file.to_str().unwrap();
            verified.push(match verify(&bytes, &hash) {
                Err(HashError::Md5 { .. }) => HashAlgorithm::Md5,
                verified => verified.unwrap(),
            });
            let parsed = parse(&bytes, file, &ManifestOptions::default()).unwrap();
            assert_eq!(parsed.warnings, <[String; 0]>::default(), "{file}");
            empty += usize::from(parsed.manifests.is_empty());
            objects += parsed.manifests.len();
        }
    }
    let count = |kind| {
        verified
            .iter()
            .filter(|verified| **verified == kind)
            .count()
    };
    assert_eq!(count(HashAlgorithm::Sha256), 214 + 2);
    assert_eq!(count(HashAlgorithm::Sha1), 4);
    assert_eq!(count(HashAlgorithm::Md5), 3);
    // Trap (a) of kops: five add-ons without any object.
    assert_eq!(empty, 5);
    assert!(objects > 1771, "{objects}");
}

#[test]
fn what_is_refused_as_the_readme_says() {
    let mut tally = Tally::new("goldens::corpus::refused");
    if shared::path("corpus").is_none() {
        tally.left_out(NO_CORPUS);
        return;
    }
    let duplicate = manifest("kops/legacy/ingress-citrix/v1.1.1.yaml").unwrap_err();
    assert!(
        matches!(&duplicate, ManifestError::Yaml { place, problem: YamlProblem::DuplicateKey { key, first_line: 45, .. } }
            if key == "apiVersion" && place.line == 56),
        "{duplicate:?}"
    );
    tally.ran();
    let template = manifest("kops/legacy/cluster-autoscaler/v1.10.0.yaml").unwrap_err();
    assert!(
        matches!(
            &template,
            ManifestError::Yaml {
                problem: YamlProblem::KeyNotText,
                ..
            }
        ),
        "{template:?}"
    );
    tally.ran();
    // Lists of 14 items without metadata; then the same ClusterRoleBinding twice, in two versions of it.
    for (file, second, first) in [
        ("v0.19.0", 5311, 15),
        ("v0.26.0", 6433, 1),
        ("v0.29.0", 6433, 1),
    ] {
        let file = format!("kops/legacy/prometheus-operator/{file}.yaml");
        let conflict = manifest(&file).unwrap_err().to_string();
        assert!(
            conflict.starts_with(&format!("{file}:{second}: ")),
            "{conflict}"
        );
        assert!(conflict.contains(&format!("{file}:{first} ")), "{conflict}");
    }
    tally.ran();
    let config = manifest(
        "addon-manager/release-1.20/fluentd-elasticsearch/es-image/config/elasticsearch.yml",
    );
    assert!(matches!(
        config,
        Err(ManifestError::Missing {
            field: "apiVersion",
            ..
        })
    ));
    tally.ran();
}

#[test]
fn what_loads_as_the_readme_says() {
    let mut tally = Tally::new("goldens::corpus::loaded");
    if shared::path("corpus").is_none() {
        tally.left_out(NO_CORPUS);
        return;
    }
    // A bare `=`, and nine empty documents.
    let bundle = manifest("upstream/prometheus-operator/v0.80.0/bundle.yaml").unwrap();
    assert_eq!(bundle.manifests.len(), 15);
    tally.ran();
    // Text that looks like a template is text.
    let authentication = "kops/complex/authentication.aws/k8s-1.12.yaml";
    let text = manifest(authentication).unwrap().manifests;
    assert!(
        text.iter()
            .any(|manifest| manifest.object.to_string().contains("{{SessionNameRaw}}"))
    );
    tally.ran();
    let kustomization = manifest("upstream/metrics-server/v0.9.0-base/kustomization.yaml").unwrap();
    assert_eq!(
        (kustomization.manifests.len(), kustomization.warnings.len()),
        (0, 1)
    );
    tally.ran();
    let null_verb =
        manifest("kops/legacy/third-party/opzkit/rendered/cilium_patch_role/v0.0.1.yaml").unwrap();
    let has_null = |manifest: &Manifest| {
        let verbs = manifest.object["rules"][0]["verbs"].as_array();
        verbs.is_some_and(|verbs| verbs.contains(&serde_json::Value::Null))
    };
    assert!(null_verb.manifests.iter().any(has_null));
    tally.ran();
    // A file that begins with `--- `.
    let headlamp = manifest("minikube/addons/headlamp/headlamp-service.yaml").unwrap();
    assert_eq!(headlamp.manifests.len(), 1);
    tally.ran();
}
