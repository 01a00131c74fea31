//! Untrusted templates end, with an error that has a place: no overflow of the stack, no endless loop, no flood.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose input is broken has failed"
)]

use addons_gotemplate::limits::TemplateLimits;
use addons_gotemplate::{RenderedTemplates, TemplateError, TemplateFile};
use addons_render::kkp::{self, RenderError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Less than the default, so that tests are fast without optimisation.
pub(crate) const FEW: TemplateLimits = TemplateLimits {
    output: 1 << 20,
    steps: 20_000,
    iterations: 5_000,
    bytes: 1 << 26,
    work: 1 << 28,
};

/// Renders one file on a thread with a stack of 2 MiB, as those of tokio have.
pub(crate) fn on_a_small_stack(
    text: String,
    limits: TemplateLimits,
) -> Result<RenderedTemplates, RenderError> {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let run = move || {
        let template = TemplateFile {
            name: "t.yaml",
            text: &text,
        };
        let options = kkp::KkpOptions {
            limits,
            ..kkp::KkpOptions::default()
        };
        kkp::render(&[template], &json!({"l": [1, 2]}), &options)
    };
    thread.spawn(run).unwrap().join().unwrap()
}

/// Expects an error at `line` that says `words`.
fn refuses(text: impl Into<String>, line: usize, words: &str) {
    refuses_within(TemplateLimits::default(), text, line, words);
}

pub(crate) fn refuses_within(
    limits: TemplateLimits,
    text: impl Into<String>,
    line: usize,
    words: &str,
) {
    let text = text.into();
    let shown: String = text.chars().take(80).collect();
    let error = on_a_small_stack(text, limits).expect_err(&shown);
    let RenderError::Template(error) = error else {
        panic!("{shown}: {error}");
    };
    let place = error.place();
    assert_eq!(
        (place.file.as_str(), place.line),
        ("t.yaml", line),
        "{shown}: {error}"
    );
    assert!(error.to_string().contains(words), "{shown}: {error}");
}

#[test]
fn nesting_is_bounded_where_it_is_written() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("\n{}x{}", open.repeat(times), close.repeat(times))
    };
    refuses(
        format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000)),
        1,
        "nested deeper",
    );
    refuses(deep("{{ if 1 }}", "{{ end }}", 20_000), 2, "nested deeper");
    refuses(
        deep("{{ range .l }}", "{{ end }}", 20_000),
        2,
        "nested deeper",
    );
    refuses(
        deep("{{ block \"a\" 1 }}", "{{ end }}", 20_000),
        2,
        "nested deeper",
    );
    refuses("{{ if 1 }}".repeat(20_000), 1, "nested deeper");
    // As deep as allowed, each level with parentheses of its own where the other is at its bottom.
    let rendered = on_a_small_stack(
        deep("{{ with 1 }}", "{{ end }}", 99),
        TemplateLimits::default(),
    )
    .unwrap();
    assert!(rendered.text.contains('x'));
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(99), ")".repeat(99));
    assert!(
        on_a_small_stack(parentheses, TemplateLimits::default())
            .unwrap()
            .text
            .starts_with('1')
    );
}

#[test]
fn a_long_chain_of_else_if_is_not_nested() {
    let branches: String = (0..5_000)
        .map(|n| format!("{{{{ else if eq 4999 {n} }}}}{n}"))
        .collect();
    let rendered = on_a_small_stack(
        format!("{{{{ if 0 }}}}{branches}{{{{ end }}}}"),
        TemplateLimits::default(),
    )
    .unwrap();
    assert!(rendered.text.starts_with("4999"));
}

#[test]
fn recursion_is_bounded() {
    refuses(
        r#"{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}"#,
        1,
        "call itself",
    );
    let nested = format!(
        "{{{{ define \"a\" }}}}{}{{{{ template \"a\" ({}.{}) }}}}{}{{{{ end }}}}{{{{ template \"a\" . }}}}",
        "{{ if 1 }}".repeat(60),
        "(".repeat(30),
        ")".repeat(30),
        "{{ end }}".repeat(60)
    );
    refuses(nested, 1, "call itself");
    let a = r#"{{ define "a" }}{{ template "b" . }}{{ end }}"#;
    let b = r#"{{ define "b" }}{{ range .l }}{{ template "a" $ }}{{ end }}{{ end }}"#;
    refuses(
        format!(r#"{a}{b}{{{{ template "a" . }}}}"#),
        1,
        "call itself",
    );
}

#[test]
fn loops_and_texts_are_bounded() {
    let refuses = |text: &str, line, words| refuses_within(FEW, text, line, words);
    refuses("{{ range 9223372036854775807 }}{{ end }}", 1, "iterations");
    refuses(
        "{{ range 50 }}{{ range 50 }}{{ range 50 }}x{{ end }}{{ end }}{{ end }}",
        1,
        "iterations",
    );
    refuses(
        "{{ range 4000 }}\n{{ print . 1 | len | not | print | len | not }}{{ end }}",
        2,
        "steps",
    );
    let kilobyte = "x".repeat(1 << 10);
    refuses(
        &format!("{{{{ range 2000 }}}}\n{kilobyte}{{{{ end }}}}"),
        1,
        "MiB of text",
    );
    refuses(
        "{{ $s := \"0123456789\" }}\n{{ range 60 }}{{ $s = print $s $s }}{{ end }}",
        2,
        "MiB",
    );
    refuses(
        "\n{{ range 99 }}{{ $s := printf \"%1000000d\" 1 }}{{ end }}",
        2,
        "MiB",
    );
}

#[test]
fn the_default_limits_hold_too() {
    refuses("{{ range 9223372036854775807 }}{{ end }}", 1, "iterations");
    refuses(
        "{{ $s := \"0123456789\" }}\n{{ range 60 }}{{ $s = print $s $s }}{{ end }}",
        2,
        "MiB",
    );
}

/// Pieces of templates in unusual combinations.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{"),
        Just("}}"),
        Just("{{- "),
        Just(" -}}"),
        Just("{{/*"),
        Just("*/}}"),
        Just("if "),
        Just("else "),
        Just("{{ end }}"),
        Just("{{ else }}"),
        Just("range "),
        Just("with "),
        Just("define \"a\""),
        Just("template \"a\" "),
        Just("block \"b\" "),
        Just("break"),
        Just("continue"),
        Just("$x"),
        Just("$k, $v"),
        Just(" := "),
        Just(" = "),
        Just("|"),
        Just("("),
        Just(")"),
        Just("."),
        Just(".a"),
        Just(".l"),
        Just(".m.b"),
        Just("nil"),
        Just("true"),
        Just("1"),
        Just("-1"),
        Just("1.5"),
        Just("0x"),
        Just("1e400"),
        Just("2i"),
        Just("'a'"),
        Just("'"),
        Just("\"%v %d %q %5.2f\""),
        Just("\"é\\x\""),
        Just("`raw`"),
        Just("printf "),
        Just("print "),
        Just("index "),
        Just("slice "),
        Just("len "),
        Just("eq "),
        Just("lt "),
        Just("and "),
        Just("or "),
        Just("not "),
        Just("html "),
        Just("js "),
        Just("call "),
        Just(" "),
        Just("\n"),
        Just("é"),
        Just("text"),
        Just("\\"),
        Just("\"*[3]%\""),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Actions that parse, with values of every kind as arguments.
fn calls() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just(".a"),
        Just(".l"),
        Just(".m"),
        Just(".nope"),
        Just(".null"),
        Just(".f"),
        Just(".t"),
        Just("."),
        Just("$"),
        Just("nil"),
        Just("0"),
        Just("-1"),
        Just("9223372036854775807"),
        Just("1.5"),
        Just("2i"),
        Just("\"%[2]*.[1]*d%é%\""),
        Just("\"é\""),
        Just("\"\""),
        Just("(index .l 0)"),
        Just("(print .m)"),
        Just("(len .t)"),
        Just("(slice .t 1)"),
        Just("'é'"),
    ];
    let function = prop_oneof![
        Just("and"),
        Just("or"),
        Just("not"),
        Just("eq"),
        Just("ne"),
        Just("lt"),
        Just("le"),
        Just("gt"),
        Just("ge"),
        Just("call"),
        Just("index"),
        Just("slice"),
        Just("len"),
        Just("html"),
        Just("js"),
        Just("urlquery"),
        Just("print"),
        Just("println"),
        Just("printf"),
        Just("printf \"%+v|%#v|%T|% x|%08.3f|%-5q|%U|%c|%t\""),
        Just("range"),
        Just("with"),
        Just("if"),
        Just("$x :="),
    ];
    let call = (function, proptest::collection::vec(value, 0..5)).prop_map(|(function, values)| {
        let body = if matches!(function, "range" | "with" | "if") {
            "{{ . }}{{ end }}"
        } else {
            ""
        };
        format!("{{{{ {function} {} }}}}{body}", values.join(" "))
    });
    proptest::collection::vec(call, 1..4).prop_map(|calls| calls.concat())
}

fn data() -> Value {
    json!({"a": 1, "f": 1.5, "t": "tëxt", "l": [1, "a", null, {"b": 2}], "m": {"b": {"c": []}}, "null": null,
        "Cluster": {"Version": "1.35.8", "Features": ["x"], "Network": {"StrictArp": false}}})
}

/// Renders with Go's functions and with KKP's; an error must have a place in the text.
fn ends_well(text: &str) {
    let templates = [TemplateFile { name: "t", text }; 2];
    let options = addons_gotemplate::TemplateOptions {
        limits: FEW,
        ..addons_gotemplate::TemplateOptions::default()
    };
    let data = data();
    let plain = (&data).try_into().unwrap();
    has_place(text, addons_gotemplate::render(&templates, plain, &options));
    let options = kkp::KkpOptions {
        limits: FEW,
        ..kkp::KkpOptions::default()
    };
    match kkp::render(&templates, &data, &options) {
        Ok(rendered) => has_place(text, Ok(rendered)),
        Err(RenderError::Template(error)) => has_place(text, Err(error)),
        Err(error) => panic!("{error}"),
    }
}

fn has_place(text: &str, rendered: Result<RenderedTemplates, TemplateError>) {
    match rendered {
        Ok(rendered) => assert_eq!(rendered.starts.len(), 2),
        Err(error) => {
            let place = error.place();
            let line = text.split('\n').nth(place.line - 1);
            let line = line.expect("a line of the template");
            let end = line.chars().count() + 1;
            assert!(place.column <= end, "{place} in {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_makes_it_panic(text in pieces()) {
        ends_well(&text);
        ends_well(&format!("{{{{ {text} }}}}"));
    }

    #[test]
    fn no_call_makes_it_panic(text in calls()) {
        ends_well(&text);
    }
}
