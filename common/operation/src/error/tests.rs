use common::manifest::parse::{self, ManifestOptions};
use common::values::mask::SecretMask;
use serde_json::json;

use super::*;

#[test]
fn an_error_about_what_was_rendered_holds_no_secret() {
    let mask = SecretMask::from_values([json!({"password": "hunter22"})].iter());
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hunter22}\n";
    let rendered = format!("{object}---\n{object}data: {{a: b}}\n");
    let parsed = parse::parse(rendered.as_bytes(), "a.yaml", &ManifestOptions::default());
    let error = OperationError::from(parsed.unwrap_err()).with_place("web".to_owned());
    assert!(error.chain().contains("hunter22"), "{error}");
    let error = error.masked(&mask);
    assert!(!error.chain().contains("hunter22"), "{error}");
    assert!(error.to_string().starts_with("web: "), "{error}");
}
