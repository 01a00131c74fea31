//! What a case needs: the package with its templates, and the stores.

use serde_json::{Value, json};

use super::draw::{Case, Method, Outcome, Place, Store};

/// The version of every add-on; every Secret of values holds it, too.
pub(super) const VERSION: &str = "7.3.1";

/// The text of the package, in Go's templates.
pub(super) fn manifest(case: &Case, literal: &str) -> String {
    let variables = match case.method {
        Method::Templates => ".Variables",
        Method::Chart | Method::Release => ".Values",
    };
    let data = match case.method {
        Method::Templates => "",
        Method::Chart | Method::Release => ".Values.templateData",
    };
    let value = match case.store {
        Store::Values | Store::File | Store::Set => format!("{variables}.canary"),
        Store::NestedValues => format!("(index {variables}.deep.list 0).canary"),
        Store::TemplateData => format!("{data}.Credentials.AWS.SecretAccessKey"),
        Store::Manifest => json!(literal).to_string(),
        Store::Generated => "randAlphaNum 20".to_owned(),
        Store::Live | Store::Credentials => "\"what everybody may know\"".to_owned(),
    };
    let name = &case.name;
    let first = match case.place {
        Place::Secret => of_map("Secret", name, ""),
        Place::ConfigMap => of_map("ConfigMap", name, ""),
        Place::Environment => deployment(name, ""),
        Place::Annotation => format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {{example.test/canary: {{{{ $c | quote }}}}}}\n"
        ),
    };
    let holder = match case.store {
        Store::Manifest | Store::Generated => of_map("Secret", &format!("{name}-made"), ""),
        _ => String::new(),
    };
    format!(
        "{{{{- $c := {value} }}}}\n{first}---\n{holder}---\n{}",
        stumbling(case)
    )
}

/// What goes wrong.
fn stumbling(case: &Case) -> String {
    let bad = format!("{}-bad", case.name);
    let kind = match case.place {
        Place::Secret => "Secret",
        _ => "ConfigMap",
    };
    match case.outcome {
        Outcome::Rejected => format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {bad}}}\nspec: {{type: {{{{ $c | quote }}}}, ports: [{{port: 80}}]}}\n"
        ),
        Outcome::Malformed => deployment(&bad, "\n  replicas: {{ $c | quote }}"),
        Outcome::Denied => of_map(kind, &bad, "\n  labels: {canary: denied}"),
        Outcome::Failing => "{{ fail (printf \"this is bad: %s\" $c) }}\n".to_owned(),
        Outcome::TimedOut => {
            deployment(&bad, "").replace("spec: {", "spec: {nodeSelector: {zone: none}, ")
        }
        Outcome::Fixed if case.place == Place::Environment => format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {bad}}}\nspec:\n  suspend: true\n  template:\n    spec: {{restartPolicy: Never, \
             containers: [{{name: main, image: main, env: [{{name: CANARY, value: {{{{ $c | quote }}}}}}]}}]}}\n"
        ),
        Outcome::Fixed => format!("{}immutable: true\n", of_map(kind, &bad, "")),
        _ => String::new(),
    }
}

/// A Secret or a ConfigMap with the value in its data.
fn of_map(kind: &str, name: &str, metadata: &str) -> String {
    let data = match kind {
        "Secret" => "{canary: {{ $c | b64enc | quote }}}",
        _ => {
            "{canary: {{ $c | quote }}, encoded: {{ $c | b64enc | quote }}, json: {{ dict \"a\" $c | toJson | quote }}}"
        }
    };
    format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}{metadata}\ndata: {data}\n")
}

fn deployment(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}{spec}\n  \
         template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: main, image: main, env: \
         [{{name: CANARY, value: {{{{ $c | quote }}}}}}]}}]}}\n"
    )
}

/// Where the value is in the live object, as a JSON pointer.
pub(super) fn field(place: Place) -> &'static str {
    match place {
        Place::Secret | Place::ConfigMap => "/data/canary",
        Place::Environment => "/spec/template/spec/containers/0/env/0/value",
        Place::Annotation => "/metadata/annotations/example.test~1canary",
    }
}

/// The kind of the first object.
pub(super) fn kind(place: Place) -> &'static str {
    match place {
        Place::Secret => "secret",
        Place::ConfigMap | Place::Annotation => "configmap",
        Place::Environment => "deployment",
    }
}

/// The values with the canary. A Secret also holds what is never masked: names and versions.
pub(super) fn values(case: &Case, text: &str, namespace: &str) -> Value {
    let canary = match case.store {
        Store::NestedValues => json!({"deep": {"list": [{"canary": text}]}}),
        _ => json!({"canary": text}),
    };
    let mut values = canary;
    if !case.is_entered() {
        values["same"] = json!([case.name, VERSION, namespace, format!("{}-bad", case.name)]);
    }
    values
}

/// The version of the add-on.
pub(super) fn version(case: &Case, source: &Value) -> Value {
    let mut template = match case.method {
        Method::Templates => json!({"method": "go-template"}),
        Method::Chart => json!({"method": "helm"}),
        Method::Release => json!({"method": "helm", "helm": {"mode": "release"}}),
    };
    if case.outcome == Outcome::Schema && case.method == Method::Templates {
        let path = match case.store {
            Store::NestedValues => "deep.list",
            _ => "canary",
        };
        template["formSpec"] = json!([{"internalName": path, "type": "number"}]);
    }
    json!({"version": VERSION, "template": template, "source": source})
}

/// The schema of a chart that no canary fits.
pub(super) fn schema(case: &Case) -> Option<String> {
    let canary = json!({"properties": {"canary": {"type": "string", "pattern": "^[0-9]+$"}}});
    let schema = match case.store {
        Store::NestedValues => {
            json!({"properties": {"deep": {"properties": {"list": {"items": canary}}}}})
        }
        _ => canary,
    };
    (case.outcome == Outcome::Schema).then(|| schema.to_string())
}
