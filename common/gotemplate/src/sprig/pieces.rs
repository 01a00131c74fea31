//! Functions that take parts of texts, and that join them. As in sprig, positions are counted in bytes.

use std::rc::Rc;

use super::{ITEM, reserve_items, strings};
use crate::function::{Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{Any, Int, Text};
use crate::value::{Dict, Type, Value};

pub(super) const PIECES: &[Function<'static>] = &[
    Function::new("trunc", &[Int, Text], &|_, args| {
        truncate(args.int(0)?, args.text(1)?)
    }),
    Function::new("substr", &[Int, Int, Text], &|_, args| {
        substring(args.int(0)?, args.int(1)?, args.text(2)?)
    }),
    Function::new("abbrev", &[Int, Text], &|_, args| {
        let (width, text) = (args.int(0)?, args.text(1)?);
        abbreviate(text, 0, width)
    }),
    Function::new("abbrevboth", &[Int, Int, Text], &|_, args| {
        let (left, right, text) = (args.int(0)?, args.int(1)?, args.text(2)?);
        if left > 0 && right < 7 {
            return Ok(Value::text(text));
        }
        abbreviate(text, left, right)
    }),
    Function::new("split", &[Text, Text], &|ctx, args| {
        split_to_dict(ctx, args.text(1)?, args.text(0)?, -1)
    }),
    Function::new("splitn", &[Text, Int, Text], &|ctx, args| {
        split_to_dict(ctx, args.text(2)?, args.text(0)?, args.int(1)?)
    }),
    Function::new("splitList", &[Text, Text], &|ctx, args| {
        let parts = split_text(ctx, args.text(1)?, args.text(0)?, -1)?;
        Ok(Value::texts(parts))
    }),
    Function::new("join", &[Text, Any], &|ctx, args| {
        join(ctx, args.value(1), args.text(0)?)
    }),
    Function::new("toStrings", &[Any], &|ctx, args| {
        let items = to_texts(ctx, args.value(0))?;
        Ok(Value::texts(items))
    }),
    Function::new("sortAlpha", &[Any], &|ctx, args| {
        let mut items = match args.value(0) {
            list @ Value::List(_) => to_texts(ctx, list)?,
            other => vec![other.to_text()?],
        };
        items.sort();
        Ok(Value::texts(items))
    }),
];

/// sprig's `join`: joins the items of a list, as texts, with a separator.
///
/// # Errors
/// The text would be too long.
pub fn join(ctx: &mut FunctionContext, items: &Value, separator: &str) -> FunctionResult {
    let items = to_texts(ctx, items)?;
    strings::join_texts(ctx, &items, separator)
}

/// `text[start..end]`.
pub(super) fn slice_text(text: &str, start: usize, end: usize) -> Result<&str, FunctionError> {
    text.get(start..end).ok_or_else(|| {
        FunctionError::new(if start > end || end > text.len() {
            format!(
                "slice bounds out of range: {start}:{end} of {} bytes",
                text.len()
            )
        } else {
            format!("byte {start} or {end} is in the middle of a character")
        })
    })
}

/// Converts to texts as sprig's `strslice`: the items that are not nil; any other value counts as one item.
fn to_texts(ctx: &mut FunctionContext, value: &Value) -> Result<Vec<String>, FunctionError> {
    let items = match value {
        Value::List(list) => list,
        other => std::slice::from_ref(other),
    };
    let mut texts = Vec::new();
    for item in items {
        if !matches!(item, Value::Missing | Value::Nil) {
            texts.push(to_reserved_text(ctx, item)?);
        }
    }
    Ok(texts)
}

/// Converts a value to text. Reserves its bytes each time, because a list can hold the same long text many times at no cost.
pub(super) fn to_reserved_text(
    ctx: &mut FunctionContext,
    value: &Value,
) -> Result<String, FunctionError> {
    let text = value.to_text()?;
    ctx.reserve(text.len().saturating_add(ITEM))?;
    Ok(text)
}

/// Keeps the first `count` bytes; if it is negative, the last ones.
fn truncate(count: i64, text: &str) -> FunctionResult {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let (start, end) = match text.len().checked_sub(wanted) {
        None | Some(0) => (0, text.len()),
        Some(rest) if count < 0 => (rest, text.len()),
        Some(_) => (0, wanted),
    };
    Ok(Value::text(slice_text(text, start, end)?))
}

/// Takes `text[start..end]`. A negative `start` means the start of the text, a negative `end` its end.
fn substring(start: i64, end: i64, text: &str) -> FunctionResult {
    let end = match usize::try_from(end) {
        Ok(end) if end <= text.len() || start < 0 => end,
        Err(_) if start < 0 => {
            return Err("one of start and end must not be negative".into());
        }
        _ => text.len(),
    };
    let start = usize::try_from(start).unwrap_or_default();
    Ok(Value::text(slice_text(text, start, end)?))
}

/// goutils' `AbbreviateFull`: returns at most `width` bytes from about byte `offset` on, with dots for the omitted parts.
fn abbreviate(text: &str, offset: i64, width: i64) -> FunctionResult {
    const DOTS: &str = "...";
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if width < 4 || length <= width {
        return Ok(Value::text(text));
    }
    let place = |position: i64| usize::try_from(position).unwrap_or_default();
    let offset = offset.min(length).min(length - (width - 3));
    if offset <= 4 {
        let start = slice_text(text, 0, place(width - 3))?;
        return Ok(Value::text(format!("{start}{DOTS}")));
    }
    if width < 7 {
        return Ok(Value::text(""));
    }
    if offset + width - 3 < length {
        let rest = slice_text(text, place(offset), text.len())?;
        let rest = abbreviate(rest, 0, width - 3)?.to_text()?;
        return Ok(Value::text(format!("{DOTS}{rest}")));
    }
    let end = slice_text(text, place(length - (width - 3)), text.len())?;
    Ok(Value::text(format!("{DOTS}{end}")))
}

/// Splits into a dict with the keys `_0`, `_1` …
fn split_to_dict(
    ctx: &mut FunctionContext,
    text: &str,
    separator: &str,
    limit: i64,
) -> FunctionResult {
    let parts = split_text(ctx, text, separator, limit)?;
    let named = parts.into_iter().enumerate();
    let named = named.map(|(index, part)| (Rc::from(format!("_{index}")), Value::text(part)));
    Ok(Value::Dict(Dict::new(&Type::Text, named)))
}

/// Go's `strings.SplitN`: returns at most `limit` parts, or all if it is negative. An empty separator splits into single characters.
fn split_text<'a>(
    ctx: &mut FunctionContext,
    text: &'a str,
    separator: &str,
    limit: i64,
) -> Result<Vec<&'a str>, FunctionError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    reserve_items(ctx, text.matches(separator).take(limit).count(), 2 * ITEM)?;
    ctx.reserve(text.len())?;
    if !separator.is_empty() {
        return Ok(text.splitn(limit, separator).collect());
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if parts.len() + 1 == limit {
            rest.len()
        } else {
            first.len_utf8()
        };
        let (part, behind) = rest.split_at(length);
        parts.push(part);
        rest = behind;
    }
    Ok(parts)
}
