//! KKP's functions in addition to those of sprig. Two of them have the name of a function of sprig, but another order of arguments.

use addons_gotemplate::function::{Function, FunctionError, FunctionResult};
use addons_gotemplate::sprig;
use addons_gotemplate::value::Type::{self, Any, Text};
use addons_gotemplate::value::Value;
use addons_versions::constraint::{self, Constraint};

use common::image::Image;
use common::registry::Registry;

pub(super) const FUNCTIONS: &[Function<'static>] = &[
    // Go's strings.Join. In sprig, the separator comes first, and any list is allowed.
    Function::new("join", &[Type::List(&Text), Text], &|ctx, args| {
        sprig::join(ctx, args.value(0), args.text(1)?)
    }),
    // The version comes first; an invalid version or constraint does not match.
    Function::new("semverCompare", &[Any, Any], &|ctx, args| {
        if let Value::Text(constraint) = args.value(1) {
            ctx.reserve(constraint.len().saturating_mul(sprig::COMPARISON_SIZE))?;
        }
        Ok(Value::Bool(version_matches(args.value(0), args.value(1))))
    }),
];

/// Returns the full reference of an image. If `registry` is set, it replaces the registry of the image.
pub(super) fn image(reference: &str, registry: Option<&Registry>) -> FunctionResult {
    let image = match registry {
        None => Image::parse(reference).map(|image| image.to_string()),
        Some(registry) => registry.rewrite(reference),
    };
    let image = image.map_err(|error| FunctionError::new(error.to_string()))?;
    Ok(Value::text(image))
}

fn version_matches(version: &Value, constraint: &Value) -> bool {
    let version = match version {
        Value::Version(version) => Some(version.version().clone()),
        Value::Text(text) => constraint::parse_version(text).ok(),
        _ => None,
    };
    let constraint = match constraint {
        Value::Text(text) => Constraint::parse(text).ok(),
        _ => None,
    };
    let both = version.zip(constraint);
    both.is_some_and(|(version, constraint)| constraint.matches(&version))
}
