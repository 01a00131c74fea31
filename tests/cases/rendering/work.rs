//! Whatever a function reads is charged, as often as it reads it; and a rendering can be stopped.

use addons_gotemplate::TemplateFile;
use addons_gotemplate::limits::TemplateLimits;
use addons_render::kkp;
use serde_json::json;

use super::limits::{FEW, on_a_small_stack, refuses_within};

/// trust 5: what costs more than its length: the searches of an expression, letters in a set, entries of a dict, variables.
#[test]
fn t05_all_work_is_charged() {
    let limits = TemplateLimits {
        steps: 10_000_000,
        iterations: 1_000_000,
        work: 1 << 23,
        bytes: 1 << 23,
        ..FEW
    };
    for template in [
        r#"{{ regexFindAll "[^x]*x|a" (repeat 262144 "a") -1 }}"#,
        r#"{{ regexReplaceAll "(a|b)*c|a" (repeat 262144 "a") "b" }}"#,
        r#"{{ regexSplit "[^x]*x|a" (repeat 262144 "a") -1 }}"#,
        r#"{{ range 5000 }}{{ regexMatch "(a|b){90}c" (repeat 9000 "a") }}{{ end }}"#,
        r#"{{ range 5000 }}{{ regexMatch "(a{1000}){100}" "a" }}{{ end }}"#,
        r#"{{ trimAll (print (repeat 4194304 "b") "a") (repeat 4194304 "a") }}"#,
        r#"{{ $d := dict }}{{ range 4000 }}{{ $_ := set $d (toString .) . }}{{ end }}{{ range 999 }}{{ range 999 }}{{ range $d }}{{ break }}{{ end }}{{ end }}{{ end }}"#,
        r#"{{ $l := until 9999 }}{{ range 4000 }}{{ $_ := toDecimal $l }}{{ end }}"#,
        r#"{{ $l := list (until 99999) (sqrt 2) }}{{ range 4000 }}{{ $_ := toJson $l }}{{ end }}"#,
        r#"{{ semverCompare "1.0.0" (repeat 4000000 "1||") }}"#,
    ] {
        let template = template.replace("(sqrt 2)", "2i");
        let begun = std::time::Instant::now();
        let error = on_a_small_stack(template.clone(), limits).expect_err(&template);
        let words = error.to_string();
        let is_charged = [
            "read too much",
            "it would make more than",
            "too large an expression",
            "iterations",
        ];
        assert!(
            is_charged.iter().any(|part| words.contains(part)),
            "{template}: {words}"
        );
        assert!(
            begun.elapsed().as_secs() < 30,
            "{template}: {:?}",
            begun.elapsed()
        );
    }
    // Linear, though many brackets are never closed.
    let text = r#"{{ printf (repeat 1000000 "%[") | len }}"#;
    assert!(on_a_small_stack(text.to_owned(), FEW).is_ok());
    // What most expressions do with most texts costs little.
    let text =
        r#"{{ range 5 }}{{ regexReplaceAll "[,;]" (repeat 5000 "a,b;") "." | len }}{{ end }}"#;
    assert!(on_a_small_stack(text.to_owned(), FEW).is_ok());
    let text = r#"{{ regexReplaceAll "[a-z]+" (repeat 1000 "a b c d ") "." | len }}"#;
    assert!(on_a_small_stack(text.to_owned(), FEW).is_ok());
}

#[test]
fn variables_and_places_are_charged() {
    let declared: String = (0..20_000)
        .map(|n| format!("{{{{ $a{n} := 1 }}}}"))
        .collect();
    let used = "{{ range 15000 }}{{ $a0 }}{{ end }}";
    refuses_within(
        TemplateLimits {
            steps: 10_000_000,
            iterations: 100_000,
            ..FEW
        },
        format!("{declared}{used}"),
        1,
        "read too much",
    );
    let missing = "{{ .nope }}\n".repeat(30_000);
    let limits = TemplateLimits {
        steps: 10_000_000,
        ..FEW
    };
    let error = on_a_small_stack(missing, limits).unwrap_err();
    assert!(error.to_string().contains("read too much"), "{error}");
}

#[test]
fn a_rendering_can_be_stopped() {
    let options = kkp::KkpOptions::default();
    options.stop.request_stop();
    let template = TemplateFile {
        name: "t.yaml",
        text: "{{ range 5 }}{{ . }}{{ end }}",
    };
    let error = kkp::render(&[template], &json!({}), &options).unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
}
