//! Functions that make texts from texts.

use super::{case, map_text, pieces, wrap};
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{Any, Int, Text};
use crate::value::Value;
use crate::value::format::quote;

pub(super) const STRINGS: &[Function<'static>] = &[
    Function::new("hello", &[], &|_, _| Ok(Value::text("Hello!"))),
    Function::new("trim", &[Text], &|_, args| {
        Ok(Value::text(args.text(0)?.trim()))
    }),
    // The first argument contains the characters to trim.
    Function::new("trimAll", &[Text, Text], &|ctx, args| {
        let cutset = args.text(0)?;
        ctx.count_work(cutset.len().saturating_mul(args.text(1)?.len()))?;
        let trimmed = args.text(1)?.trim_matches(|c| cutset.contains(c));
        Ok(Value::text(trimmed))
    })
    .with_aliases(&["trimall"]),
    Function::new("trimPrefix", &[Text, Text], &|_, args| {
        let (prefix, text) = (args.text(0)?, args.text(1)?);
        Ok(Value::text(text.strip_prefix(prefix).unwrap_or(text)))
    }),
    Function::new("trimSuffix", &[Text, Text], &|_, args| {
        let (suffix, text) = (args.text(0)?, args.text(1)?);
        Ok(Value::text(text.strip_suffix(suffix).unwrap_or(text)))
    }),
    Function::new("upper", &[Text], &|_, args| map_text(args, case::upper)),
    Function::new("lower", &[Text], &|_, args| map_text(args, case::lower)),
    Function::new("title", &[Text], &|_, args| map_text(args, case::title)),
    Function::new("untitle", &[Text], &|_, args| map_text(args, case::untitle)),
    Function::new("swapcase", &[Text], &|_, args| {
        map_text(args, case::swapcase)
    }),
    Function::new("camelcase", &[Text], &|_, args| {
        map_text(args, case::camelcase)
    }),
    Function::new("snakecase", &[Text], &|_, args| {
        map_text(args, |text| case::join_words(text, '_'))
    }),
    Function::new("kebabcase", &[Text], &|_, args| {
        map_text(args, |text| case::join_words(text, '-'))
    }),
    Function::new("initials", &[Text], &|_, args| {
        map_text(args, case::initials)
    }),
    Function::new("nospace", &[Text], &|_, args| map_text(args, case::nospace)),
    Function::new("contains", &[Text, Text], &|_, args| {
        Ok(Value::Bool(args.text(1)?.contains(args.text(0)?)))
    }),
    Function::new("hasPrefix", &[Text, Text], &|_, args| {
        Ok(Value::Bool(args.text(1)?.starts_with(args.text(0)?)))
    }),
    Function::new("hasSuffix", &[Text, Text], &|_, args| {
        Ok(Value::Bool(args.text(1)?.ends_with(args.text(0)?)))
    }),
    Function::new("plural", &[Text, Text, Int], &|_, args| {
        let chosen = usize::from(args.int(2)? != 1);
        Ok(Value::text(args.text(chosen)?))
    }),
    Function::new("toString", &[Any], &|_, args| {
        Ok(Value::text(args.value(0).to_text()?))
    }),
    Function::variadic("quote", &[], Any, &|ctx, args| {
        join_arguments(ctx, args, |text| quote(text, '"', false))
    }),
    Function::variadic("squote", &[], Any, &|ctx, args| {
        join_arguments(ctx, args, |text| format!("'{text}'"))
    }),
    Function::variadic("cat", &[], Any, &|ctx, args| {
        join_arguments(ctx, args, str::to_owned)
    }),
    Function::new("repeat", &[Int, Text], &|ctx, args| {
        let (count, text) = (non_negative(args.int(0)?, "count")?, args.text(1)?);
        ctx.reserve(count.saturating_mul(text.len()))?;
        Ok(Value::text(text.repeat(count)))
    }),
    Function::new("replace", &[Text, Text, Text], &|ctx, args| {
        let (old, new, text) = (args.text(0)?, args.text(1)?, args.text(2)?);
        ctx.reserve(text.matches(old).count().saturating_mul(new.len()))?;
        Ok(Value::text(text.replace(old, new)))
    }),
    Function::new("indent", &[Int, Text], &|ctx, args| {
        indent(ctx, args.int(0)?, args.text(1)?, "")
    }),
    Function::new("nindent", &[Int, Text], &|ctx, args| {
        indent(ctx, args.int(0)?, args.text(1)?, "\n")
    }),
    Function::new("wrap", &[Int, Text], &|ctx, args| {
        wrap::wrap_text(ctx, args.text(1)?, args.int(0)?, "", false)
    }),
    Function::new("wrapWith", &[Int, Text, Text], &|ctx, args| {
        wrap::wrap_text(ctx, args.text(2)?, args.int(0)?, args.text(1)?, true)
    }),
];

/// Joins the arguments that are not nil with blanks, each converted by `make`.
fn join_arguments(
    ctx: &mut FunctionContext,
    args: Arguments<'_>,
    make: impl Fn(&str) -> String,
) -> FunctionResult {
    let present = args
        .rest(0)
        .iter()
        .filter(|value| !matches!(value, Value::Missing | Value::Nil));
    let mut parts = Vec::new();
    for value in present {
        parts.push(make(&pieces::to_reserved_text(ctx, value)?));
    }
    join_texts(ctx, &parts, " ")
}

/// Joins texts with a separator.
pub(super) fn join_texts(
    ctx: &mut FunctionContext,
    items: &[String],
    separator: &str,
) -> FunctionResult {
    let separators = items.len().saturating_mul(separator.len());
    let texts = items.iter().map(String::len).sum::<usize>();
    ctx.reserve(separators.saturating_add(texts))?;
    Ok(Value::text(items.join(separator)))
}

fn indent(ctx: &mut FunctionContext, spaces: i64, text: &str, before: &str) -> FunctionResult {
    let spaces = non_negative(spaces, "number of blanks")?;
    let lines = text.matches('\n').count() + 1;
    ctx.reserve(lines.saturating_mul(spaces).saturating_add(text.len()))?;
    let pad = " ".repeat(spaces);
    let text = text.replace('\n', &format!("\n{pad}"));
    Ok(Value::text(format!("{before}{pad}{text}")))
}

/// Checks that a number is not negative.
fn non_negative(number: i64, what: &str) -> Result<usize, FunctionError> {
    usize::try_from(number)
        .map_err(|_| FunctionError::new(format!("the {what} must not be negative: {number}")))
}
