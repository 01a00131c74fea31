//! Merged layers, and the origin of each value.

use serde_json::json;

use super::*;
use crate::api::fixtures::{catalogue, installation, source};
use crate::catalogue::Catalogue;
use crate::values::defaulted::{defaults, fill_defaults};

/// The entry of a catalogue `platform` with these fields.
fn entry(fields: Value) -> CatalogueEntry {
    let mut version = json!({"version": "1.0.0", "source": source()});
    for (key, value) in fields.as_object().unwrap() {
        version[key] = value.clone();
    }
    let addons = json!([{"name": "a", "versions": [version]}]);
    let catalogue = Catalogue::from_objects(&[catalogue("platform", addons)]);
    catalogue.entries.into_iter().next().unwrap()
}

fn example() -> Layers {
    let entry = entry(json!({
        "values": {"image": {"registry": "mirror"}, "args": ["c"], "gone": {"x": 1}},
        "template": {"method": "go-template", "formSpec": [
            {"internalName": "replicas", "type": "number", "default": 1},
        ]},
    }));
    let mut layers = Layers::new(
        &entry,
        json!({"replicas": 3, "gone": null, "extra": {"y": null}}),
    );
    let package =
        json!({"image": {"registry": "hub", "tag": "1"}, "args": ["p", "q"], "n": null, "e": {}});
    layers.package = LayerValues::new("values.yaml of the package", package);
    let secret = json!({"db": {"password": "hunter2"}, "image": {"tag": "s3cret"}});
    layers.values_from = vec![LayerValues::from_secret("shop", "db", "values", secret)];
    layers
}

#[test]
fn later_layers_win() {
    let merged = json!({
        "image": {"registry": "mirror", "tag": "s3cret"},
        "args": ["c"],
        "n": null,
        "e": {},
        "replicas": 3,
        "db": {"password": "hunter2"},
        "extra": {},
    });
    assert_eq!(example().merge_all(), merged);
    let mut masked = merged;
    for pointer in ["/image/tag", "/db/password"] {
        *masked.pointer_mut(pointer).unwrap() = json!("(from Secret shop/db, key values)");
    }
    assert_eq!(example().merge_masked(), masked);
}

#[test]
fn helm_gets_the_nulls_and_not_the_defaults_of_the_chart() {
    assert_eq!(
        example().overrides(),
        json!({
            "image": {"registry": "mirror", "tag": "s3cret"},
            "args": ["c"],
            "gone": null,
            "replicas": 3,
            "db": {"password": "hunter2"},
            "extra": {"y": null},
        })
    );
}

#[test]
fn every_leaf_has_its_origin() {
    let told: Vec<String> = example()
        .explain()
        .into_iter()
        .map(|leaf| {
            let what = match (&leaf.value, leaf.deleted) {
                (Some(value), false) if !leaf.masked => value.to_string(),
                (None, true) if !leaf.masked => "deleted".to_owned(),
                (None, false) => leaf.by.note(),
                other => format!("{other:?}"),
            };
            let over: Vec<_> = leaf.overrides.iter().map(|it| it.layer.name()).collect();
            let (path, by) = (&leaf.path, &leaf.by);
            format!(
                "{path} = {what} | {} | {} | {}",
                by.layer.name(),
                by.source,
                over.join(" ")
            )
        })
        .collect();
    let at = "catalogue platform, spec.addons[0].versions[0].values";
    assert_eq!(
        told,
        [
            format!("args = [\"c\"] | catalogue | {at} | package"),
            "db.password = (from Secret shop/db, key values) | valuesFrom | Secret shop/db, key values | ".to_owned(),
            "e = {} | package | values.yaml of the package | ".to_owned(),
            "extra.y = deleted | spec | spec.values | ".to_owned(),
            "gone = deleted | spec | spec.values | catalogue".to_owned(),
            format!("image.registry = \"mirror\" | catalogue | {at} | package"),
            "image.tag = (from Secret shop/db, key values) | valuesFrom | Secret shop/db, key values | package".to_owned(),
            "n = null | package | values.yaml of the package | ".to_owned(),
            "replicas = 3 | spec | spec.values | form".to_owned(),
        ]
    );
}

#[test]
fn what_replaces_a_map_overrides_all_that_was_in_it() {
    let mut layers = example();
    layers.spec = LayerValues::new("spec.values", json!({"image": "text", "args": {"a": 1}}));
    let explained = layers.explain();
    let over = |path: &str| {
        let leaf = explained.iter().find(|leaf| leaf.path.to_string() == path);
        let over = &leaf.unwrap().overrides;
        over.iter().map(|it| it.layer.name()).collect::<Vec<_>>()
    };
    assert_eq!(over("image"), ["package", "catalogue", "valuesFrom"]);
    assert_eq!(over("args.a"), ["package", "catalogue"]);
}

#[test]
fn what_was_filled_in_stays_under_the_secrets() {
    let entry = entry(json!({
        "values": {"password": "default", "level": 1},
        "template": {"method": "helm"},
    }));
    let own = json!({"mine": 1});
    let filled = fill_defaults(
        own.as_object().unwrap(),
        &DefaultsRecord::default(),
        defaults(&entry.version),
    );
    let filled = filled.unwrap();
    let mut object = installation(
        "n",
        "a",
        json!({"name": "a"}),
        json!({"values": filled.values}),
    );
    object.metadata.annotations = filled
        .record
        .to_annotation()
        .map(|text| [(ANNOTATION_DEFAULTED.to_owned(), text)].into());
    // An edit makes it the user's, over the Secret.
    object.spec.values.as_mut().unwrap()["level"] = json!(2);
    let mut layers = Layers::for_installation(&entry, &object);
    let secret = json!({"password": "hunter2", "level": 3});
    layers.values_from = vec![LayerValues::from_secret("n", "s", "k", secret)];
    assert_eq!(
        layers.merge_all(),
        json!({"password": "hunter2", "level": 2, "mine": 1})
    );
    assert!(!format!("{layers:?}").contains("hunter2"));
}

#[test]
fn plain_manifests_have_no_values_of_an_entry() {
    let entry = entry(json!({"values": {"a": 1}}));
    assert_eq!(Layers::new(&entry, json!({})).merge_all(), json!({}));
}

#[test]
fn as_json() {
    let explained = serde_json::to_value(example().explain()).unwrap();
    assert_eq!(
        explained[1],
        json!({
            "path": "db.password",
            "masked": true,
            "layer": "valuesFrom",
            "source": "Secret shop/db, key values",
        })
    );
    assert_eq!(
        explained[8],
        json!({
            "path": "replicas",
            "value": 3,
            "layer": "spec",
            "source": "spec.values",
            "overrides": [{"layer": "form", "source": "catalogue platform, spec.addons[0].versions[0].template.formSpec"}],
        })
    );
}

/// Helm reads whole numbers of files as floating-point ones; those of Secrets never become arguments.
#[test]
fn whole_numbers_above_the_package() {
    let layers = Layers {
        package: LayerValues::new("p", json!({"port": 80, "kept": 1_000_000})),
        catalogue: LayerValues::new("c", json!({"size": 2_000_000, "account": 1})),
        values_from: vec![LayerValues::from_secret(
            "n",
            "s",
            "k",
            json!({"pin": 123_456}),
        )],
        spec: LayerValues::new(
            "spec",
            json!({"account": 123_456_789_012_i64, "ratio": 1.5, "big": u64::MAX, "text": "5", "a.b": {"c,d": -3},
                "list": [1, {"uid": 1_000_620_000}, "x"], "none": null}),
        ),
        ..Layers::default()
    };
    let mut found = layers.whole_numbers();
    found.sort();
    let expected = [
        "a\\.b.c\\,d=-3",
        "account=123456789012",
        "list[0]=1",
        "list[1].uid=1000620000",
        "size=2000000",
    ];
    assert_eq!(found, expected);
}
