//! Functions for semantic versions, as Masterminds reads them.

use std::rc::Rc;

use crate::function::{Function, FunctionError};
use crate::value::Type::Text;
use crate::value::{SpelledVersion, Value};
use addons_versions::constraint::Constraint;

/// Bytes that parsing a constraint may make per byte of its text. Callers reserve them.
pub const COMPARISON_SIZE: usize = 40;

pub(super) const VERSIONS: &[Function<'static>] = &[
    Function::new("semver", &[Text], &|_, args| {
        Ok(Value::Version(Rc::new(parse_version(args.text(0)?)?)))
    }),
    Function::new("semverCompare", &[Text, Text], &|ctx, args| {
        // A parsed comparison is larger than its text.
        ctx.reserve(args.text(0)?.len().saturating_mul(COMPARISON_SIZE))?;
        let constraint = Constraint::parse(args.text(0)?);
        let constraint = constraint.map_err(|error| FunctionError::new(error.to_string()))?;
        let version = parse_version(args.text(1)?)?;
        Ok(Value::Bool(constraint.matches(version.version())))
    }),
];

fn parse_version(text: &str) -> Result<SpelledVersion, FunctionError> {
    SpelledVersion::parse(text).map_err(|error| FunctionError::new(error.to_string()))
}
