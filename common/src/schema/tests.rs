use std::sync::Arc;

use serde_json::json;

use super::*;

fn manifest(line: usize, object: Value) -> Manifest {
    let place = FilePosition {
        file: "set.yaml".to_owned(),
        line,
        column: 0,
    };
    let object = Arc::new(object);
    Manifest { object, place }
}

fn definition(schema: Value) -> Manifest {
    let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.test"},
        "spec": {"group": "example.test", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    manifest(1, object)
}

fn thing(spec: Value) -> Manifest {
    let object = json!({"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
    manifest(9, object)
}

/// Returns `path message` of every problem, and the notes.
fn judge(spec_schema: Value, spec: Value) -> (Vec<String>, Vec<String>) {
    let schema = json!({"type": "object", "properties": {"spec": spec_schema}});
    let manifests = [definition(schema), thing(spec)];
    match CrdSchemas::from_manifests(manifests.iter()).check(&manifests) {
        Ok(notes) => (Vec::new(), notes),
        Err(error) => {
            let line = |problem: &SchemaProblem| format!("{} {}", problem.path, problem.message);
            (error.problems.iter().map(line).collect(), Vec::new())
        }
    }
}

/// (schema of spec, spec, problems).
#[test]
fn what_a_schema_says() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let rows = [
        (
            json!({"type": "object"}),
            json!("x"),
            "spec must be an object, not a string",
        ),
        (
            object(json!({"a": {"type": "integer"}})),
            json!({"a": "1"}),
            "spec.a must be an integer, not a string",
        ),
        (
            object(json!({"a": {"type": "integer"}})),
            json!({"a": 1.5}),
            "spec.a must be an integer, not a number",
        ),
        (
            object(json!({"a": {"type": "integer"}})),
            json!({"a": 2.0}),
            "",
        ),
        (
            object(json!({"a": {"type": "number"}})),
            json!({"a": 1}),
            "",
        ),
        (
            object(json!({"a": {"type": "boolean"}})),
            json!({"a": "yes"}),
            "spec.a must be true or false, not a string",
        ),
        (
            object(json!({"a": {"type": "array", "items": {"type": "string"}}})),
            json!({"a": ["x", 1]}),
            "spec.a[1] must be a string, not an integer: put it in quotes",
        ),
        (
            object(json!({"a": {"x-kubernetes-int-or-string": true}})),
            json!({"a": "50%"}),
            "",
        ),
        (
            object(json!({"a": {"x-kubernetes-int-or-string": true}})),
            json!({"a": 80}),
            "",
        ),
        (
            object(json!({"a": {"x-kubernetes-int-or-string": true}})),
            json!({"a": true}),
            "spec.a must be an integer or a string, not a boolean",
        ),
        // Required fields. Defaults and nulls count as in the API server.
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({}),
            "spec.a is required",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({"a": null}),
            "spec.a is required",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"a": null}),
            "",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "nullable": true}}}),
            json!({"a": null}),
            "",
        ),
        (
            object(json!({"a": {"type": "array", "items": {"type": "string"}}})),
            json!({"a": [null]}),
            "spec.a[0] must be a string, not null",
        ),
        // Values.
        (
            object(json!({"a": {"type": "string", "enum": ["x", "y"]}})),
            json!({"a": "z"}),
            r#"spec.a must be one of "x", "y", not "z""#,
        ),
        (
            object(json!({"a": {"type": "integer", "enum": [1, 2]}})),
            json!({"a": 2}),
            "",
        ),
        (
            object(json!({"a": {"type": "integer", "minimum": 1}})),
            json!({"a": 0}),
            "spec.a must be at least 1, not 0",
        ),
        (
            object(json!({"a": {"type": "integer", "minimum": 1, "exclusiveMinimum": true}})),
            json!({"a": 1}),
            "spec.a must be more than 1, not 1",
        ),
        (
            object(json!({"a": {"type": "integer", "maximum": 5}})),
            json!({"a": 6}),
            "spec.a must be at most 5, not 6",
        ),
        (
            object(json!({"a": {"type": "integer", "maximum": 5, "exclusiveMaximum": true}})),
            json!({"a": 5}),
            "spec.a must be less than 5, not 5",
        ),
        (
            object(json!({"a": {"type": "integer", "multipleOf": 5}})),
            json!({"a": 7}),
            "spec.a must be a multiple of 5, not 7",
        ),
        (
            object(json!({"a": {"type": "string", "minLength": 2}})),
            json!({"a": "é"}),
            "spec.a must have 2 characters at least, not 1",
        ),
        (
            object(json!({"a": {"type": "string", "maxLength": 2}})),
            json!({"a": "äöü"}),
            "spec.a must have 2 characters at most, not 3",
        ),
        (
            object(json!({"a": {"type": "string", "pattern": "^[a-z]+$"}})),
            json!({"a": "A"}),
            r#"spec.a must match the pattern ^[a-z]+$, unlike "A""#,
        ),
        (
            object(json!({"a": {"type": "string", "pattern": "b"}})),
            json!({"a": "abc"}),
            "",
        ),
        (
            object(json!({"a": {"type": "string", "pattern": r"^\d$"}})),
            json!({"a": "٣"}),
            r#"spec.a must match the pattern ^\d$, unlike "٣""#,
        ),
        (
            object(json!({"a": {"type": "array", "minItems": 1}})),
            json!({"a": []}),
            "spec.a must have 1 items at least, not 0",
        ),
        (
            object(json!({"a": {"type": "array", "maxItems": 1}})),
            json!({"a": [1, 2]}),
            "spec.a must have 1 items at most, not 2",
        ),
        (
            json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
            json!({"a": "1", "b": "2"}),
            "spec must have 1 fields at most, not 2",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"x.y/z": 1}),
            r#"spec["x.y/z"] must be a string, not an integer: put it in quotes"#,
        ),
        // Lists that are sets and maps.
        (
            object(
                json!({"a": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}),
            ),
            json!({"a": ["x", "y", "x"]}),
            "spec.a[2] stands twice in the list",
        ),
        (
            object(
                json!({"a": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"],
            "items": {"type": "object", "properties": {"n": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}}}}}),
            ),
            json!({"a": [{"n": 1}, {"n": 1, "p": "UDP"}, {"n": 1, "p": "TCP"}]}),
            "spec.a[2] stands twice in the list (by n, p)",
        ),
        // Alternatives.
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            "spec fits none of the alternatives of its oneOf",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": "", "b": ""}),
            "spec fits more than one of the alternatives of its oneOf",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": "", "b": ""}),
            "",
        ),
        (
            object(json!({"a": {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 4}]}})),
            json!({"a": 5}),
            "spec.a must be at most 4, not 5",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
            "not": {"properties": {"a": {"enum": ["x"]}}, "required": ["a"]}}),
            json!({"a": "x"}),
            "spec is what its schema excludes (not)",
        ),
        // Embedded objects.
        (
            object(
                json!({"a": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}),
            ),
            json!({"a": {"data": 1}}),
            "spec.a is an object of the cluster and needs apiVersion and kind",
        ),
        (
            object(
                json!({"a": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}),
            ),
            json!({"a": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}, "anything": [1]}}),
            "",
        ),
    ];
    for (schema, spec, expected) in rows {
        let found = judge(schema.clone(), spec.clone());
        let expected: Vec<&str> = Some(expected)
            .filter(|e| !e.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found.0, expected, "{schema} {spec}");
        assert_eq!(found.1, [""; 0], "{schema} {spec}");
    }
}

#[test]
fn unknown_fields_are_only_warnings() {
    let schema = json!({"type": "object", "properties": {"replicas": {"type": "integer"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let (problems, notes) = judge(schema, json!({"replica": 1, "free": {"x": {"y": 1}}}));
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        notes,
        [
            "set.yaml:9: Thing a: spec.replica is unknown and will be dropped; did you mean replicas?"
        ]
    );
}

#[test]
fn what_is_not_judged_here_is_said() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}],
        "properties": {"a": {"type": "string", "pattern": r"^\p{Greek}$"}}});
    let (problems, notes) = judge(schema, json!({"a": "α"}));
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        notes,
        [
            r"set.yaml:9: Thing a: spec.a: the pattern ^\p{Greek}$ is left to the API server",
            "the CEL rules of things.example.test are judged when its objects are applied",
        ]
    );
}

/// Another add-on of the command may contain the definition, and every problem is reported, with its place.
#[test]
fn across_manifests_and_all_at_once() {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object",
        "properties": {"a": {"type": "integer"}}}}});
    let one = [definition(schema)];
    let bare = json!({"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "b", "namespace": "shop"}});
    let other_version = json!({"apiVersion": "example.test/v2", "kind": "Thing", "metadata": {"name": "c"}, "spec": 1});
    let two = [
        thing(json!({"a": []})),
        manifest(3, bare),
        manifest(4, other_version),
    ];
    let schemas = CrdSchemas::from_manifests(one.iter().chain(&two));
    assert_eq!(schemas.check(&one), Ok(Vec::new()));
    let error = schemas.check(&two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "custom resources do not fit the definitions that come with them; correct the manifest:\n\
         set.yaml:3: shop/Thing b: spec is required (things.example.test)\n\
         set.yaml:9: Thing a: spec.a must be an integer, not a list (things.example.test)"
    );
}

/// Depth and numbers of findings are bounded, whatever the input.
#[test]
fn bounded() {
    let mut deep = json!({"type": "object"});
    let mut value = json!(1);
    for _ in 0..500 {
        deep = json!({"type": "object", "properties": {"a": deep}});
        value = json!({ "a": value });
    }
    let (problems, _) = judge(deep, value);
    assert_eq!(
        problems, [""; 0],
        "what is deeper is left to the API server"
    );
    let list = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}});
    let (problems, _) = judge(list, json!({"a": vec![1; 10_000]}));
    assert_eq!(problems.len(), 100);
}
