//! Writes the first text of a catalogue.

use std::collections::BTreeSet;

use addons_render::chart::ChartDescription;
use addons_render::images::find_images;
use common::api::catalogue::{AddonVersion, Method};
use common::api::names;
use common::manifest::Manifest;

const NAME: &str = "app.kubernetes.io/name";
const VERSION: &str = "app.kubernetes.io/version";

/// No manifest states the range, and a wrong one is worse than none.
const RANGE: &str = "      # The versions of Kubernetes that it fits; without a range, all of them:
      # constraints: {k8sVersion: \">=1.30.0\"}
";

/// One version of an add-on to write into a catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaffold {
    /// The add-on.
    pub addon: String,
    /// What its chart says about it.
    pub about: ChartDescription,
    /// The version with source, hash and namespace.
    pub version: AddonVersion,
    /// The images, if they are known without rendering.
    pub images: BTreeSet<String>,
    /// The version that folders `NAME/VERSION` say, if they do.
    pub folder_version: Option<String>,
}

/// What objects say about their add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFacts {
    /// The label `app.kubernetes.io/name`, if all objects that have it agree.
    pub name: Option<String>,
    /// The label `app.kubernetes.io/version`, if all objects that have it agree.
    pub version: Option<String>,
    /// The only namespace that objects name.
    pub namespace: Option<String>,
    /// The images of the objects.
    pub images: BTreeSet<String>,
}

/// Returns what the objects of a manifest say about their add-on.
#[must_use]
pub fn read_object_facts(manifests: &[Manifest]) -> ObjectFacts {
    let objects = || manifests.iter().map(|manifest| &manifest.object);
    let only = |pointer: &str| {
        let texts = objects().filter_map(|object| object.pointer(pointer)?.as_str());
        let texts: BTreeSet<&str> = texts.collect();
        match texts.iter().collect::<Vec<_>>().as_slice() {
            [only] => Some((**only).to_owned()),
            _ => None,
        }
    };
    let label = |name: &str| only(&format!("/metadata/labels/{}", name.replace('/', "~1")));
    ObjectFacts {
        name: label(NAME),
        version: label(VERSION),
        namespace: only("/metadata/namespace"),
        images: objects().flat_map(|object| find_images(object)).collect(),
    }
}

/// Returns the text of a catalogue. Versions of one add-on are grouped, and images are comments.
#[must_use]
pub fn catalogue_text(catalogue: &str, versions: &[Scaffold]) -> String {
    let mut text = format!(
        "apiVersion: {}\nkind: AddonCatalogue\nmetadata:\n  name: {}\nspec:\n  addons:\n",
        names::API_VERSION,
        quoted(catalogue)
    );
    let mut written = BTreeSet::new();
    for first in versions {
        if !written.insert(&first.addon) {
            continue;
        }
        let mut of_addon = versions.iter().filter(|one| one.addon == first.addon);
        text.push_str(&format!("  - name: {}\n", quoted(&first.addon)));
        // The highest version of a folder comes last.
        if let Some(newest) = of_addon.clone().next_back() {
            write_description(&mut text, &newest.about);
        }
        text.push_str("    versions:\n");
        of_addon
            .by_ref()
            .for_each(|one| write_entry(&mut text, one));
    }
    text
}

/// Writes what a chart says about itself. A catalogue has no fields for its home page and its icon, so these are comments.
fn write_description(text: &mut String, about: &ChartDescription) {
    for (name, url) in [("home", &about.home), ("icon", &about.icon)] {
        if let Some(url) = url {
            text.push_str(&format!("    # {name}: {url}\n"));
        }
    }
    if let Some(description) = &about.description {
        text.push_str(&format!("    description: {}\n", quoted(description)));
    }
}

fn write_entry(text: &mut String, scaffold: &Scaffold) {
    let version = &scaffold.version;
    text.push_str(&format!("    - version: {}\n", quoted(&version.version)));
    if let Some(namespace) = &version.default_namespace {
        text.push_str(&format!("      defaultNamespace: {}\n", quoted(namespace)));
    }
    match version.template.method {
        Method::Manifest => {}
        Method::GoTemplate => text.push_str("      template: {method: go-template}\n"),
        Method::Helm => text.push_str("      template: {method: helm}\n"),
    }
    if let Some(url) = &version.source.url {
        let manifest = quoted(&url.manifest);
        text.push_str(&format!(
            "      source:\n        url:\n          manifest: {manifest}\n"
        ));
    }
    if let Some(helm) = &version.source.helm {
        let (url, chart) = (quoted(&helm.url), quoted(&helm.chart));
        text.push_str(&format!(
            "      source:\n        helm:\n          url: {url}\n          chart: {chart}\n"
        ));
        if let Some(version) = &helm.version {
            text.push_str(&format!("          version: {}\n", quoted(version)));
        }
        if helm.plain_http {
            text.push_str("          plainHTTP: true\n");
        }
    }
    if let Some(hash) = &version.manifest_hash {
        text.push_str(&format!("      manifestHash: {}\n", quoted(hash)));
    }
    match &version.constraints.k8s_version {
        Some(range) => {
            let range = quoted(range);
            text.push_str(&format!(
                "      constraints:\n        k8sVersion: {range}\n"
            ));
        }
        None => text.push_str(RANGE),
    }
    if !scaffold.images.is_empty() {
        text.push_str("      # images:\n");
        for image in &scaffold.images {
            // An image stays on one line, whatever it contains.
            let image: String = image.chars().filter(|c| !c.is_control()).collect();
            text.push_str(&format!("      # - {image}\n"));
        }
    }
}

/// Quotes a text that YAML would not read as text, with the quotes of JSON, which YAML shares.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !is_word(text);
    if is_plain {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

/// Whether YAML reads a word as something else than text.
fn is_word(text: &str) -> bool {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use addons_admission::document;
    use common::api::catalogue::{Source, UrlSource};
    use common::manifest::parse::{ManifestOptions, parse};
    use common::manifest::yaml::documents;

    #[test]
    fn objects_tell_what_they_are() {
        let manifest = "apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: logging
  labels: {app.kubernetes.io/name: shipper, app.kubernetes.io/version: 1.4.0}
spec: {containers: [{name: a, image: nginx:1.27}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, labels: {app.kubernetes.io/name: shipper}}
";
        let parsed = parse(manifest.as_bytes(), "a.yaml", &ManifestOptions::default()).unwrap();
        let told = read_object_facts(&parsed.manifests);
        assert_eq!(told.name.as_deref(), Some("shipper"));
        assert_eq!(told.version.as_deref(), Some("1.4.0"));
        assert_eq!(told.namespace.as_deref(), Some("logging"));
        assert_eq!(told.images, BTreeSet::from(["nginx:1.27".to_owned()]));
    }

    #[test]
    fn the_text_is_a_catalogue_whatever_the_names_are() {
        let scaffold = |version: &str, manifest: &str| Scaffold {
            addon: "on".to_owned(),
            about: ChartDescription {
                description: Some("Serves: # pages".to_owned()),
                home: Some("https://h/".to_owned()),
                icon: Some("https://h/icon.svg".to_owned()),
            },
            version: AddonVersion {
                version: version.to_owned(),
                source: Source {
                    url: Some(UrlSource {
                        manifest: manifest.to_owned(),
                        auth: None,
                    }),
                    ..Source::default()
                },
                manifest_hash: Some("0123".repeat(16)),
                ..AddonVersion::default()
            },
            images: BTreeSet::from(["a:1\nb: c".to_owned()]),
            folder_version: None,
        };
        let text = catalogue_text(
            "1",
            &[scaffold("1.0", "a b: c.yaml"), scaffold("1.10", "x.yaml")],
        );
        let document = documents(text.as_bytes(), &Default::default()).next();
        let read = document::read(&document.unwrap().unwrap().value);
        assert_eq!(read.problems, []);
        let addons = &read.object.spec.addons;
        assert_eq!((addons.len(), &*addons[0].name), (1, "on"));
        let description = addons[0].description.as_deref();
        assert_eq!(description, Some("Serves: # pages"));
        let written = serde_json::to_value(&addons[0].versions).unwrap();
        assert_eq!(written[0]["version"], json!("1.0"));
        assert_eq!(
            written[0]["source"]["url"]["manifest"],
            json!("a b: c.yaml")
        );
        assert_eq!(written[1]["version"], json!("1.10"));
        let completed = text.replace("# constraints", "constraints");
        let document = documents(completed.as_bytes(), &Default::default()).next();
        let read = document::read(&document.unwrap().unwrap().value);
        assert_eq!(read.problems, [], "{completed}");
        let constraints = &read.object.spec.addons[0].versions[0].constraints;
        assert_eq!(constraints.k8s_version.as_deref(), Some(">=1.30.0"));
    }
}
