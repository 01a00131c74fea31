//! One key in every store: each wins over those before it, for both methods that take values.

use std::sync::Arc;

use addons_admission::{AdmissionFacts, mutate};
use addons_render::package::{Package, PackagedFile};
use addons_render::text::package_values;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::catalogue::{Catalogue, CatalogueEntry};
use common::values::layers::{LayerValues, Layers};
use common::values::merge::{Layer, merge};
use common::values::read;
use common::values::set::{Grammar, apply_assignments, parse_assignments};
use serde_json::{Value, json};

/// Every store, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Store {
    Package,
    Catalogue,
    Form,
    FirstSecret,
    SecondSecret,
    FirstFile,
    SecondFile,
    Flag,
}

const STORES: [Store; 8] = [
    Store::Package,
    Store::Catalogue,
    Store::Form,
    Store::FirstSecret,
    Store::SecondSecret,
    Store::FirstFile,
    Store::SecondFile,
    Store::Flag,
];

impl Store {
    fn text(self) -> String {
        format!("{self:?}")
    }

    fn layer(self) -> Layer {
        match self {
            Self::Package => Layer::Package,
            Self::Catalogue => Layer::Catalogue,
            Self::Form => Layer::Form,
            Self::FirstSecret | Self::SecondSecret => Layer::ValuesFrom,
            Self::FirstFile | Self::SecondFile | Self::Flag => Layer::Spec,
        }
    }

    /// `spec: {key: STORE}` as YAML.
    fn yaml(self) -> Vec<u8> {
        format!("spec:\n  key: {}\n  {}: true\n", self.text(), self.text()).into_bytes()
    }
}

/// The layers of an installation where the key stands in these stores, after defaults were filled in as the webhook does.
fn layers(method: &str, stores: &[Store]) -> Result<Layers> {
    let has = |store: Store| stores.contains(&store);
    let (object, entry) = installation(method, stores)?;
    let mut layers = Layers::for_installation(&entry, &object);
    if has(Store::Package) {
        let files = [
            ("values.yaml", Store::Package.yaml()),
            ("Chart.yaml", Vec::new()),
        ];
        let files = files.map(|(path, bytes)| PackagedFile {
            path: path.to_owned(),
            bytes,
        });
        layers.package = package_values(&Package::from_folder(files.into())?)?;
    }
    for store in [Store::FirstSecret, Store::SecondSecret] {
        if has(store) {
            let values = read(&store.yaml(), "a Secret")?;
            let values = LayerValues::from_secret("shop", &store.text(), "values", values);
            layers.values_from.push(values);
        }
    }
    Ok(layers)
}

fn installation(method: &str, stores: &[Store]) -> Result<(AddonInstallation, CatalogueEntry)> {
    let has = |store: Store| stores.contains(&store);
    let mut field = json!({"internalName": "spec.key", "type": "text"});
    if has(Store::Form) {
        field["default"] = json!(Store::Form.text());
    }
    let mut version = json!({
        "version": "1.0.0",
        "source": {"url": {"manifest": "package"}},
        "template": {"method": method, "formSpec": [field]},
    });
    if has(Store::Catalogue) {
        version["values"] = read(&Store::Catalogue.yaml(), "the catalogue")?;
    }
    let catalogue: AddonCatalogue = serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1",
        "kind": "AddonCatalogue",
        "metadata": {"name": "platform", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": [version]}]},
    }))?;
    let mut entries = Catalogue::from_objects(std::slice::from_ref(&catalogue)).entries;
    let entry = entries.pop().context("no entry")?;
    let mut object = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1",
        "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": "kubectl-addons"},
        "spec": {"addonRef": {"name": "web"}},
    });
    if let Some(written) = written(stores)? {
        object["spec"]["values"] = written;
    }
    let facts = AdmissionFacts {
        catalogues: vec![Arc::new(catalogue.into())],
        ..AdmissionFacts::default()
    };
    let patch = mutate::defaults(&object, None, &facts).patch;
    json_patch::patch(&mut object, &patch)?;
    Ok((serde_json::from_value(object)?, entry))
}

/// What `-f` and `--set` come to, in their order.
fn written(stores: &[Store]) -> Result<Option<Value>> {
    let files = [Store::FirstFile, Store::SecondFile];
    let files: Vec<Value> = files
        .into_iter()
        .filter(|store| stores.contains(store))
        .map(|store| read(&store.yaml(), "a file"))
        .collect::<Result<_, _>>()?;
    let layers: Vec<_> = files.iter().map(|file| (Layer::Spec, file)).collect();
    let mut values = merge(&layers);
    if stores.contains(&Store::Flag) {
        let text = Store::Flag.text();
        let flag = format!("spec.key={text},spec.{text}=true");
        apply_assignments(&mut values, &parse_assignments(Grammar::Typed, &flag)?, &[])?;
    }
    Ok((values != json!({})).then_some(values))
}

#[test]
fn each_store_wins_over_those_before_it() -> Result<()> {
    let mut tally = Tally::new("values::stores");
    for method in ["go-template", "helm"] {
        // Every set of stores: the last one wins, whatever is missing before it.
        for bits in 1_u32..1 << STORES.len() {
            let stores: Vec<Store> = STORES
                .into_iter()
                .enumerate()
                .filter_map(|(bit, store)| (bits & 1 << bit != 0).then_some(store))
                .collect();
            let last = *stores.last().context("no store")?;
            let layers = layers(method, &stores)?;
            let merged = layers.merge_all();
            ensure!(
                merged["spec"]["key"] == last.text(),
                "{method} {stores:?}: {merged}"
            );
            // Deep: what the others say beside the key stays.
            for store in &stores {
                let said = merged["spec"].get(store.text()).is_some();
                ensure!(
                    said || *store == Store::Form,
                    "{method} {stores:?}: {merged}"
                );
            }
            explains(&layers, &stores, last).with_context(|| format!("{method} {stores:?}"))?;
            // helm merges the defaults of the chart itself, under what it is given.
            let given = layers.overrides();
            let by_helm = merge(&[
                (Layer::Package, layers.package.values()),
                (Layer::Spec, &given),
            ]);
            ensure!(by_helm == merged, "{stores:?}: {by_helm} {merged}");
            tally.ran();
        }
    }
    Ok(())
}

/// The layer of the key is that of the last store, and it overrides those of all others.
fn explains(layers: &Layers, stores: &[Store], last: Store) -> Result<()> {
    let explained = layers.explain();
    let mut leaves = explained.iter();
    let leaf = leaves.find(|leaf| leaf.path.to_string() == "spec.key");
    let leaf = leaf.context("the key is not explained")?;
    ensure!(leaf.by.layer == last.layer(), "{leaf:?}");
    let shown = leaf
        .value
        .as_ref()
        .is_some_and(|value| *value == last.text());
    let is_secret = last.layer() == Layer::ValuesFrom;
    ensure!(shown != is_secret && leaf.masked == is_secret, "{leaf:?}");
    let over: Vec<Layer> = leaf.overrides.iter().map(|by| by.layer).collect();
    let mut expected: Vec<Layer> = stores.iter().map(|store| store.layer()).collect();
    // What is written to spec.values is one layer; every Secret is one.
    expected.retain(|layer| *layer != Layer::Spec);
    if last.layer() != Layer::Spec {
        expected.pop();
    }
    ensure!(over == expected, "{over:?} instead of {expected:?}");
    let text = serde_json::to_string(&explained)? + &layers.merge_masked().to_string();
    let secrets = [Store::FirstSecret, Store::SecondSecret];
    for secret in secrets.map(Store::text) {
        let told = text.contains(&format!("\"key\":\"{secret}\""));
        ensure!(
            !told && !text.contains(&format!("\"value\":\"{secret}\"")),
            "{text}"
        );
    }
    Ok(())
}
