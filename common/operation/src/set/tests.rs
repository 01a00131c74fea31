use super::*;

fn one(name: &str, more: &str) -> String {
    format!(
        "apiVersion: {API_VERSION}\nkind: AddonInstallation\nmetadata: {{name: {name}}}\nspec: {{addonRef: {{name: web}}{more}}}\n"
    )
}

/// As [`one`], a field a line.
fn long(more: &str) -> String {
    format!(
        "apiVersion: {API_VERSION}\nkind: AddonInstallation\nmetadata:\n  name: a\nspec:\n  addonRef:\n    name: web\n{more}"
    )
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let read = read_set(text.as_bytes(), "set.yaml", "kubectl-addons")
        .map_err(|error| error.to_string())?;
    Ok(read
        .into_iter()
        .map(|one| one.metadata.name.unwrap())
        .collect())
}

#[test]
fn documents_and_lists_are_read() {
    let text = format!(
        "# nothing\n---\n{}---\n{}",
        one("a", ""),
        one("b", ", values: {x: 1}")
    );
    assert_eq!(names(&text), Ok(vec!["a".to_owned(), "b".to_owned()]));
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: {API_VERSION}, kind: AddonInstallation, metadata: {{name: c}}, spec: {{addonRef: {{name: web}}}}}}\n"
    );
    assert_eq!(names(&list), Ok(vec!["c".to_owned()]));
}

#[test]
fn what_is_wrong_has_its_line_and_its_field() {
    let of_config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (text, says) in [
        (
            String::new(),
            "set.yaml: 0 installations; a set has 1 to 1000",
        ),
        (
            of_config_map.to_owned(),
            "set.yaml:2: kind ConfigMap of v1 is not an AddonInstallation of",
        ),
        (
            one("a", ", value: {x: 1}"),
            "set.yaml:4: unknown field spec.value; did you mean values?",
        ),
        (
            one("a", ", suspend: maybe"),
            "set.yaml:4: spec.suspend must be",
        ),
        (
            long("  suspend: maybe\n  reconcile: Never\n"),
            "set.yaml:8: spec.suspend must be true or false, not a string; line 9: spec.reconcile must be one of",
        ),
        (
            format!("{}---\n{}", one("b", ""), long("  value: {x: 1}\n")),
            "set.yaml:13: unknown field spec.value; did you mean values?",
        ),
        (
            format!(
                "kind: List\nitems:\n- {}",
                long("  value: {x: 1}\n").replace('\n', "\n  ")
            ),
            "set.yaml:10: unknown field spec.value; did you mean values?",
        ),
        (one("", ""), "set.yaml:3: metadata.name is missing"),
        (
            format!("{}---\n{}", one("a", ""), one("a", "")),
            "set.yaml:8: metadata.name: a is in this file twice",
        ),
        (
            one("a, namespace: shop", ""),
            "set.yaml:3: metadata.namespace is shop, and this command works in kubectl-addons",
        ),
        ("a: [".to_owned(), "set.yaml"),
    ] {
        let error = names(&text).unwrap_err();
        assert!(error.starts_with(says), "{error}\ninstead of {says}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = [
        one("a", "").replace("AddonInstallation", "AddonInstalation"),
        one("b", ", valus: {x: 1}, suspend: maybe"),
        one("c, namespace: other", ""),
        one("c", ""),
    ];
    let error = names(&text.join("---\n")).unwrap_err();
    assert_eq!(
        error,
        format!(
            "set.yaml:2: kind AddonInstalation of {API_VERSION} is not an AddonInstallation of {API_VERSION}; did you mean AddonInstallation?\n\
             set.yaml:9: spec.suspend must be true or false, not a string; unknown field spec.valus; did you mean values?\n\
             set.yaml:13: metadata.namespace is other, and this command works in kubectl-addons: remove the field, or add -n other\n\
             set.yaml:18: metadata.name: c is in this file twice"
        )
    );
}

#[test]
fn a_set_is_told_from_a_file_with_values() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: {API_VERSION}, kind: AddonInstallation}}\n"
    );
    for (text, expected) in [
        (one("a", ""), true),
        (format!("# first\n---\n{}", one("a", ", value: 1")), true),
        (list, true),
        (
            one("a", "").replace("AddonInstallation", "AddonInstalation"),
            true,
        ),
        ("kind: AddonInstallation\nreplicas: 2\n".to_owned(), false),
        ("replicas: 2\n".to_owned(), false),
        ("- a\n".to_owned(), false),
        (": :".to_owned(), false),
        (String::new(), false),
    ] {
        assert_eq!(is_set(text.as_bytes()), expected, "{text}");
    }
}
