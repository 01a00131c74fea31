//! Semantic versions, as Masterminds reads them.

use std::rc::Rc;

use super::super::function::Parameter::Text;
use super::super::function::{Function, FunctionError};
use super::super::value::{Value, Version};
use addons_versions::constraint::Constraint;

pub(super) const VERSIONS: &[Function] = &[
    Function::new("semver", &[Text], |_, args| {
        Ok(Value::Version(Rc::new(version(args.text(0)?)?)))
    }),
    // The constraint comes first; KKP's has it behind.
    Function::new("semverCompare", &[Text, Text], |_, args| {
        let constraint = Constraint::parse(args.text(0)?);
        let constraint = constraint.map_err(|error| FunctionError::new(error.to_string()))?;
        let version = version(args.text(1)?)?;
        Ok(Value::Bool(constraint.matches(version.version())))
    }),
];

fn version(text: &str) -> Result<Version, FunctionError> {
    Version::parse(text).map_err(|error| FunctionError::new(error.to_string()))
}
