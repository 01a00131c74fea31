//! Renders templates of Kubermatic's (KKP) add-ons as KKP does, with its functions, its data, and its way of joining files.

mod data;
mod field;
mod functions;
mod shapes;

#[cfg(test)]
mod tests;

use addons_gotemplate::function::{Arguments, Function, FunctionContext};
pub use addons_gotemplate::limits::StopFlag;
use addons_gotemplate::limits::TemplateLimits;
use addons_gotemplate::sprig::SPRIG;
use addons_gotemplate::value::Type;
use addons_gotemplate::{RenderedTemplates, TemplateError, TemplateFile};
use serde_json::Value;

pub use field::FieldError;

use common::registry::Registry;

/// Text after every file.
pub const SEPARATOR: &str = "\n\n---\n\n";

/// How templates are rendered.
#[derive(Clone, Debug, Default)]
pub struct KkpOptions {
    /// Whether printing a missing value is an error.
    pub strict: bool,
    /// The registry that `Image` puts in the place of every other registry.
    pub registry: Option<Registry>,
    /// The limits of the templates.
    pub limits: TemplateLimits,
    /// Stops the rendering from another thread.
    pub stop: StopFlag,
}

/// Why rendering failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A template is not valid, or fails.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The data cannot be read as a TemplateData document.
    #[error(transparent)]
    Data(#[from] FieldError),
}

const HELM: &str = "it is a function of Helm; a chart is rendered with `method: helm`";

/// Functions that users expect from Helm and from older versions of KKP, with advice for the error message.
const UNDEFINED: [(&str, &str); 13] = [
    ("include", HELM),
    ("tpl", HELM),
    ("required", HELM),
    ("lookup", HELM),
    ("toYaml", HELM),
    ("toYamlPretty", HELM),
    ("fromYaml", HELM),
    ("fromYamlArray", HELM),
    ("fromJsonArray", HELM),
    ("toToml", HELM),
    ("fromToml", HELM),
    ("mustToYaml", HELM),
    (
        "Registry",
        "KKP has dropped it; write the whole reference with Image, as in {{ Image \"docker.io/org/name:tag\" }}",
    ),
];

/// Renders files with the functions of sprig and of KKP. `data` is a TemplateData document, of which any part may be missing. Each file is
/// followed by [`SEPARATOR`].
///
/// # Errors
/// [`RenderError`]
pub fn render(
    templates: &[TemplateFile<'_>],
    data: &Value,
    options: &KkpOptions,
) -> Result<RenderedTemplates, RenderError> {
    let registry = options.registry.as_ref();
    let image =
        |_: &mut FunctionContext, args: Arguments<'_>| functions::image(args.text(0)?, registry);
    let image = [Function::new("Image", &[Type::Text], &image)];
    let own: [&[Function<'_>]; 2] = [&image, functions::FUNCTIONS];
    let stop = Some(&options.stop);
    let options = addons_gotemplate::TemplateOptions {
        stop,
        functions: &[&own, SPRIG].concat(),
        undefined: &UNDEFINED,
        separator: SEPARATOR,
        strict: options.strict,
        limits: options.limits,
    };
    Ok(addons_gotemplate::render(
        templates,
        data::read_template_data(data)?,
        &options,
    )?)
}

/// Checks whether a file is a valid template: its syntax, and whether its functions exist.
///
/// # Errors
/// [`TemplateError::Parse`].
pub fn check(template: TemplateFile<'_>) -> Result<(), TemplateError> {
    let image =
        |_: &mut FunctionContext, args: Arguments<'_>| functions::image(args.text(0)?, None);
    let image = [Function::new("Image", &[Type::Text], &image)];
    let own: [&[Function<'_>]; 2] = [&image, functions::FUNCTIONS];
    let options = addons_gotemplate::TemplateOptions {
        functions: &[&own, SPRIG].concat(),
        undefined: &UNDEFINED,
        ..addons_gotemplate::TemplateOptions::default()
    };
    addons_gotemplate::check(template, &options)
}
