//! One table for each rule.

use serde_json::{Value, json};

use super::*;
use crate::fixtures::{catalogue, installation, marks, source, texts};
use common::api::names::ANNOTATION_DEFAULTED;
use common::catalogue::Catalogue;
use common::values::defaulted::{DefaultsRecord, defaults, fill_defaults};
use common::values::layers::LayerValues;

#[test]
fn names_are_fixed_and_add_on_and_target_stay() {
    assert!(generate_name(&marks(false, json!({"generateName": "a-"}))).is_some());
    assert_eq!(
        generate_name(&marks(false, json!({"generateName": ""}))),
        None
    );
    let of = |addon: &str, target: Option<&str>| {
        let mut object = installation("n", "a", json!({"name": addon}), json!({}));
        object.spec.target_namespace = target.map(str::to_owned);
        object
    };
    for (new, old, fields) in [
        (of("a", None), of("a", None), vec![]),
        (of("a", Some("x")), of("a", None), vec![]),
        (
            of("a", Some("y")),
            of("a", Some("x")),
            vec!["spec.targetNamespace"],
        ),
        (
            of("a", None),
            of("a", Some("x")),
            vec!["spec.targetNamespace"],
        ),
        (of("b", None), of("a", None), vec!["spec.addonRef.name"]),
        (
            of("b", None),
            of("a", Some("x")),
            vec!["spec.addonRef.name", "spec.targetNamespace"],
        ),
    ] {
        let problems = immutable(&new, &old);
        let found: Vec<&str> = problems
            .iter()
            .map(|problem| problem.field.as_str())
            .collect();
        assert_eq!(found, fields);
    }
}

#[test]
fn deleting_a_record_warns_about_objects_that_stay() {
    let read = |spec: Value, status: Value, finalizers: Value| {
        let object = json!({
            "metadata": {"name": "web", "namespace": "n", "finalizers": finalizers},
            "spec": spec,
            "status": status,
        });
        let raw = serde_json::value::to_raw_value(&object).unwrap();
        let marks = GuardMarks::read(&raw).unwrap();
        warn_orphans(&marks).or_else(|| warn_finished_later(&marks))
    };
    let listed = json!({"inventory": [{"version": "v1", "kind": "ConfigMap", "objects": []}]});
    let text = read(json!({}), listed.clone(), json!([])).unwrap();
    assert!(text.contains(&owner_hash("n", "web")), "{text}");
    for (spec, status, finalizers) in [
        (json!({}), json!({}), json!([])),
        (json!({}), json!({"inventory": []}), json!([])),
        (
            json!({"deletionPolicy": "Orphan"}),
            listed.clone(),
            json!([]),
        ),
        (
            json!({"deletionPolicy": "Orphan"}),
            listed.clone(),
            json!([FINALIZER_UNINSTALL]),
        ),
    ] {
        assert_eq!(read(spec, status, finalizers), None);
    }
    let text = read(json!({}), listed, json!([FINALIZER_UNINSTALL])).unwrap();
    assert!(text.contains("by the reconciler"), "{text}");
}

/// An entry of method go-template with catalogue values, a form and `formOnly`.
fn entry(form_only: bool) -> CatalogueEntry {
    let version = json!({
        "version": "1.0.0",
        "source": source(),
        "values": {"image": {"registry": "mirror"}, "spec": {"mode": "fast"}},
        "template": {"method": "go-template", "formOnly": form_only, "formSpec": [
            {"internalName": "spec.replicas", "type": "number", "default": 1},
            {"displayName": "Host", "internalName": "spec.host", "required": true},
        ]},
    });
    let catalogue = catalogue("c", json!([{"name": "a", "versions": [version]}]));
    Catalogue::from_objects(&[catalogue]).entries.remove(0)
}

#[test]
fn values_fit_the_form_and_with_form_only_nothing_else() {
    let judged = |form_only: bool, values: Value, from: Value| {
        let more = json!({"values": values, "valuesFrom": from});
        let object = installation("n", "a", json!({"name": "a"}), more);
        texts(&super::values(&object, &entry(form_only)))
    };
    let (none, secret) = (
        json!([]),
        json!([{"secretKeyRef": {"name": "s", "key": "k"}}]),
    );
    let unknown = "the form has no such field, and the add-on takes no other values";
    for (form_only, values, from, expected) in [
        (true, json!({"spec": {"host": "h", "replicas": 2}}), &none, vec![]),
        (false, json!({"spec": {"host": "h"}, "other": "s3cret"}), &none, vec![]),
        // The catalogue's values are the admin's, unless the user sets them.
        (
            true,
            json!({"spec": {"host": "h", "mode": "slow"}, "image": {"registry": "s3cret"}}),
            &none,
            vec![
                format!("spec.values.image: {unknown}"),
                format!("spec.values.spec.mode: {unknown}"),
            ],
        ),
        (
            true,
            json!({"spec": {"host": ["s3cret"]}, "hots": "s3cret"}),
            &none,
            vec![
                "spec.values.spec.host: text is expected, this is a list (Host)".to_owned(),
                format!("spec.values.hots: {unknown}; did you mean spec.host?"),
            ],
        ),
        (
            true,
            json!({"spec": {"hosts": "s3cret"}}),
            &none,
            vec![
                "spec.values.spec.host: a value is required (Host)".to_owned(),
                format!("spec.values.spec.hosts: {unknown}; did you mean spec.host?"),
            ],
        ),
        (true, json!({}), &secret, vec![]),
        (true, json!({"other": 1}), &secret, vec![format!("spec.values.other: {unknown}")]),
        (
            true,
            json!({"spec": null}),
            &secret,
            vec!["spec.values.spec: a map is expected, this is null: the form has spec.replicas in it".to_owned()],
        ),
    ] {
        assert_eq!(judged(form_only, values.clone(), from.clone()), expected, "{values}");
    }
}

/// Values that were filled in by default are not the user's: neither `formOnly` nor a later change of the catalogue judges them.
#[test]
fn what_was_filled_in_counts_as_the_catalogues() {
    let entry = entry(true);
    let own = json!({"spec": {"host": "h"}});
    let filled = fill_defaults(
        own.as_object().unwrap(),
        &DefaultsRecord::default(),
        defaults(&entry.version),
    )
    .unwrap();
    let mut object = installation(
        "n",
        "a",
        json!({"name": "a"}),
        json!({"values": filled.values}),
    );
    assert_eq!(
        super::values(&object, &entry).len(),
        2,
        "without its record"
    );
    object.metadata.annotations = filled
        .record
        .to_annotation()
        .map(|text| [(ANNOTATION_DEFAULTED.to_owned(), text)].into());
    assert_eq!(super::values(&object, &entry), []);
    // A leaf that was edited since then is the user's again.
    object.spec.values.as_mut().unwrap()["image"]["registry"] = json!("other");
    assert_eq!(super::values(&object, &entry).len(), 1);
}

#[test]
fn secrets_are_judged_once_they_are_read() {
    let judged = |form_only: bool, secret: Value| {
        let entry = entry(form_only);
        let mut layers = Layers::new(&entry, json!({}));
        layers.values_from = vec![LayerValues::from_secret("n", "s", "k", secret)];
        texts(&secret_values(&layers, &entry))
    };
    for (form_only, secret, expected) in [
        (true, json!({"spec": {"host": "h"}}), vec![]),
        (false, json!({"spec": {"host": "h"}, "other": 1}), vec![]),
        (
            true,
            json!({"spec": {"host": "h"}, "other": "s3cret"}),
            vec![
                "Secret n/s, key k: other: the form has no such field, and the add-on takes no other values",
            ],
        ),
        (
            false,
            json!({"spec": {"host": "h", "replicas": "s3cret"}}),
            vec!["Secret n/s, key k: spec.replicas: a number is expected, this is text"],
        ),
        (
            false,
            json!({}),
            vec![
                "spec.values.spec.host: a value is required, and no Secret of spec.valuesFrom holds one",
            ],
        ),
    ] {
        assert_eq!(judged(form_only, secret.clone()), expected, "{secret}");
    }
}

#[test]
fn an_index_is_a_location_without_credentials() {
    for (index, problem, is_plain) in [
        (json!(null), None, false),
        (json!("https://h/index.yaml"), None, false),
        (json!("file:///srv/index.yaml"), None, false),
        (json!("http://127.0.0.1:80/index.yaml"), None, false),
        (json!("http://h/index.yaml"), None, true),
        (
            json!("https://user:geheim@h/index.yaml"),
            Some("a URL holds no credentials"),
            false,
        ),
        (
            json!("ftp://h/index.yaml"),
            Some("ftp:// is not read here"),
            false,
        ),
        (json!(""), Some("a value is required"), false),
    ] {
        let reference = json!({"name": "a", "index": index});
        let object = installation("n", "a", reference, json!({}));
        let found = super::index(&object).map(|problem| problem.message);
        assert_eq!(found.is_some(), problem.is_some(), "{index}: {found:?}");
        let found = found.unwrap_or_default();
        assert!(
            found.starts_with(problem.unwrap_or_default()) && !found.contains("geheim"),
            "{found}"
        );
        assert_eq!(
            warn_unencrypted_index(&object).is_some(),
            is_plain,
            "{index}"
        );
    }
}

#[test]
fn patches_are_read_and_helm_itself_takes_none() {
    let release = |mode: &str| {
        let version = json!({
            "version": "1.0.0", "source": source(), "template": {"method": "helm", "helm": {"mode": mode}},
        });
        let catalogue = catalogue("c", json!([{"name": "a", "versions": [version]}]));
        Catalogue::from_objects(&[catalogue]).entries.remove(0)
    };
    let valid = json!([{"patch": "spec: CANARY", "target": {"kind": "Till"}}]);
    let of_helm = "spec.patches: helm itself installs the add-on (mode release), and no patch reaches what it renders; leave them out";
    for (mode, patches, expected) in [
        ("objects", &valid, vec![]),
        ("release", &json!([]), vec![]),
        ("release", &valid, vec![of_helm]),
        (
            "objects",
            &json!([{"patch": "spec: CANARY"}]),
            vec![
                "spec.patches[0].patch: without a target, a patch names its object with apiVersion, kind and metadata.name",
            ],
        ),
    ] {
        let more = json!({"patches": patches});
        let object = installation("n", "a", json!({"name": "a"}), more);
        let problems: Vec<_> = super::patches(&object, Some(&release(mode)))
            .into_iter()
            .collect();
        assert_eq!(texts(&problems), expected, "{mode}: {patches}");
    }
}
