use serde_json::{Value, json};

use super::*;

fn is_ours(manager: &str) -> bool {
    manager == "ours"
}

fn definition(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example"},
        "spec": {"group": "shop.example", "scope": "Namespaced", "names": {"kind": "Till", "plural": "tills"}, "versions": versions},
        "status": {"storedVersions": ["v1"]},
    })
}

fn version(name: &str, storage: bool, spec: Value) -> Value {
    let schema =
        json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}});
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

fn one(spec: Value) -> Value {
    definition(json!([version("v1", true, spec)]))
}

fn till(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "shop.example/v1", "kind": "Till", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// Old and new schema of `spec`, a spec that breaks with the message, and one that does not.
#[test]
fn changes_and_the_objects_they_break() {
    let field = |schema: Value| object(json!({"a": schema}));
    let text = json!({"type": "string"});
    let rows = [
        // Removed.
        (
            field(text.clone()),
            object(json!({})),
            json!({"a": "x"}),
            json!({"b": "x"}),
            "field spec.a is removed, 1 live object sets it",
        ),
        (
            field(json!({"type": "array", "items": object(json!({"host": text}))})),
            field(json!({"type": "array", "items": object(json!({}))})),
            json!({"a": [{}, {"host": "x"}]}),
            json!({"a": [{}]}),
            "field spec.a[*].host is removed, 1 live object sets it",
        ),
        (
            field(json!({"type": "object", "additionalProperties": object(json!({"x": text}))})),
            field(json!({"type": "object", "additionalProperties": object(json!({}))})),
            json!({"a": {"k": {"x": "1"}}}),
            json!({"a": {"k": {}}}),
            "field spec.a[*].x is removed, 1 live object sets it",
        ),
        // Required.
        (
            field(text.clone()),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({}),
            json!({"a": "x"}),
            "field spec.a becomes required, 1 live object lacks it",
        ),
        // Tightened.
        (
            field(text.clone()),
            field(json!({"type": "integer"})),
            json!({"a": "x"}),
            json!({}),
            "field spec.a has to be integer, 1 live object does not fit",
        ),
        (
            field(json!({"x-kubernetes-int-or-string": true})),
            field(json!({"type": "integer"})),
            json!({"a": "80%"}),
            json!({"a": 80}),
            "field spec.a has to be integer, 1 live object does not fit",
        ),
        (
            field(json!({"type": "string", "enum": ["x", "y"]})),
            field(json!({"type": "string", "enum": ["x", "z"]})),
            json!({"a": "y"}),
            json!({"a": "x"}),
            "field spec.a takes only \"x\", \"z\", 1 live object does not fit",
        ),
        (
            field(json!({"type": "integer", "minimum": 1})),
            field(json!({"type": "integer", "minimum": 2})),
            json!({"a": 1}),
            json!({"a": 2}),
            "field spec.a has to be 2 at least, 1 live object does not fit",
        ),
        (
            field(json!({"type": "integer", "maximum": 9})),
            field(json!({"type": "integer", "maximum": 9, "exclusiveMaximum": true})),
            json!({"a": 9}),
            json!({"a": 8}),
            "field spec.a has to be less than 9, 1 live object does not fit",
        ),
        (
            field(text.clone()),
            field(json!({"type": "string", "pattern": "^[a-z]+$"})),
            json!({"a": "X"}),
            json!({"a": "x"}),
            "field spec.a has to match ^[a-z]+$, 1 live object does not fit",
        ),
        (
            field(text.clone()),
            field(json!({"type": "string", "maxLength": 2})),
            json!({"a": "äöü"}),
            json!({"a": "äö"}),
            "field spec.a may have 2 characters at most, 1 live object does not fit",
        ),
        (
            field(json!({"type": "array", "items": text})),
            field(json!({"type": "array", "items": text, "maxItems": 1})),
            json!({"a": ["x", "y"]}),
            json!({"a": ["x"]}),
            "field spec.a may have 1 item at most, 1 live object does not fit",
        ),
        (
            field(json!({"type": "array", "items": text})),
            field(json!({"type": "array", "items": text, "x-kubernetes-list-type": "set"})),
            json!({"a": ["x", "x"]}),
            json!({"a": ["x"]}),
            "field spec.a takes no item twice, 1 live object does not fit",
        ),
        (
            field(json!({"type": "string", "nullable": true})),
            field(text.clone()),
            json!({"a": null}),
            json!({"a": "x"}),
            "field spec.a has to be string, 1 live object does not fit",
        ),
        (
            field(json!({"x-kubernetes-preserve-unknown-fields": true, "type": "object"})),
            field(object(json!({"b": {}}))),
            json!({"a": {"b": 1, "c": 1}}),
            json!({"a": {"b": 1}}),
            "field spec.a keeps only fields that the schema names, 1 live object has such a field",
        ),
        (
            field(json!({"type": "object", "additionalProperties": true})),
            field(json!({"type": "object", "additionalProperties": text})),
            json!({"a": {"k": 1}}),
            json!({"a": {"k": "x"}}),
            "field spec.a[*] has to be string, 1 live object does not fit",
        ),
        (
            field(json!({"type": "object"})),
            field(json!({"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]})),
            json!({"a": {}}),
            json!({"a": {"x": 1}}),
            "field spec.a has to fit another oneOf, 1 live object does not fit",
        ),
    ];
    for (old, new, broken, fine, words) in rows {
        let comparison = CrdComparison::new(&one(old.clone()), &one(new.clone()), &is_ours);
        let mut scan = ObjectScan::new(comparison.clone());
        scan.check_objects("v1", &[till("broken", broken), till("fine", fine)]);
        let breakage = scan.finish(None).breakage;
        let breakage = breakage.unwrap_or_else(|| panic!("{words}: {comparison:?}"));
        assert_eq!(breakage.changes, [words]);
        let hurt = [&breakage.loses, &breakage.invalid];
        assert_eq!(
            hurt.map(|hurt| hurt.count).iter().sum::<usize>(),
            1,
            "{words}"
        );
    }
}

/// What peers refuse although nothing can break.
#[test]
fn harmless_changes_are_none() {
    let field = |schema: Value| one(object(json!({"a": schema})));
    let rows = [
        (
            field(json!({"type": "string", "description": "x"})),
            field(json!({"type": "string", "description": "y"})),
        ),
        (
            field(json!({"type": "string", "pattern": "^a"})),
            field(json!({"type": "string"})),
        ),
        (
            field(json!({"type": "integer", "maximum": 1})),
            field(json!({"type": "integer", "maximum": 2})),
        ),
        (
            field(json!({"type": "string", "enum": ["x"]})),
            field(json!({"type": "string", "enum": ["x", "y"]})),
        ),
        (
            field(json!({"type": "integer"})),
            field(
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
        ),
        (
            field(json!({"type": "string"})),
            one(json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}}}})),
        ),
        (
            field(json!({"type": "string"})),
            one(
                json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
            ),
        ),
        (
            field(json!({"type": "string", "default": "x"})),
            field(json!({"type": "string", "default": "y"})),
        ),
    ];
    for (old, new) in rows {
        let comparison = CrdComparison::new(&old, &new, &is_ours);
        assert_eq!(comparison.changes, [], "{new}");
        assert!(comparison.impossible.is_empty() && comparison.unjudged.is_empty());
    }
}

#[test]
fn changes_of_a_status_are_ignored_and_rules_of_cel_are_warnings() {
    let with_status = |status: Value| {
        let mut crd = one(json!({"type": "object"}));
        let version = &mut crd["spec"]["versions"][0];
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
        version["subresources"] = json!({"status": {}});
        crd
    };
    let old = with_status(object(json!({"phase": {"type": "string"}})));
    let comparison = CrdComparison::new(&old, &with_status(object(json!({}))), &is_ours);
    assert_eq!(comparison.changes, []);

    let with_rule = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a > 0"}]});
    let comparison = CrdComparison::new(&one(json!({"type": "object"})), &one(with_rule), &is_ours);
    let found = ObjectScan::new(comparison).finish(None);
    assert_eq!(found.breakage, None);
    assert_eq!(found.warnings, [""; 0]);
    let unjudged = found.harmless.unwrap().unjudged;
    assert_eq!(
        unjudged,
        ["field spec gets a rule that cannot be judged from here: self.a > 0"]
    );
}

#[test]
fn what_the_api_server_never_changes() {
    let live = one(json!({"type": "object"}));
    let mut cluster = live.clone();
    cluster["spec"]["scope"] = json!("Cluster");
    let comparison = CrdComparison::new(&live, &cluster, &is_ours);
    assert!(
        comparison.impossible[0]
            .to_string()
            .starts_with("spec.scope cannot change from Namespaced to Cluster; ")
    );
    let next = definition(json!([version("v2", true, json!({"type": "object"}))]));
    let comparison = CrdComparison::new(&live, &next, &is_ours);
    assert!(comparison.impossible.is_empty(), "it is migrated");
    assert_eq!(
        comparison.unserved,
        ["version v1 would no longer be served: move its clients to another version first"]
    );
}

/// (managers of the live conversion by webhook, the wanted conversion, whether `spec.a` is lost). Without a conversion of its own, the
/// wanted definition loses that which only its installation has applied.
#[test]
fn a_conversion_that_is_left_out_stays_only_where_others_set_it() {
    let v1 = |storage| version("v1", storage, object(json!({"a": {"type": "string"}})));
    let v2 = version("v2", true, object(json!({"b": {"type": "string"}})));
    let none = || Some(json!({"strategy": "None"}));
    let webhook = || Some(json!({"strategy": "Webhook"}));
    for (managers, conversion, loses) in [
        (&["ours"][..], None, true),
        (&["ours", "other"], None, false),
        (&["other"], None, false),
        (&[], None, false),
        (&["other"], none(), true),
        (&["ours"], webhook(), false),
    ] {
        let mut live = definition(json!([v1(true)]));
        live["spec"]["conversion"] = json!({"strategy": "Webhook"});
        let strategy = json!({"f:spec": {"f:conversion": {".": {}, "f:strategy": {}}}});
        let entries = managers
            .iter()
            .map(|manager| json!({"manager": manager, "fieldsV1": strategy}));
        // Whoever injects a certificate has not decided how objects are converted.
        let injector = json!({"manager": "injector", "fieldsV1":
            {"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}}});
        live["metadata"]["managedFields"] = entries.chain([injector]).collect();
        let mut wanted = definition(json!([v1(false), v2]));
        if let Some(conversion) = &conversion {
            wanted["spec"]["conversion"] = conversion.clone();
        }
        let changes = CrdComparison::new(&live, &wanted, &is_ours).changes;
        assert_eq!(!changes.is_empty(), loses, "{managers:?} {conversion:?}");

        // The objects of a version that leaves are written again while the webhook still converts them.
        wanted["spec"]["versions"] = json!([v2]);
        assert_eq!(CrdComparison::new(&live, &wanted, &is_ours).changes, []);
    }
}

/// Versions: a new storage version without conversion, one behind a webhook, one that is not served any more.
#[test]
fn versions_are_compared_with_what_they_become() {
    let old = || version("v1", true, object(json!({"a": {"type": "string"}})));
    let live = definition(json!([old()]));
    let mut v1 = old();
    v1["storage"] = json!(false);
    let v2 = version("v2", true, object(json!({"b": {"type": "string"}})));
    let mut wanted = definition(json!([v1.clone(), v2.clone()]));
    let comparison = CrdComparison::new(&live, &wanted, &is_ours);
    let changes: Vec<String> = comparison.changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        ["field spec.a is removed"],
        "stored as v2, it is dropped"
    );
    assert_eq!(comparison.versions_to_read(), ["v1"]);

    wanted["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(
        CrdComparison::new(&live, &wanted, &is_ours).changes,
        [],
        "converted"
    );

    v1["served"] = json!(false);
    wanted["spec"]["versions"] = json!([v1, v2]);
    assert_eq!(
        CrdComparison::new(&live, &wanted, &is_ours).unserved,
        ["version v1 would no longer be served: move its clients to another version first"]
    );
}

/// Objects that were read are fine; others may break.
#[test]
fn objects_that_were_not_read_may_break() {
    let old = object(json!({"a": {"type": "string"}, "b": {"type": "integer"}}));
    let new = object(json!({"b": {"type": "integer", "format": "int32", "maximum": 9}}));
    let scan = || {
        ObjectScan::new(CrdComparison::new(
            &one(old.clone()),
            &one(new.clone()),
            &is_ours,
        ))
    };
    let fine = [till("fine", json!({"b": 9}))];
    let changes = [
        "field spec.a is removed",
        "field spec.b may be 9 at most",
        "field spec.b has to be of format int32",
    ];

    let mut all = scan();
    all.check_objects("v1", &fine);
    let found = all.finish(None);
    assert_eq!(found.breakage, None);
    let harmless = [
        "no live object sets it",
        "every live object fits",
        "every live object fits",
    ];
    let harmless: Vec<String> = changes
        .iter()
        .zip(harmless)
        .map(|(change, verdict)| format!("{change}, {verdict}"))
        .collect();
    let found: Vec<String> = found.harmless.unwrap().sentences().cloned().collect();
    assert_eq!(found, harmless);

    let mut some = scan();
    some.check_objects("v1", &fine);
    some.mark_incomplete();
    for (scan, why) in [
        (some, "there are more of them than the 1 that were read"),
        (scan(), "forbidden"),
    ] {
        let found = scan.finish((why == "forbidden").then(|| why.to_owned()));
        let breakage = found.breakage.unwrap();
        assert_eq!(breakage.changes, changes);
        assert_eq!(
            breakage.describe_harm(),
            [format!("perhaps break Tills ({why})")]
        );
        assert_eq!(found.harmless, None);
    }
}

#[test]
fn the_refusal_counts_every_object_once() {
    let old = object(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
    let new = object(json!({"b": {"type": "string", "maxLength": 1}}));
    let mut scan = ObjectScan::new(CrdComparison::new(&one(old), &one(new), &is_ours));
    let names = ["c", "a", "b", "d", "e", "f"];
    let objects: Vec<Value> = names
        .iter()
        .map(|name| till(name, json!({"a": "1", "b": "22"})))
        .collect();
    scan.check_objects("v1", &objects);
    scan.check_objects("v1", &[till("g", json!({"b": "22"}))]);
    let found = scan.finish(None);
    let breakage = found.breakage.unwrap();
    assert_eq!(found.harmless, None);
    assert_eq!(
        breakage.lines(),
        [
            "CustomResourceDefinition tills.shop.example: field spec.a is removed, 6 live objects set it",
            "CustomResourceDefinition tills.shop.example: field spec.b may have 1 character at most, 7 live objects do not fit",
        ]
    );
    assert_eq!(
        breakage.describe_harm(),
        [
            "lose data in 6 Tills (shop/a, shop/b, shop/c, shop/d, shop/e and 1 more)",
            "make 1 Till invalid (shop/g)",
        ]
    );
}
