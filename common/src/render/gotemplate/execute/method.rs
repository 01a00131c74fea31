//! Methods of values: those of a set of features and of a version.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::render::gotemplate::function::{Arguments, Context, Function, FunctionError, Parameter};
use crate::render::gotemplate::value::{Element, Shape, Value, Version};

/// What a method gives back.
type Outcome = Result<Value, FunctionError>;

/// The method `name` of `receiver`; the receiver is its first argument.
pub(super) fn method(receiver: &Value, name: &str) -> Option<&'static Function> {
    let methods = match receiver {
        Value::Dict(dict) if dict.element() == Element::Record(Shape::Empty) => OF_SETS,
        Value::Version(_) => OF_VERSIONS,
        _ => return None,
    };
    methods.iter().find(|method| method.name == name)
}

const OF_SETS: &[Function] = &[Function::new(
    "Has",
    &[Parameter::Any, Parameter::Text],
    |_, arguments| {
        let Value::Dict(set) = arguments.value(0) else {
            return Ok(Value::Bool(false));
        };
        Ok(Value::Bool(set.contains(arguments.text(1)?)))
    },
)];

/// One version.
const ALONE: &[Parameter] = &[Parameter::Version];
/// A version and another.
const TWO: &[Parameter] = &[Parameter::Version, Parameter::Version];

const OF_VERSIONS: &[Function] = &[
    Function::new("Major", ALONE, |_, of| number(of, |version| version.major)),
    Function::new("Minor", ALONE, |_, of| number(of, |version| version.minor)),
    Function::new("Patch", ALONE, |_, of| number(of, |version| version.patch)),
    Function::new("Prerelease", ALONE, |_, of| {
        text(of, |version| version.version().pre.to_string())
    }),
    Function::new("Metadata", ALONE, |_, of| {
        text(of, |version| version.version().build.to_string())
    }),
    Function::new("Original", ALONE, |_, of| {
        text(of, |version| version.original().to_owned())
    }),
    Function::new("String", ALONE, |_, of| text(of, Version::to_string)),
    Function::new("Compare", TWO, |_, of| {
        order(of).map(|order| Value::Int(order as i64))
    }),
    Function::new("Equal", TWO, |_, of| ordered(of, Ordering::is_eq)),
    Function::new("LessThan", TWO, |_, of| ordered(of, Ordering::is_lt)),
    Function::new("LessThanEqual", TWO, |_, of| ordered(of, Ordering::is_le)),
    Function::new("GreaterThan", TWO, |_, of| ordered(of, Ordering::is_gt)),
    Function::new("GreaterThanEqual", TWO, |_, of| {
        ordered(of, Ordering::is_ge)
    }),
    Function::new("IncPatch", ALONE, inc_patch),
    Function::new("IncMinor", ALONE, |_, of| {
        let version = of.version(0)?.version();
        next(version.major, version.minor.checked_add(1), 0)
    }),
    Function::new("IncMajor", ALONE, |_, of| {
        next_major(of.version(0)?.version().major.checked_add(1))
    }),
];

fn number(of: Arguments<'_>, part: fn(&semver::Version) -> u64) -> Outcome {
    Ok(Value::Uint64(part(of.version(0)?.version())))
}

fn text(of: Arguments<'_>, part: fn(&Version) -> String) -> Outcome {
    Ok(Value::text(part(of.version(0)?)))
}

fn order(of: Arguments<'_>) -> Result<Ordering, FunctionError> {
    Ok(of
        .version(0)?
        .version()
        .cmp_precedence(of.version(1)?.version()))
}

fn ordered(of: Arguments<'_>, is: fn(Ordering) -> bool) -> Outcome {
    order(of).map(|order| Value::Bool(is(order)))
}

/// A pre-release becomes its release.
fn inc_patch(_: &mut Context<'_>, of: Arguments<'_>) -> Outcome {
    let version = of.version(0)?.version();
    let patch = if version.pre.is_empty() {
        version.patch.checked_add(1)
    } else {
        Some(version.patch)
    };
    let patch = patch.ok_or_else(overflow)?;
    Ok(version_of(version.major, version.minor, patch))
}

fn next(major: u64, minor: Option<u64>, patch: u64) -> Outcome {
    Ok(version_of(major, minor.ok_or_else(overflow)?, patch))
}

fn next_major(major: Option<u64>) -> Outcome {
    Ok(version_of(major.ok_or_else(overflow)?, 0, 0))
}

fn version_of(major: u64, minor: u64, patch: u64) -> Value {
    let version = semver::Version::new(major, minor, patch);
    Value::Version(Rc::new(Version::from(version)))
}

fn overflow() -> FunctionError {
    FunctionError::new("the number is too large")
}
