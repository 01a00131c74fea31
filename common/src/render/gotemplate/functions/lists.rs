//! Lists. None is changed: each function gives a new one.

use super::super::function::Parameter::{Any, Int};
use super::super::function::{Arguments, Context, Function, FunctionError};
use super::super::value::{Element, List, Value};
use super::defaults::is_empty;
use super::{Answer, ITEM, cast, reserve_items};

pub(super) const LISTS: &[Function] = &[
    Function::variadic("list", &[], Any, list),
    Function::variadic("tuple", &[], Any, list),
    Function::new("first", &[Any], first),
    Function::new("mustFirst", &[Any], first),
    Function::new("last", &[Any], last),
    Function::new("mustLast", &[Any], last),
    Function::new("rest", &[Any], rest),
    Function::new("mustRest", &[Any], rest),
    Function::new("initial", &[Any], initial),
    Function::new("mustInitial", &[Any], initial),
    Function::new("append", &[Any, Any], append),
    Function::new("mustAppend", &[Any, Any], append),
    Function::new("push", &[Any, Any], append),
    Function::new("mustPush", &[Any, Any], append),
    Function::new("prepend", &[Any, Any], prepend),
    Function::new("mustPrepend", &[Any, Any], prepend),
    Function::new("reverse", &[Any], reverse),
    Function::new("mustReverse", &[Any], reverse),
    Function::new("compact", &[Any], compact),
    Function::new("mustCompact", &[Any], compact),
    Function::new("uniq", &[Any], uniq),
    Function::new("mustUniq", &[Any], uniq),
    Function::variadic("without", &[Any], Any, without),
    Function::variadic("mustWithout", &[Any], Any, without),
    Function::new("has", &[Any, Any], has),
    Function::new("mustHas", &[Any, Any], has),
    Function::variadic("slice", &[Any], Any, slice),
    Function::variadic("mustSlice", &[Any], Any, slice),
    Function::new("chunk", &[Int, Any], chunk),
    Function::new("mustChunk", &[Int, Any], chunk),
    Function::variadic("concat", &[], Any, concat),
];

/// The list in argument `index`, for which `doing` is meant.
fn items<'a>(args: Arguments<'a>, index: usize, doing: &str) -> Result<&'a List, FunctionError> {
    match args.value(index) {
        Value::List(list) => Ok(list),
        other => Err(no_list(other, doing)),
    }
}

fn no_list(value: &Value, doing: &str) -> FunctionError {
    FunctionError::new(match value {
        Value::Missing | Value::Nil => "there is no list: the value is missing or null".to_owned(),
        other => format!("Cannot {doing} on type {}", other.kind_name()),
    })
}

/// A list of whatever of `items`.
fn made(ctx: &mut Context<'_>, items: Vec<Value>) -> Answer {
    reserve_items(ctx, items.len(), ITEM)?;
    Ok(Value::list(items))
}

fn list(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    made(ctx, args.rest(0).to_vec())
}

fn first(_: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "find first")?;
    Ok(list.first().cloned().unwrap_or(Value::Nil))
}

fn last(_: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "find last")?;
    Ok(list.last().cloned().unwrap_or(Value::Nil))
}

fn rest(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "find rest")?;
    made(ctx, list.iter().skip(1).cloned().collect())
}

fn initial(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "find initial")?;
    let count = list.len().saturating_sub(1);
    made(ctx, list.iter().take(count).cloned().collect())
}

fn append(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "push")?.iter();
    let with = list.chain([args.value(1)]);
    made(ctx, with.cloned().collect())
}

fn prepend(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "prepend")?.iter();
    let with = [args.value(1)].into_iter().chain(list);
    made(ctx, with.cloned().collect())
}

fn reverse(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "find reverse")?;
    made(ctx, list.iter().rev().cloned().collect())
}

fn compact(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "compact")?;
    ctx.work(list.len().saturating_mul(ITEM))?;
    let kept = list.iter().filter(|item| !is_empty(item));
    made(ctx, kept.cloned().collect())
}

fn uniq(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let mut kept = Vec::new();
    for item in items(args, 0, "find uniq")?.iter() {
        if !contains(ctx, &kept, item)? {
            kept.push(item.clone());
        }
    }
    made(ctx, kept)
}

fn without(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let mut kept = Vec::new();
    for item in items(args, 0, "find without")?.iter() {
        if !contains(ctx, args.rest(1), item)? {
            kept.push(item.clone());
        }
    }
    made(ctx, kept)
}

fn has(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let (needle, haystack) = (args.value(0), args.value(1));
    Ok(Value::Bool(match haystack {
        Value::Missing | Value::Nil => false,
        Value::List(list) => contains(ctx, list, needle)?,
        other => return Err(no_list(other, "find has")),
    }))
}

/// Go's deep equality: an int is no int64.
fn contains(ctx: &mut Context<'_>, items: &[Value], needle: &Value) -> Result<bool, FunctionError> {
    for item in items {
        if ctx.deep_equal(needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `slice LIST [START [END]]`
fn slice(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 0, "slice")?;
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
        FunctionError::new(format!(
            "there is no part {start}:{end} of {} items",
            list.len()
        ))
    })?;
    reserve_items(ctx, part.len(), ITEM)?;
    Ok(Value::List(List::new(list.element(), part.to_vec())))
}

fn chunk(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let list = items(args, 1, "chunk")?;
    let size = usize::try_from(args.int(0)?).unwrap_or_default();
    if size == 0 {
        return Err(FunctionError::new("the size must be at least 1"));
    }
    reserve_items(ctx, list.len(), 2 * ITEM)?;
    let chunks = list.chunks(size).map(|chunk| Value::list(chunk.to_vec()));
    Ok(Value::List(List::new(Element::List, chunks.collect())))
}

fn concat(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let mut all = Vec::new();
    for value in args.rest(0) {
        let Value::List(list) = value else {
            return Err(no_list(value, "concat"));
        };
        reserve_items(ctx, list.len(), ITEM)?;
        all.extend(list.iter().cloned());
    }
    Ok(Value::list(all))
}
