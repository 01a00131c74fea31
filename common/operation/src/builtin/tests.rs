use super::*;

#[test]
fn every_resource_of_a_kustomization_is_part_of_the_program() {
    for folder in ["base", "policies"] {
        let objects = kustomization::build(folder).expect("it is built");
        assert!(objects.len() > 7, "{folder}: {}", objects.len());
        for object in &objects {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/part-of"], "kubectl-addons");
        }
    }
    let definitions = definitions().expect("definitions");
    assert!(definitions.len() > 1, "{}", definitions.len());
}

#[test]
fn the_template_makes_what_the_files_say() {
    let catalogue = catalogue().expect("it is read");
    let entry = &catalogue.entries[0];
    assert!(is_builtin(entry) && entry.addon == WEBHOOK);
    let inline = entry.version.source.inline.as_ref();
    let mut text = inline.expect("an inline manifest").manifest.clone();
    let values = entry.version.values.as_ref().expect("values");
    for value in [IMAGE, FAILURE_POLICY] {
        let action = format!("{{{{ .Variables.{value} | toJson }}}}");
        assert!(text.contains(&action), "{value}");
        text = text.replace(&action, &values[value].to_string());
    }
    assert!(!text.contains("{{"), "it is not part of a template");
    let rendered: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    let files = webhook_objects().expect("it is built");
    assert_eq!(rendered, files);
}

#[test]
fn what_manages_certificates_is_what_the_overlay_leaves_out() {
    let overlay = include_str!("../../../../deploy/overlays/cert-manager/kustomization.yaml");
    let role = include_str!("../../../../deploy/overlays/cert-manager/role.yaml");
    let role: Value = serde_saphyr::from_str(role).expect("YAML");
    let (mut gone, mut roles) = (0, 0);
    for object in webhook_objects().expect("it is built") {
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let mut left = object.clone();
        if !webhook::strip_managed_certificate(&mut left) {
            let left_out = format!("kind: {kind}\n    metadata: {{name: '{name}'");
            assert!(overlay.contains(&left_out), "{left_out}");
            gone += 1;
        } else if left != object {
            assert_eq!((kind, &left["rules"]), ("Role".to_owned(), &role["rules"]));
            roles += 1;
        }
    }
    assert_eq!(overlay.matches("$patch: delete").count(), gone);
    assert_eq!(roles, 1);
}
