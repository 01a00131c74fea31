//! Go templates: the output keeps its limit, and an error names a place of the template.

use std::sync::LazyLock;

use addons_gotemplate::limits::TemplateLimits;
use addons_gotemplate::sprig::SPRIG;
use addons_gotemplate::{RenderedTemplates, TemplateError, TemplateFile, TemplateOptions};
use addons_render::kkp::{self, RenderError};
use addons_tests::shared;
use serde_json::{Value, json};

const TOKENS: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{/*",
    "*/}}",
    "if ",
    "else ",
    "end",
    "range ",
    "$k, $v := ",
    "with ",
    "define \"t\"",
    "template \"t\" .",
    "block \"b\" .",
    "break",
    "continue",
    "(",
    ")",
    " | ",
    ".Cluster",
    "$",
    "`",
    "\"",
    "'",
    "\\u",
    "0x",
    "1e9",
    "printf \"%*d\" ",
    "index ",
    "slice ",
    "repeat 9999 ",
    "indent 9999 ",
    "until 9999",
    "set . \"a\" .",
    "dict ",
    "list ",
    "toJson ",
    "regexReplaceAll ",
    "semverCompare ",
    "Image ",
    "join ",
];

/// Smaller than the real ones, so that many inputs fit into the time.
const LIMITS: TemplateLimits = TemplateLimits {
    output: 1 << 20,
    steps: 50_000,
    iterations: 10_000,
    bytes: 4 << 20,
    work: 1 << 28,
};

static DATA: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "Cluster": {"Name": "shop", "Version": "1.36.3", "Features": ["a"], "Network": {"PodCIDRBlocks": ["10.0.0.0/8"]}},
        "Variables": {"list": [1, "two", null], "map": {"a": {"b": true}}, "text": "é\n", "n": 1.5},
    })
});

#[test]
fn template() {
    let mut seeds = Vec::new();
    for file in ["templates/cases.jsonl", "templates/functions.jsonl"] {
        let rows = std::fs::read_to_string(shared::golden(file)).unwrap();
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            seeds.extend(
                row["template"]
                    .as_str()
                    .map(|text| text.as_bytes().to_vec()),
            );
        }
    }
    super::mutant::run("fuzz::template", seeds, TOKENS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let templates = [TemplateFile {
            name: "a.yaml",
            text: &text,
        }];
        let options = TemplateOptions {
            functions: SPRIG,
            limits: LIMITS,
            ..TemplateOptions::default()
        };
        let data = (&*DATA).try_into().unwrap();
        check(&text, addons_gotemplate::render(&templates, data, &options));
        let options = kkp::KkpOptions {
            limits: LIMITS,
            ..kkp::KkpOptions::default()
        };
        match kkp::render(&templates, &DATA, &options) {
            Ok(rendered) => check(&text, Ok(rendered)),
            Err(RenderError::Template(error)) => check(&text, Err(error)),
            Err(RenderError::Data(_)) => {}
        }
    });
}

fn check(text: &str, rendered: Result<RenderedTemplates, TemplateError>) {
    match rendered {
        Ok(rendered) => assert!(rendered.text.len() <= LIMITS.output + 64),
        Err(error) => {
            let place = error.place();
            let lines = text.matches('\n').count() + 1;
            assert!((1..=lines).contains(&place.line), "{place}: {lines} lines");
            assert!(place.column >= 1, "{place}");
        }
    }
}
