//! What templates of KKP's addons have besides sprig: `Image`, and two functions whose arguments stand the other way round.

use super::super::function::Parameter::{Any, Text, Texts};
use super::super::function::{Function, FunctionError};
use super::super::value::Value;
use super::{Answer, pieces, strings};
use crate::render::image::Image;
use addons_versions::constraint::{self, Constraint};

pub(super) const ADDONS: &[Function] = &[
    // Spelled out in full, in the registry that stands for all others if there is one.
    Function::new("Image", &[Text], |ctx, args| {
        let image = match ctx.registry {
            None => Image::parse(args.text(0)?).map(|image| image.to_string()),
            Some(registry) => registry.rewrite(args.text(0)?),
        };
        let image = image.map_err(|error| FunctionError::new(error.to_string()))?;
        Ok(Value::text(image))
    }),
    // Go's strings.Join: sprig's takes the separator first and any list.
    Function::new("join", &[Texts, Text], |ctx, args| {
        let items = pieces::texts(ctx, args.value(0))?;
        strings::joined(ctx, &items, args.text(1)?)
    }),
    // The version comes first; whatever cannot be understood does not match.
    Function::new("semverCompare", &[Any, Any], |_, args| {
        matches(args.value(0), args.value(1))
    }),
];

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
