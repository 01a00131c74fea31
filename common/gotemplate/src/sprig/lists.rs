//! Functions for lists. Each of them returns a new list.

use super::values::is_empty;
use super::{ITEM, cast, reserve_items};
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{Any, Int};
use crate::value::{ListValue, Type, Value};

pub(super) const LISTS: &[Function<'static>] = &[
    Function::variadic("list", &[], Any, &list).with_aliases(&["tuple"]),
    Function::new("first", &[Any], &first).with_aliases(&["mustFirst"]),
    Function::new("last", &[Any], &last).with_aliases(&["mustLast"]),
    Function::new("rest", &[Any], &rest).with_aliases(&["mustRest"]),
    Function::new("initial", &[Any], &initial).with_aliases(&["mustInitial"]),
    Function::new("append", &[Any, Any], &append).with_aliases(&["mustAppend", "push", "mustPush"]),
    Function::new("prepend", &[Any, Any], &prepend).with_aliases(&["mustPrepend"]),
    Function::new("reverse", &[Any], &reverse).with_aliases(&["mustReverse"]),
    Function::new("compact", &[Any], &compact).with_aliases(&["mustCompact"]),
    Function::new("uniq", &[Any], &uniq).with_aliases(&["mustUniq"]),
    Function::variadic("without", &[Any], Any, &without).with_aliases(&["mustWithout"]),
    Function::new("has", &[Any, Any], &has).with_aliases(&["mustHas"]),
    Function::variadic("slice", &[Any], Any, &slice).with_aliases(&["mustSlice"]),
    Function::new("chunk", &[Int, Any], &chunk).with_aliases(&["mustChunk"]),
    Function::variadic("concat", &[], Any, &concat),
];

/// Returns the list in argument `index`; `doing` describes the function in the error.
fn list_argument<'a>(
    args: Arguments<'a>,
    index: usize,
    doing: &str,
) -> Result<&'a ListValue, FunctionError> {
    match args.value(index) {
        Value::List(list) => Ok(list),
        other => Err(not_a_list(other, doing)),
    }
}

fn not_a_list(value: &Value, doing: &str) -> FunctionError {
    FunctionError::new(match value {
        Value::Missing | Value::Nil => "there is no list: the value is missing or null".to_owned(),
        other => format!("Cannot {doing} on type {}", other.kind_name()),
    })
}

/// Makes a `[]interface {}`.
fn new_list(ctx: &mut FunctionContext, items: Vec<Value>) -> FunctionResult {
    reserve_items(ctx, items.len(), ITEM)?;
    Ok(Value::list(items))
}

fn list(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    new_list(ctx, args.rest(0).to_vec())
}

fn first(_: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "find first")?;
    Ok(list.first().cloned().unwrap_or(Value::Nil))
}

fn last(_: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "find last")?;
    Ok(list.last().cloned().unwrap_or(Value::Nil))
}

fn rest(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "find rest")?;
    new_list(ctx, list.iter().skip(1).cloned().collect())
}

fn initial(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "find initial")?;
    let count = list.len().saturating_sub(1);
    new_list(ctx, list.iter().take(count).cloned().collect())
}

fn append(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "push")?.iter();
    let with = list.chain([args.value(1)]);
    new_list(ctx, with.cloned().collect())
}

fn prepend(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "prepend")?.iter();
    let with = [args.value(1)].into_iter().chain(list);
    new_list(ctx, with.cloned().collect())
}

fn reverse(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "find reverse")?;
    new_list(ctx, list.iter().rev().cloned().collect())
}

fn compact(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "compact")?;
    ctx.count_work(list.len().saturating_mul(ITEM))?;
    let kept = list.iter().filter(|item| !is_empty(item));
    new_list(ctx, kept.cloned().collect())
}

fn uniq(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let mut kept = Vec::new();
    for item in list_argument(args, 0, "find uniq")?.iter() {
        if !contains(ctx, &kept, item)? {
            kept.push(item.clone());
        }
    }
    new_list(ctx, kept)
}

fn without(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let mut kept = Vec::new();
    for item in list_argument(args, 0, "find without")?.iter() {
        if !contains(ctx, args.rest(1), item)? {
            kept.push(item.clone());
        }
    }
    new_list(ctx, kept)
}

fn has(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let (needle, haystack) = (args.value(0), args.value(1));
    Ok(Value::Bool(match haystack {
        Value::Missing | Value::Nil => false,
        Value::List(list) => contains(ctx, list, needle)?,
        other => return Err(not_a_list(other, "find has")),
    }))
}

/// Compares by Go's deep equality: an int never equals an int64.
fn contains(
    ctx: &mut FunctionContext,
    items: &[Value],
    needle: &Value,
) -> Result<bool, FunctionError> {
    for item in items {
        if ctx.deep_equal(needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `slice LIST [START [END]]`
fn slice(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 0, "slice")?;
    if list.is_empty() {
        return Ok(Value::Nil);
    }
    let start = cast::to_int(args.value(1));
    let end = match args.rest(1) {
        [_, end, ..] => cast::to_int(end),
        _ => i64::try_from(list.len()).unwrap_or(i64::MAX),
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| list.get(start..end));
    let part = part.ok_or_else(|| {
        let count = list.len();
        format!("slice bounds out of range: {start}:{end} of {count} items")
    })?;
    reserve_items(ctx, part.len(), ITEM)?;
    Ok(Value::List(ListValue::new(list.element(), part.to_vec())))
}

fn chunk(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let list = list_argument(args, 1, "chunk")?;
    let size = usize::try_from(args.int(0)?).unwrap_or_default();
    if size == 0 {
        return Err("the size must be at least 1".into());
    }
    reserve_items(ctx, list.len(), 2 * ITEM)?;
    let chunks = list.chunks(size).map(|chunk| Value::list(chunk.to_vec()));
    Ok(Value::List(ListValue::new(
        &Type::List(&Type::Any),
        chunks.collect(),
    )))
}

fn concat(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let mut all = Vec::new();
    for value in args.rest(0) {
        let Value::List(list) = value else {
            return Err(not_a_list(value, "concat"));
        };
        reserve_items(ctx, list.len(), ITEM)?;
        all.extend(list.iter().cloned());
    }
    Ok(Value::list(all))
}
