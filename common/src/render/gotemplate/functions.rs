//! Functions that are not Go's own: sprig's text functions (3.3.0) and those of KKP.
//!
//! Argument orders, types and errors are sprig's, as `golden/templates` has them; what sprig takes from the clock, from
//! chance, the environment or the network is refused ([`impure`]). Where sprig panics there is an error, and so is what
//! would cut a character in two: texts are UTF-8.

mod addons;
mod case;
mod cast;
mod decimal;
mod defaults;
mod dicts;
mod durations;
mod encodings;
mod hashes;
mod impure;
mod json;
mod kinds;
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
mod urls;
mod versions;
mod wrap;

use super::function::{Arguments, Context, Function, FunctionError};
use super::value::Value;

/// What a function gives back.
type Answer = Result<Value, FunctionError>;

/// sprig's text functions, one table a family.
pub const SPRIG: &[&[Function]] = &[
    strings::STRINGS,
    pieces::PIECES,
    defaults::DEFAULTS,
    lists::LISTS,
    dicts::DICTS,
    merge::MERGE,
    math::MATH,
    sequences::SEQUENCES,
    json::JSON,
    kinds::KINDS,
    encodings::ENCODINGS,
    hashes::HASHES,
    regex::REGEX,
    paths::PATHS,
    urls::URLS,
    versions::VERSIONS,
    durations::DURATIONS,
    impure::IMPURE,
];

/// What KKP adds to sprig, or replaces.
pub const KKP: &[&[Function]] = &[addons::ADDONS];

/// A text of another text.
fn text_of_text(args: Arguments<'_>, make: impl Fn(&str) -> String) -> Answer {
    Ok(Value::text(make(args.text(0)?)))
}

/// Bytes of an item in a list, to reserve.
const ITEM: usize = 32;

/// Asks for the bytes of `count` items of `each` bytes.
fn reserve_items(ctx: &mut Context<'_>, count: usize, each: usize) -> Result<(), FunctionError> {
    ctx.reserve(count.saturating_mul(each))
}

/// Bytes of a dict without entries, and of an entry.
const DICT: usize = 640;
const ENTRY: usize = 64;

/// Asks for the bytes of a dict of `count` entries.
fn reserve_dict(ctx: &mut Context<'_>, count: usize) -> Result<(), FunctionError> {
    ctx.reserve(count.saturating_mul(ENTRY).saturating_add(DICT))
}

#[cfg(test)]
mod tests;
