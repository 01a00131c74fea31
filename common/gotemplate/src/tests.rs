use serde_json::{Value as Json, json};

use super::sprig::SPRIG;
use super::value::Value;
use super::{RenderedTemplates, TemplateError, TemplateFile, TemplateOptions};

fn files<'a>(files: &[(&'a str, &'a str)]) -> Vec<TemplateFile<'a>> {
    let files = files.iter();
    files
        .map(|(name, text)| TemplateFile { name, text })
        .collect()
}

fn render(
    files: &[TemplateFile<'_>],
    data: &Json,
    options: &TemplateOptions<'_>,
) -> Result<RenderedTemplates, TemplateError> {
    super::render(files, Value::try_from(data).unwrap(), options)
}

fn rendered(text: &str, data: &Json) -> Result<RenderedTemplates, TemplateError> {
    let options = TemplateOptions {
        undefined: &[("include", "it is a function of Helm")],
        ..TemplateOptions::default()
    };
    render(&files(&[("t.yaml", text)]), data, &options)
}

/// Expects exactly this error.
fn refuses(text: &str, expect: &str) {
    let error = rendered(text, &json!({"a": {"b": "text"}, "n": null, "l": [1]})).unwrap_err();
    assert_eq!(error.to_string(), expect, "{text}");
}

/// Go's text/template gives the same for the files in one template.
#[test]
fn files_are_one_template() {
    let files = files(&[
        (
            "a.yaml",
            "{{ $x := 1 }}a: {{ $x }}\n{{ define \"d\" }}<{{ . }}>{{ end -}}\n  \n",
        ),
        (
            "b.yaml",
            "  \n{{- $x = 2 }}\nb: {{ $x }}{{ template \"d\" $x }}\n{{ define \"d\" }} {{ end }}",
        ),
        ("c.yaml", "c"),
        ("d.yaml", "{{- /* nothing */ -}}\n"),
        ("e.yaml", "\n\n{{- if false }}x{{ end }}\ne\n"),
        ("f.yaml", ""),
        ("g.yaml", "{{- \"g\" -}}"),
    ]);
    let options = TemplateOptions {
        separator: "\n\n---\n\n",
        ..TemplateOptions::default()
    };
    let rendered = render(&files, &json!({}), &options).unwrap();
    assert_eq!(
        rendered.text,
        "a: 1\n---\nb: 2<2>\n\n\n---\n\nc\n\n------\ne\n\n\n---\n\n\n\n---g---\n\n"
    );
    let start = |text: &str| rendered.text.find(text).unwrap();
    let starts = [0, 1, 2, 4, 6].map(|file| rendered.starts[file]);
    assert_eq!(starts[..4], ["a: 1", "\nb: 2", "c\n", "\ne\n"].map(start));
    assert_eq!(starts[4], start("g---"));
}

#[test]
fn an_error_stands_in_its_own_file() {
    let define = ("a.yaml", "{{ define \"d\" }}\né{{ .a.b.c }}{{ end }}");
    let options = TemplateOptions::default();
    let call = ("b.yaml", "\n\n {{ template \"d\" . }}");
    let error = render(&files(&[define, call]), &json!({"a": {"b": 1}}), &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.yaml:2:7: at <.a.b.c>: can't evaluate field c in type int64"
    );
    let twice = ("b.yaml", "\n {{ define \"d\" }}x{{ end }}");
    let error = render(&files(&[define, twice]), &json!({}), &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "b.yaml:2:5: template \"d\" is defined twice"
    );
    let undeclared = [("a.yaml", "{{ $x := 1 }}"), ("b.yaml", "{{ $x }}")];
    let error = render(&files(&undeclared), &json!({}), &options).unwrap_err();
    assert_eq!(error.to_string(), "b.yaml:1:4: undefined variable \"$x\"");
}

#[test]
fn a_missing_value_is_reported_once_or_refused() {
    let text = "{{ .a }}\n{{ range .l }}{{ .b }}{{ end }}{{ if .nope }}{{ end }}{{ print .c }}";
    let data = json!({"l": [{}, {}, {"b": null}]});
    let result = rendered(text, &data).unwrap();
    assert!(
        result
            .text
            .starts_with("<no value>\n<no value><no value><no value><nil>")
    );
    let warnings: Vec<String> = result.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "t.yaml:1:4: .a has no value and prints as <no value>",
            "t.yaml:2:18: .b has no value and prints as <no value>",
        ]
    );
    let strict = TemplateOptions {
        functions: SPRIG,
        strict: true,
        ..TemplateOptions::default()
    };
    let error = render(&files(&[("t.yaml", text)]), &data, &strict).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("t.yaml:1:4: at <.a>: it has no value; "),
        "{error}"
    );
    let asks = "{{ if .nope }}{{ end }}{{ default \"d\" .nope }}{{ with .a.b }}{{ end }}";
    let asked = render(&files(&[("t.yaml", asks)]), &data, &strict).unwrap();
    assert_eq!((asked.text.as_str(), asked.warnings), ("d", Vec::new()));
}

#[test]
fn errors_say_where_and_what() {
    refuses(
        "a\n  {{ if .x }}\nb",
        "t.yaml:2:6: unexpected EOF: {{if}} has no {{end}}",
    );
    refuses(
        "a\n{{ .x \n .b",
        "t.yaml:2:1: unclosed action: no }} follows",
    );
    refuses("é{{/* x", "t.yaml:1:2: unclosed comment: no */ follows");
    refuses(
        "{{ end }}",
        "t.yaml:1:4: unexpected {{end}}: no block is open here",
    );
    refuses(
        "{{ if 1 }}{{ else }}{{ else }}{{ end }}",
        "t.yaml:1:24: expected {{end}} of {{if}}; found {{else}}",
    );
    refuses(
        "{{ .a.b\n | nosuch }}",
        "t.yaml:2:4: function \"nosuch\" not defined",
    );
    refuses(
        "{{ include \"x\" . }}",
        "t.yaml:1:4: function \"include\" not defined: it is a function of Helm",
    );
    refuses(
        "{{ template \"x\" }}",
        "t.yaml:1:13: at <{{template \"x\"}}>: template \"x\" not defined",
    );
    refuses(
        "{{ printf \"%d\" (.n.x) }}",
        "t.yaml:1:19: at <.n.x>: nil pointer evaluating .x: the value before it is null",
    );
    refuses(
        "{{ eq .a.b 1 | print }}",
        "t.yaml:1:4: at <eq .a.b 1>: error calling eq: incompatible types for comparison: string and int",
    );
    refuses(
        "{{ $x = (index .l 0) }}",
        "t.yaml:1:4: at <$x = (index .l 0)>: undefined variable: $x; := declares one",
    );
    refuses(
        "{{ len 3 }}",
        "t.yaml:1:4: at <len 3>: error calling len: len of type int",
    );
    refuses(
        "{{ \"\\xff\" }}",
        "t.yaml:1:4: the string \"\\xff\" is not UTF-8",
    );
    refuses(
        "{{ with 1 }}{{ else if 2 }}{{ end }}",
        "t.yaml:1:21: unexpected <if> in input",
    );
}

#[test]
fn a_missing_end_never_drops_text() {
    for text in [
        "a{{ end }}b",
        "{{ if 1 }}a",
        "{{ range .l }}{{ if 1 }}{{ end }}",
        "{{ define \"a\" }}",
        "{{ block \"a\" . }}x",
    ] {
        assert!(
            matches!(rendered(text, &json!({})), Err(TemplateError::Parse { .. })),
            "{text}"
        );
    }
}
