//! Methods of values: those of versions, and those that the caller gives to its dicts.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::function::{Arguments, Function, FunctionError, FunctionResult};
use crate::value::{SpelledVersion, Type, Value};

/// Finds the method `name` of `receiver`. The receiver is the method's first argument.
pub(super) fn find_method(receiver: &Value, name: &str) -> Option<&'static Function<'static>> {
    let methods = match receiver {
        Value::Dict(dict) => dict.methods(),
        Value::Version(_) => OF_VERSIONS,
        _ => return None,
    };
    methods.iter().find(|method| method.name == name)
}

/// Parameters of a method without arguments, and of a method that takes another version.
const ALONE: &[Type] = &[Type::Version];
const TWO: &[Type] = &[Type::Version, Type::Version];

const OF_VERSIONS: &[Function<'static>] = &[
    Function::new("Major", ALONE, &|_, of| number(of, |version| version.major)),
    Function::new("Minor", ALONE, &|_, of| number(of, |version| version.minor)),
    Function::new("Patch", ALONE, &|_, of| number(of, |version| version.patch)),
    Function::new("Prerelease", ALONE, &|_, of| {
        text(of, |version| version.version().pre.to_string())
    }),
    Function::new("Metadata", ALONE, &|_, of| {
        text(of, |version| version.version().build.to_string())
    }),
    Function::new("Original", ALONE, &|_, of| {
        text(of, |version| version.original().to_owned())
    }),
    Function::new("String", ALONE, &|_, of| {
        text(of, SpelledVersion::to_string)
    }),
    Function::new("Compare", TWO, &|_, of| {
        compare_versions(of).map(|order| Value::Int(order as i64))
    }),
    Function::new("Equal", TWO, &|_, of| compare_with(of, Ordering::is_eq)),
    Function::new("LessThan", TWO, &|_, of| compare_with(of, Ordering::is_lt)),
    Function::new("LessThanEqual", TWO, &|_, of| {
        compare_with(of, Ordering::is_le)
    }),
    Function::new("GreaterThan", TWO, &|_, of| {
        compare_with(of, Ordering::is_gt)
    }),
    Function::new("GreaterThanEqual", TWO, &|_, of| {
        compare_with(of, Ordering::is_ge)
    }),
    // A pre-release becomes its release.
    Function::new("IncPatch", ALONE, &|_, of| {
        let version = of.version(0)?.version();
        let step = u64::from(version.pre.is_empty());
        new_version([
            Some(version.major),
            Some(version.minor),
            version.patch.checked_add(step),
        ])
    }),
    Function::new("IncMinor", ALONE, &|_, of| {
        let version = of.version(0)?.version();
        new_version([Some(version.major), version.minor.checked_add(1), Some(0)])
    }),
    Function::new("IncMajor", ALONE, &|_, of| {
        let major = of.version(0)?.version().major;
        new_version([major.checked_add(1), Some(0), Some(0)])
    }),
];

fn number(of: Arguments<'_>, part: fn(&semver::Version) -> u64) -> FunctionResult {
    Ok(Value::Uint64(part(of.version(0)?.version())))
}

fn text(of: Arguments<'_>, part: fn(&SpelledVersion) -> String) -> FunctionResult {
    Ok(Value::text(part(of.version(0)?)))
}

fn compare_versions(of: Arguments<'_>) -> Result<Ordering, FunctionError> {
    Ok(of
        .version(0)?
        .version()
        .cmp_precedence(of.version(1)?.version()))
}

fn compare_with(of: Arguments<'_>, is: fn(Ordering) -> bool) -> FunctionResult {
    compare_versions(of).map(|order| Value::Bool(is(order)))
}

fn new_version(numbers: [Option<u64>; 3]) -> FunctionResult {
    let [Some(major), Some(minor), Some(patch)] = numbers else {
        return Err("the number is too large".into());
    };
    let version = semver::Version::new(major, minor, patch);
    Ok(Value::Version(Rc::new(SpelledVersion::from(version))))
}
