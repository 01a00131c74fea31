//! All rows of `tests/golden/templates`: `cases.jsonl`, and `functions.jsonl` for sprig's functions one by one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose input is broken has failed"
)]

use addons_gotemplate::sprig::SPRIG;
use addons_gotemplate::value::Value;
use addons_gotemplate::{TemplateError, TemplateFile, TemplateOptions, render};
use addons_render::kkp::{self, RenderError, SEPARATOR};
use addons_tests::{shared, tally::Tally};
use serde::Deserialize;

/// A row: `error`, `phase` and `message` are what Go says.
#[derive(Deserialize)]
struct Case {
    name: String,
    funcs: String,
    template: String,
    data: serde_json::Value,
    want: String,
    #[serde(default)]
    error: bool,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    message: String,
}

fn cases() -> Vec<Case> {
    let files = ["templates/cases.jsonl", "templates/functions.jsonl"];
    let texts = files.map(|file| std::fs::read_to_string(shared::golden(file)).unwrap());
    let rows = texts.iter().flat_map(|text| text.lines());
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// Renders a case; the text does not include the separator.
fn answer(case: &Case) -> Result<String, TemplateError> {
    let template = TemplateFile {
        name: "t",
        text: &case.template,
    };
    let functions = match case.funcs.as_str() {
        "core" => &[],
        "sprig" => SPRIG,
        "kkp" => return of_kkp(template, &case.data),
        other => panic!("unknown functions {other}"),
    };
    let options = TemplateOptions {
        functions,
        ..TemplateOptions::default()
    };
    let data = Value::try_from(&case.data).unwrap();
    render(&[template], data, &options).map(|rendered| rendered.text)
}

fn of_kkp(template: TemplateFile<'_>, data: &serde_json::Value) -> Result<String, TemplateError> {
    let rendered = match kkp::render(&[template], data, &kkp::KkpOptions::default()) {
        Ok(rendered) => rendered,
        Err(RenderError::Template(error)) => return Err(error),
        Err(RenderError::Data(error)) => panic!("{error}"),
    };
    let text = rendered.text.strip_suffix(SEPARATOR);
    // An action that trims what follows it trims the separator too.
    let text = text.or_else(|| rendered.text.strip_suffix(SEPARATOR.trim_start()));
    Ok(text.expect("a separator").to_owned())
}

/// What is wrong with the answer to a case.
fn judge(case: &Case) -> Option<String> {
    let Case {
        name,
        want,
        message,
        ..
    } = case;
    match (answer(case), case.error, case.phase.as_str()) {
        (Ok(text), false, _) if text == *want => None,
        (Ok(text), false, _) => Some(format!("{name}: {text:?}, expected {want:?}")),
        (Err(TemplateError::Parse { place, .. }), true, "parse")
        | (Err(TemplateError::Execute { place, .. }), true, "exec") => {
            let mut lines = case.template.lines();
            let line = lines.nth(place.line - 1).unwrap_or_default();
            let is_there =
                place.file == "t" && (1..=line.chars().count() + 1).contains(&place.column);
            (!is_there).then(|| format!("{name}: {place} is nowhere in {:?}", case.template))
        }
        (Ok(text), true, phase) => Some(format!(
            "{name}: {text:?}, expected a {phase} error: {message}"
        )),
        (Err(error), true, phase) => Some(format!(
            "{name}: {error}, expected a {phase} error: {message}"
        )),
        (Err(error), false, _) => Some(format!("{name}: {error}, expected {want:?}")),
    }
}

#[test]
fn every_template_gives_what_go_gives() {
    let mut tally = Tally::new("rendering::templates");
    let mut wrong = Vec::new();
    for case in cases() {
        wrong.extend(judge(&case));
        tally.ran();
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Go points to the node that it looked at last, we to the variable, the argument or the function that it is about.
const ELSEWHERE: [&str; 5] = [
    "core/variable-assign-undeclared",
    "kkp/join-generic-list-error",
    "functions/plural-4",
    "functions/dict-16",
    "functions/dict-17",
];

#[test]
fn an_error_of_the_execution_stands_where_go_puts_it() {
    let mut tally = Tally::new("rendering::templates: places of errors");
    let mut elsewhere = Vec::new();
    for case in cases() {
        if case.phase != "exec" {
            continue;
        }
        let Err(TemplateError::Execute { place, .. }) = answer(&case) else {
            panic!("{}: no error of the execution", case.name);
        };
        // template: t:1:5: executing …; Go counts columns in bytes from 0, and what is before them here is ASCII.
        let mut parts = case.message.split(':').skip(2);
        let line: usize = parts.next().unwrap().parse().unwrap();
        let column: usize = parts.next().unwrap().parse().unwrap();
        if (place.line, place.column) != (line, column + 1) {
            elsewhere.push(case.name);
        }
        tally.ran();
    }
    assert_eq!(elsewhere, ELSEWHERE);
}
