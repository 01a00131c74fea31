//! Regular expressions: RE2's syntax, which regex-lite shares except for classes of Unicode.

use regex_lite::{Captures, Regex, RegexBuilder};

use super::pattern::{Refusal, translated};
use super::{ITEM, reserve_items, text_of_text};
use crate::function::{Arguments, Context, Function, FunctionError, FunctionResult};
use crate::value::Type::{Int, Text};
use crate::value::Value;

pub(super) const REGEX: &[Function<'static>] = &[
    Function::new("regexMatch", &[Text, Text], &|_, args| {
        // An invalid expression does not match.
        let matches = match compiled(args)? {
            Ok(regex) => regex.is_match(args.text(1)?),
            Err(_) => false,
        };
        Ok(Value::Bool(matches))
    }),
    Function::new("mustRegexMatch", &[Text, Text], &|_, args| {
        Ok(Value::Bool(compiled(args)??.is_match(args.text(1)?)))
    }),
    Function::new("regexFind", &[Text, Text], &find).or(&["mustRegexFind"]),
    Function::new("regexFindAll", &[Text, Text, Int], &find_all).or(&["mustRegexFindAll"]),
    Function::new("regexReplaceAll", &[Text, Text, Text], &replace_all)
        .or(&["mustRegexReplaceAll"]),
    Function::new(
        "regexReplaceAllLiteral",
        &[Text, Text, Text],
        &|ctx, args| {
            let text = args.text(2)?;
            replaced(ctx, args, |_, out| out.push_str(text))
        },
    )
    .or(&["mustRegexReplaceAllLiteral"]),
    Function::new("regexSplit", &[Text, Text, Int], &split).or(&["mustRegexSplit"]),
    Function::new("regexQuoteMeta", &[Text], &|_, args| {
        text_of_text(args, quote_meta)
    }),
];

/// Bytes of the largest compiled expression, of the longest text, and the product of both, which bounds the time of a search.
const MAX_EXPRESSION: usize = 1 << 20;
const MAX_TEXT: usize = 8 << 20;
const MAX_WORK: usize = 1 << 34;

/// The expression in the first argument, for the text in the second. The inner error is one that Go reports too; the outer
/// one is a limit of ours, which must not make `regexMatch` silently false.
fn compiled(args: Arguments<'_>) -> Result<Result<Regex, FunctionError>, FunctionError> {
    let (pattern, text) = (args.text(0)?, args.text(1)?);
    if text.len() > MAX_TEXT {
        return Err(FunctionError::new(format!(
            "the text has more than {} MiB: too much for an expression",
            MAX_TEXT >> 20
        )));
    }
    let invalid =
        |reason: &str| FunctionError::new(format!("error parsing regexp: {reason}: {pattern:?}"));
    let translated = match translated(pattern) {
        Ok(translated) => translated,
        Err(Refusal::Invalid(reason)) => return Ok(Err(invalid(reason))),
        Err(Refusal::Unsupported(class)) => {
            return Err(FunctionError::new(format!(
                "{pattern:?}: \\{class} is not supported here: write the characters out, as in [a-zA-Z]"
            )));
        }
    };
    let limit = (MAX_WORK / text.len().max(1)).min(MAX_EXPRESSION);
    match RegexBuilder::new(&translated).size_limit(limit).build() {
        Ok(regex) => Ok(Ok(regex)),
        Err(error) if error.to_string().contains("size") => Err(FunctionError::new(format!(
            "{pattern:?} is too large an expression for this text"
        ))),
        Err(error) => Ok(Err(invalid(&error.to_string()))),
    }
}

fn find(_: &mut Context, args: Arguments<'_>) -> FunctionResult {
    let regex = compiled(args)??;
    let found = regex.find(args.text(1)?);
    Ok(Value::text(found.map_or("", |found| found.as_str())))
}

/// At most as many as asked for; all where that is negative.
fn find_all(ctx: &mut Context, args: Arguments<'_>) -> FunctionResult {
    let regex = compiled(args)??;
    let limit = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for part in regex.find_iter(args.text(1)?).take(limit) {
        ctx.reserve(part.len().saturating_add(2 * ITEM))?;
        found.push(part.as_str());
    }
    Ok(Value::texts(found))
}

/// `$1`, `${1}` and `${name}` are replaced by what a group matched.
fn replace_all(ctx: &mut Context, args: Arguments<'_>) -> FunctionResult {
    let template = args.text(2)?;
    replaced(ctx, args, |groups, out| expand(template, groups, out))
}

fn replaced(
    ctx: &mut Context,
    args: Arguments<'_>,
    write: impl Fn(&Captures<'_>, &mut String),
) -> FunctionResult {
    let regex = compiled(args)??;
    let text = args.text(1)?;
    let mut out = String::new();
    let mut end = 0;
    for groups in regex.captures_iter(text) {
        let Some(whole) = groups.get(0) else { continue };
        let before = out.len();
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        write(&groups, &mut out);
        end = whole.end();
        ctx.reserve(out.len() - before)?;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(Value::text(out))
}

/// Go's `Regexp.Expand`: the longest name of letters, digits and `_`; a `$` before anything else is literal.
fn expand(template: &str, groups: &Captures<'_>, out: &mut String) {
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(behind) = behind.strip_prefix('$') {
            out.push('$');
            rest = behind;
            continue;
        }
        let Some((name, behind)) = group_name(behind) else {
            out.push('$');
            rest = behind;
            continue;
        };
        let has_leading_zero = name.len() > 1 && name.starts_with('0');
        let group = match name.parse::<usize>() {
            Ok(number) if !has_leading_zero => groups.get(number),
            _ => groups.name(name),
        };
        out.push_str(group.map_or("", |group| group.as_str()));
        rest = behind;
    }
    out.push_str(rest);
}

/// The name at the start, perhaps in braces, and what follows it.
fn group_name(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{');
    let start = inner.unwrap_or(text);
    let end = start.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, rest) = start.split_at(end.unwrap_or(start.len()));
    let rest = match inner {
        Some(_) => rest.strip_prefix('}')?,
        None => rest,
    };
    (!name.is_empty()).then_some((name, rest))
}

/// At most as many parts as asked for; all where that is negative.
fn split(ctx: &mut Context, args: Arguments<'_>) -> FunctionResult {
    let regex = compiled(args)??;
    let (pattern, text) = (args.text(0)?, args.text(1)?);
    let limit = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Value::texts(Vec::<&str>::new()));
    }
    if text.is_empty() && !pattern.is_empty() {
        return Ok(Value::texts([""]));
    }
    ctx.reserve(text.len())?;
    let (mut parts, mut start, mut end) = (Vec::new(), 0, 0);
    for found in regex.find_iter(text).take(limit) {
        if parts.len() + 1 == limit {
            break;
        }
        reserve_items(ctx, 1, 2 * ITEM)?;
        end = found.start();
        if found.end() != 0 {
            parts.push(text.get(start..end).unwrap_or_default());
        }
        start = found.end();
    }
    if end != text.len() {
        parts.push(text.get(start..).unwrap_or_default());
    }
    Ok(Value::texts(parts))
}

fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
