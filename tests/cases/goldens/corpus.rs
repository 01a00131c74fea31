//! The corpus of real manifests: what claims to load loads, the traps behave as its README says.

use std::path::{Path, PathBuf};

use addons_tests::shared;
use addons_tests::tally::Tally;
use common::manifest::parse::{Limits, ManifestError, Parsed, parse};
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
fn manifest(file: &str) -> Result<Parsed, ManifestError> {
    let bytes = std::fs::read(shared::path("corpus").unwrap().join(file)).unwrap();
    parse(&bytes, file, &Limits::default())
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

#[test]
fn explore() {
    for folder in ["kops", "kops/legacy", "addon-manager", "kkp", "upstream", "minikube"] {
        let mut n = 0; let mut objs = 0; let mut objs2=0; let mut bad = vec![]; let mut strict = vec![];
        for file in files(folder).unwrap() {
            if folder == "kops" && file.to_str().unwrap().contains("/legacy/") { continue; }
            n += 1;
            match objects(&file, LastWins) { Some(o) => { objs += o; if objects(&file, Error).is_none() { strict.push(file.clone()); }
              let bytes = std::fs::read(&file).unwrap();
              match parse(&bytes, file.to_str().unwrap(), &Limits::default()) { Ok(p) => {objs2 += p.manifests.len(); for w in p.warnings { println!("W {w}"); }}, Err(e) => println!("E {e} {:?}", std::error::Error::source(&e).map(|s| s.to_string())) }
            }, None => bad.push(file.clone()) }
        }
        println!("{folder}: {n} files {objs} objects {objs2} parsed, bad {}, strict {}", bad.len(), strict.len());
        if bad.len() < 12 || folder == "addon-manager" { for b in &bad { println!("  bad {}", b.display()); } }
        for b in &strict { println!("  strict {}", b.display()); }
    }
}
