use super::*;

fn version(name: &str, served: bool, storage: bool) -> Value {
    json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}})
}

fn definition(versions: Value, stored: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example"},
        "spec": {"group": "shop.example", "names": {"kind": "Till", "plural": "tills"}, "versions": versions},
        "status": {"storedVersions": stored},
    })
}

fn wanted() -> Arc<Value> {
    let mut wanted = definition(json!([version("v1", true, true)]), Value::Null);
    wanted.as_object_mut().unwrap().remove("status");
    Arc::new(wanted)
}

#[test]
fn only_a_dropped_stored_version_is_migrated() {
    let both = json!([version("v1alpha1", true, false), version("v1", true, true)]);
    for (stored, dropped) in [
        (json!(["v1"]), &[][..]),
        (json!(["v1alpha1", "v1"]), &["v1alpha1"]),
    ] {
        let live = definition(both.clone(), stored);
        let found = Migration::new(&live, &wanted(), Some(2));
        let found = found.map(|migration| migration.versions);
        assert_eq!(found.unwrap_or_default(), dropped);
    }
}

#[test]
fn a_version_that_no_definition_has_is_lost_and_not_migrated() {
    let live = definition(
        json!([version("v1", true, true)]),
        json!(["v1alpha1", "v1"]),
    );
    assert_eq!(Migration::new(&live, &wanted(), Some(2)), None);
    let lost = find_lost_versions(&live, &wanted());
    assert_eq!(lost, ["v1alpha1"]);
    assert_eq!(remaining_versions(&live, &lost), ["v1"]);
    let mut bridged = add_lost_versions(&wanted(), &lost);
    let names: Vec<_> = definition_versions(&bridged).filter_map(name).collect();
    assert_eq!(names, ["v1", "v1alpha1"]);
    remove_lost_versions(&mut bridged, &lost);
    assert_eq!(bridged, *wanted());
    // A version that is in the wanted definition again blocks nothing.
    let again = definition(
        json!([version("v1alpha1", true, false), version("v1", true, true)]),
        Value::Null,
    );
    assert_eq!(super::find_lost_versions(&live, &again), [""; 0]);
}

/// Every step follows from the live definition.
#[test]
fn each_step_follows_from_the_live_definition() {
    let mut live = definition(
        json!([version("v1alpha1", true, true)]),
        json!(["v1alpha1"]),
    );
    live["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {}});
    let migration = Migration::new(&live, &wanted(), Some(2)).unwrap();
    assert!(
        !migration.is_begun
            && !migration.needs_no_acceptance()
            && !migration.is_transitional(&live)
    );
    assert_eq!(
        (storage_version(&live), served_version(&live)),
        (Some("v1alpha1"), Some("v1alpha1"))
    );

    let mut next = migration.to_transitional(&live);
    let names: Vec<_> = definition_versions(&next).filter_map(name).collect();
    assert_eq!(names, ["v1", "v1alpha1"]);
    assert_eq!(next["spec"]["versions"][1]["served"], false);
    assert_eq!(next["spec"]["versions"][1]["storage"], false);
    assert_eq!(next["spec"]["conversion"], live["spec"]["conversion"]);
    // What is compared with the live definition is the one after the last step.
    let finished = migration.to_final(&next);
    let names: Vec<_> = definition_versions(&finished).filter_map(name).collect();
    assert_eq!(names, ["v1"]);
    assert_eq!(finished["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(finished["metadata"]["annotations"], json!({}));
    // The API server adds the new storage version.
    next["status"] = json!({"storedVersions": ["v1alpha1", "v1"]});
    let migration = Migration::new(&next, &wanted(), Some(2)).unwrap();
    assert!(
        migration.is_begun && migration.needs_no_acceptance() && migration.is_transitional(&next)
    );
    assert_eq!(served_version(&next), Some("v1"));
    assert_eq!(
        migration.to_transitional(&next)["spec"]["versions"],
        next["spec"]["versions"]
    );

    next["status"]["storedVersions"] = json!(remaining_versions(&next, &migration.versions));
    assert_eq!(next["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(Migration::new(&next, &wanted(), Some(2)), None);
}

#[test]
fn what_is_said_of_it() {
    let live = definition(
        json!([version("v1alpha1", true, true)]),
        json!(["v1alpha1"]),
    );
    let of = |count| Migration::new(&live, &wanted(), count).unwrap();
    let name = "CustomResourceDefinition tills.shop.example";
    let end = "no rollback goes back below that";
    for (count, what) in [
        (Some(0), "v1alpha1 is removed, no object is stored in it"),
        (
            Some(3),
            "3 Tills written again in v1, then v1alpha1 is removed",
        ),
        (
            None,
            "every Till written again in v1, then v1alpha1 is removed",
        ),
    ] {
        assert_eq!(describe([&of(count)]), [format!("{name}: {what}; {end}")]);
    }
    let other = |name: &str, count| {
        let mut migration = of(count);
        migration.definition.name = name.to_owned();
        migration
    };
    let (one, two, three) = (other("a", Some(2)), other("b", Some(3)), other("c", None));
    let lines = describe([&one, &of(Some(0)), &two]);
    assert_eq!(
        lines,
        [
            format!(
                "CustomResourceDefinition a, CustomResourceDefinition b: 5 objects written again in v1, then v1alpha1 is removed; {end}"
            ),
            format!("{name}: v1alpha1 is removed, no object is stored in it; {end}"),
        ]
    );
    assert!(describe([&one, &three])[0].contains("c: all their objects written again in v1"));
    assert!(of(Some(0)).needs_no_acceptance() && !of(None).needs_no_acceptance());
}
