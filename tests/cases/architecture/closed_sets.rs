//! What an enum of the workspace names is never kept as text: no field of a struct or a variant has the name of such an enum and a type
//! of text.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use syn::visit::{self, Visit};
use syn::{Field, GenericArgument, ItemEnum, ItemMod, PathArguments, Type};

use super::graph::is_for_tests;
use super::modules::sources;

/// The prefixes of enums that keep what other releases recorded.
const PREFIXES: [&str; 2] = ["", "Recorded"];

/// Enums that are not a closed set of words: any text can be a value of a template.
const OPEN: [&str; 1] = ["Value"];

/// (file, field, why it is text)
const EXCEPTIONS: [(&str, &str, &str); 20] = [
    (
        "common/admission/src/marks.rs",
        "deletion_policy",
        "a record with the policy of a later release has to be readable",
    ),
    (
        "common/admission/src/review.rs",
        "category",
        "the kind of an error of serde",
    ),
    (
        "common/admission/src/trust.rs",
        "proof",
        "the name of a request in a table of tests",
    ),
    (
        "common/engine/src/error.rs",
        "verb",
        "a verb of the API server",
    ),
    (
        "common/engine/src/request.rs",
        "verb",
        "a verb of the API server",
    ),
    (
        "common/gotemplate/src/error.rs",
        "action",
        "the text between `{{` and `}}`",
    ),
    ("common/helm/src/lib.rs", "verb", "a command of helm"),
    ("common/helm/src/process.rs", "verb", "a command of helm"),
    (
        "common/loops/src/metrics.rs",
        "outcome",
        "a label of Prometheus",
    ),
    (
        "common/operation/src/error.rs",
        "origin",
        "the name of a catalogue or index",
    ),
    (
        "common/operation/src/error/plan.rs",
        "origin",
        "the name of a catalogue or index",
    ),
    (
        "common/operation/src/error/resolve.rs",
        "origin",
        "the name of a catalogue or index",
    ),
    (
        "common/render/src/chart/references.rs",
        "keyword",
        "a keyword of JSON schema",
    ),
    ("common/src/right.rs", "verb", "a verb of RBAC"),
    (
        "common/sources/src/credentials.rs",
        "source_kind",
        "a kind of source, in words",
    ),
    (
        "common/sources/src/registry.rs",
        "origin",
        "scheme and host of a URL",
    ),
    (
        "kubectl-addons/src/commands/history.rs",
        "outcome",
        "also `in progress`, which no record says",
    ),
    (
        "kubectl-addons/src/commands/list.rs",
        "origin",
        "a catalogue, an index or a directory, in words",
    ),
    (
        "kubectl-addons/src/output/requests.rs",
        "method",
        "a method of HTTP",
    ),
    (
        "kubectl-addons/src/progress/objects.rs",
        "deleted",
        "a word for a column",
    ),
];

#[derive(Default)]
struct Reader {
    enums: BTreeSet<String>,
    text_fields: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.enums.insert(item.ident.to_string());
        visit::visit_item_enum(self, item);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if let Some(name) = &field.ident
            && is_text(&field.ty)
        {
            self.text_fields.insert(name.to_string());
        }
    }
}

/// Whether a type is text, possibly borrowed or optional.
fn is_text(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_text(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let inner = match &last.arguments {
                PathArguments::AngleBracketed(list) => list.args.last(),
                PathArguments::None | PathArguments::Parenthesized(_) => None,
            };
            match (last.ident.to_string().as_str(), inner) {
                ("String" | "str", _) => true,
                ("Option" | "Cow" | "Box" | "Arc", Some(GenericArgument::Type(inner))) => {
                    is_text(inner)
                }
                _ => false,
            }
        }),
        _ => false,
    }
}

/// `RefusalReason` → `refusal_reason`
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[test]
fn a_field_with_the_name_of_an_enum_is_not_text() -> Result<()> {
    let mut enums = BTreeSet::new();
    let mut fields = BTreeSet::new();
    for (name, syntax) in sources(&["common", "kubectl-addons", "webhook", "certs"])? {
        let mut reader = Reader::default();
        reader.visit_file(&syntax);
        enums.append(&mut reader.enums);
        let found = reader.text_fields.into_iter();
        fields.extend(found.map(|field| (name.clone(), field)));
    }
    let sets: BTreeSet<String> = enums
        .iter()
        .filter(|name| !OPEN.contains(&name.as_str()))
        .flat_map(|name| PREFIXES.map(|prefix| name.strip_prefix(prefix)))
        .flatten()
        .map(snake_case)
        .collect();
    for known in ["verb", "outcome", "method"] {
        ensure!(sets.contains(known), "no enum has the name of a {known}");
    }
    let is_known = |file: &str, field: &str| {
        EXCEPTIONS
            .iter()
            .any(|(of, name, _)| *of == file && *name == field)
    };
    let wrong: Vec<String> = fields
        .iter()
        .filter(|(file, field)| sets.contains(field) && !is_known(file, field))
        .map(|(file, field)| format!("{file}: {field} is text, although an enum has this name"))
        .collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let gone: Vec<&str> = EXCEPTIONS
        .iter()
        .filter(|(file, field, _)| !fields.contains(&((*file).to_owned(), (*field).to_owned())))
        .map(|(file, ..)| *file)
        .collect();
    ensure!(gone.is_empty(), "exceptions that are not needed: {gone:?}");
    Ok(())
}
