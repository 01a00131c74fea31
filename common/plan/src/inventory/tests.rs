use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: "apps".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    }
}

/// One item a state, and what an answer makes of it.
#[test]
fn answers() {
    use ObjectState::{Owned, Planned, Preexisting, Retained};
    // (recorded state, state on success, 201?, state afterwards)
    let rows = [
        (Some(Planned), Owned, true, Owned),
        (Some(Planned), Owned, false, Preexisting),
        (Some(Planned), Retained, true, Retained),
        (Some(Planned), Retained, false, Preexisting),
        (Some(Owned), Owned, false, Owned),
        (Some(Owned), Owned, true, Owned),
        (Some(Retained), Owned, false, Owned),
        (Some(Preexisting), Preexisting, false, Preexisting),
        (None, Owned, false, Preexisting),
        (None, Owned, true, Owned),
    ];
    for (recorded, success, created, expected) in rows {
        let mut inventory = Inventory::default();
        if let Some(state) = recorded {
            let mut item = InventoryItem::planned("web", "v1");
            item.object.state = state;
            if state != Planned {
                item.object.uid = "u1".to_owned();
            }
            inventory.objects.insert(key("web"), item);
        }
        let mut exact = InventoryItem::planned("web", "v1");
        exact.object.state = success;
        exact.object.digest = "d1".to_owned();
        let answer = ApplyAnswer {
            created,
            uid: "u1".to_owned(),
            generation: Some(4),
            resource_version: "77".to_owned(),
            fields: String::new(),
            only_recorded: false,
        };
        inventory.record_applied(&key("web"), &exact, &answer, Vec::new());
        let object = &inventory.objects[&key("web")].object;
        assert_eq!(object.state, expected, "{recorded:?} {success:?} {created}");
        assert_eq!(
            (&*object.uid, &*object.digest, object.generation),
            ("u1", "d1", Some(4))
        );
        assert_eq!(object.resource_version, None, "a generation is enough");
        let owned = ApplyAnswer {
            generation: None,
            fields: "f".to_owned(),
            ..answer.clone()
        };
        inventory.record_applied(&key("web"), &exact, &owned, Vec::new());
        let object = &inventory.objects[&key("web")].object;
        let known = (object.resource_version.as_deref(), object.fields.as_deref());
        assert_eq!(known, (None, Some("f")), "our fields are enough");

        // Deleted and created again between plan and apply.
        let late = ApplyAnswer {
            uid: "u2".to_owned(),
            created: false,
            ..answer.clone()
        };
        inventory.record_applied(&key("web"), &exact, &late, Vec::new());
        let object = &inventory.objects[&key("web")].object;
        assert_eq!((object.state, &*object.uid), (Preexisting, "u2"));

        // Of another installation of the same command, which was faster.
        let left = ApplyAnswer {
            only_recorded: true,
            ..late
        };
        inventory.record_applied(&key("web"), &exact, &left, Vec::new());
        let item = &inventory.objects[&key("web")];
        assert_eq!((item.object.state, &*item.object.uid), (Preexisting, "u2"));
        assert!(!item.was_applied(), "nothing of ours is in it");
    }
}

#[test]
fn closing_keeps_the_exact_and_the_undeleted() {
    let of = |names: &[&str]| Inventory {
        objects: names
            .iter()
            .map(|name| (key(name), InventoryItem::planned(name, "v1")))
            .collect(),
    };
    let mut record = of(&["a", "b", "c", "d"]);
    record.remove(&key("d"));
    record.close(&of(&["a", "d"]), &BTreeSet::from([key("b")]));
    assert_eq!(record, of(&["a", "b"]));
}

/// Semantics 13: 5,000 objects fit, each with a name of 40 characters and the longer of the two marks.
#[test]
fn budget() {
    let of = |count: usize, planned: bool| {
        let items = (0..count).map(|i| {
            let name = format!("{i:0>40}");
            let mut item = InventoryItem::planned(&name, "v1");
            if !planned {
                item.object.state = ObjectState::Owned;
                item.object.uid = "0".repeat(36);
                item.object.digest = "0".repeat(20);
                item.object.resource_version = Some("12345678".to_owned());
            }
            (key(&name), item)
        });
        Inventory {
            objects: items.collect(),
        }
    };
    assert_eq!(of(5_000, false).check_budget(), Ok(()));
    assert_eq!(of(5_000, true).check_budget(), Ok(()));
    let error = of(5_100, false).check_budget().unwrap_err();
    assert_eq!((error.objects, error.limit), (5_100, 800_000));
    assert!(of(5_100, true).check_budget().is_err());
}

/// Trust 14: half of the budget may get other names in one upgrade, however long they are.
#[test]
fn a_renamed_set_fits_beside_the_old_one() {
    let of = |prefix: &str, count: usize| {
        let items = (0..count).map(|number| {
            let name = format!("{prefix}{number:0>62}");
            let mut item = InventoryItem::planned(&name, "v1");
            if prefix == "a" {
                item.object = InventoryObject {
                    state: ObjectState::Owned,
                    uid: "0".repeat(36),
                    digest: "0".repeat(20),
                    resource_version: Some("12345678".to_owned()),
                    ..item.object
                };
            }
            (key(&name), item)
        });
        Inventory {
            objects: items.collect(),
        }
    };
    let (old, new) = (of("a", 2_500), of("b", 2_500));
    let union = Inventory::union(&new, &old);
    assert!(union.check_budget().is_err());
    let fitting = union.clone().fit_budget(&new).unwrap();
    assert_eq!(fitting.objects.len(), 5_000);
    assert!(
        fitting.objects.values().all(|item| {
            item.object.state == ObjectState::Planned || item.object.uid.len() == 36
        })
    );
    // Nothing is left out where it fits, and what does not fit is refused.
    let small = Inventory::union(&of("b", 10), &of("a", 10));
    assert_eq!(small.clone().fit_budget(&of("b", 10)), Ok(small));
    let large = Inventory::union(&of("b", 3_500), &of("a", 3_500));
    assert!(large.fit_budget(&of("b", 3_500)).is_err());
}
