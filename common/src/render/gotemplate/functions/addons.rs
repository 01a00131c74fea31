//! What templates of KKP's addons have besides sprig: `Image`, and two functions whose arguments stand the other way round.

use super::super::function::Parameter::{Any, Text, Texts};
use super::super::function::{Function, FunctionError};
use super::super::value::Value;
use super::{Answer, strings};
use crate::render::image::Image;
use crate::render::registry::{Registry, RegistryError};
use crate::version::constraint::{self, Constraint};

pub(super) const ADDONS: &[Function] = &[
    // Spelled out in full, in the registry that stands for all others if there is one.
    Function::new("Image", &[Text], |ctx, args| {
        image(args.text(0)?, ctx.registry).map_err(FunctionError::new)
    }),
    // Go's strings.Join: sprig's takes the separator first and any list.
    Function::new("join", &[Texts, Text], |ctx, args| {
        let items = match args.value(0) {
            Value::List(list) => list
                .iter()
                .map(Value::to_text)
                .collect::<Result<Vec<_>, _>>()?,
            _ => Vec::new(),
        };
        strings::joined(ctx, &items, args.text(1)?)
    }),
    // The version comes first; whatever cannot be understood does not match.
    Function::new("semverCompare", &[Any, Any], |_, args| {
        matches(args.value(0), args.value(1))
    }),
];

fn image(image: &str, registry: Option<&str>) -> Result<Value, String> {
    let image = match registry {
        None => Image::parse(image).map(|image| image.to_string()),
        Some(registry) => {
            let registry: Registry = registry
                .parse()
                .map_err(|error: RegistryError| error.to_string())?;
            registry.rewrite(image)
        }
    };
    image.map(Value::text).map_err(|error| error.to_string())
}

fn matches(version: &Value, constraint: &Value) -> Answer {
    let version = match version {
        Value::Version(version) => Some(version.version().clone()),
        Value::Text(text) => constraint::version(text).ok(),
        _ => None,
    };
    let constraint = match constraint {
        Value::Text(text) => Constraint::parse(text).ok(),
        _ => None,
    };
    let matches = version
        .zip(constraint)
        .is_some_and(|(version, constraint)| constraint.matches(&version));
    Ok(Value::Bool(matches))
}
