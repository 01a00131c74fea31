//! sprig's text functions (3.3.0).
//!
//! Argument orders, types and errors are those of sprig, as recorded in `tests/golden/templates/functions.jsonl`. Functions that depend on
//! the clock, randomness, the environment or the network are refused. A case in which sprig panics, or in which a result would cut a
//! character in two (texts are UTF-8), is an error.

mod case;
mod cast;
mod decimal;
mod dicts;
mod durations;
mod encodings;
mod impure;
mod json;
mod lists;
mod math;
mod merge;
mod paths;
mod pattern;
mod pieces;
mod regex;
mod sequences;
mod strings;
mod url;
mod values;
mod versions;
mod wrap;

use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::{Type, Value};

pub use json::to_json;
pub use pieces::join;
pub use versions::COMPARISON_SIZE;

/// sprig's text functions, one table per family.
pub const SPRIG: &[&[Function<'static>]] = &[
    strings::STRINGS,
    pieces::PIECES,
    values::DEFAULTS,
    lists::LISTS,
    dicts::DICTS,
    merge::MERGE,
    math::MATH,
    sequences::SEQUENCES,
    json::JSON,
    values::KINDS,
    encodings::ENCODINGS,
    encodings::HASHES,
    regex::REGEX,
    paths::PATHS,
    url::URLS,
    versions::VERSIONS,
    durations::DURATIONS,
    impure::IMPURE,
];

/// The parameter type `map[string]interface {}`.
const MAP: Type = Type::Dict(&Type::Any);

/// Makes a text from the first argument.
fn map_text(args: Arguments<'_>, make: impl Fn(&str) -> String) -> FunctionResult {
    Ok(Value::text(make(args.text(0)?)))
}

/// Size of a list item in the budget, in bytes.
const ITEM: usize = 32;

/// Reserves `count` items of `each` bytes.
fn reserve_items(
    ctx: &mut FunctionContext,
    count: usize,
    each: usize,
) -> Result<(), FunctionError> {
    ctx.reserve(count.saturating_mul(each))
}

/// Sizes in the budget of a dict without entries, and of an entry.
const DICT: usize = 640;
const ENTRY: usize = 64;

/// Reserves a dict of `count` entries.
fn reserve_dict(ctx: &mut FunctionContext, count: usize) -> Result<(), FunctionError> {
    ctx.reserve(count.saturating_mul(ENTRY).saturating_add(DICT))
}

#[cfg(test)]
mod tests;
