//! Functions for regular expressions. regex-lite shares RE2's syntax, except for Unicode classes.

use regex_lite::{Captures, Regex, RegexBuilder};

use super::pattern::{PatternError, translate};
use super::{ITEM, map_text, reserve_items};
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{Int, Text};
use crate::value::Value;

pub(super) const REGEX: &[Function<'static>] = &[
    Function::new("regexMatch", &[Text, Text], &|ctx, args| {
        // An invalid expression does not match.
        Ok(Value::Bool(matches(ctx, args)?.unwrap_or(false)))
    }),
    Function::new("mustRegexMatch", &[Text, Text], &|ctx, args| {
        Ok(Value::Bool(matches(ctx, args)??))
    }),
    Function::new("regexFind", &[Text, Text], &find).with_aliases(&["mustRegexFind"]),
    Function::new("regexFindAll", &[Text, Text, Int], &find_all)
        .with_aliases(&["mustRegexFindAll"]),
    Function::new("regexReplaceAll", &[Text, Text, Text], &replace_all)
        .with_aliases(&["mustRegexReplaceAll"]),
    Function::new(
        "regexReplaceAllLiteral",
        &[Text, Text, Text],
        &|ctx, args| {
            let text = args.text(2)?;
            replace_matches(ctx, args, |_, out| out.push_str(text))
        },
    )
    .with_aliases(&["mustRegexReplaceAllLiteral"]),
    Function::new("regexSplit", &[Text, Text, Int], &split).with_aliases(&["mustRegexSplit"]),
    Function::new("regexQuoteMeta", &[Text], &|_, args| {
        map_text(args, quote_meta)
    }),
];

/// Size limits: of an expression, of a compiled expression, and of a text, all in bytes. `MAX_WORK` limits the product of the last two,
/// which bounds the time of one search.
const MAX_PATTERN: usize = 64 << 10;
const MAX_EXPRESSION: usize = 1 << 20;
const MAX_TEXT: usize = 8 << 20;
const MAX_WORK: usize = 1 << 34;
/// Size of the smallest compiled expression that is tried. Reading a byte with it counts once.
const UNIT: usize = 512;
/// Factor by which reading with an expression is slower than other reading.
const SLOWER: usize = 4;

/// A compiled expression, and the cost of reading a byte with it.
struct CompiledRegex {
    regex: Regex,
    cost: usize,
    /// Bytes after a match that a search may read; `None` if that may be the whole text, as with `[^x]*x|a`.
    ahead: Option<usize>,
}

impl CompiledRegex {
    /// Counts one search in a whole text.
    fn count_search(&self, ctx: &mut FunctionContext, text: &str) -> Result<(), FunctionError> {
        ctx.count_work(text.len().saturating_mul(self.cost))
    }

    /// Counts the next one of several searches, from byte `from` on. Each of them may read the whole rest.
    fn count_next_search(
        &self,
        ctx: &mut FunctionContext,
        text: &str,
        from: usize,
    ) -> Result<(), FunctionError> {
        let rest = text.len().saturating_sub(from);
        let read = self.ahead.map_or(rest, |ahead| ahead.min(rest));
        ctx.count_work(read.saturating_add(1).saturating_mul(self.cost))
    }

    /// Counts the bytes that a search read before its match, if `next` did not count them already.
    fn count_match(
        &self,
        ctx: &mut FunctionContext,
        from: usize,
        end: usize,
    ) -> Result<(), FunctionError> {
        let read = self.ahead.map_or(0, |_| end.saturating_sub(from));
        ctx.count_work(read.saturating_mul(self.cost))
    }
}

/// Compiles the expression in the first argument, for the text in the second. The inner error is one that Go reports as well; the outer
/// error is a limit of this crate, which must not make `regexMatch` silently return false.
fn compile(
    ctx: &mut FunctionContext,
    args: Arguments<'_>,
) -> Result<Result<CompiledRegex, FunctionError>, FunctionError> {
    let (pattern, text) = (args.text(0)?, args.text(1)?);
    if text.len() > MAX_TEXT {
        return Err(FunctionError::new(format!(
            "the text has more than {} MiB: too much for an expression",
            MAX_TEXT >> 20
        )));
    }
    if pattern.len() > MAX_PATTERN {
        return Err(FunctionError::new(format!(
            "the expression has more than {} KiB",
            MAX_PATTERN >> 10
        )));
    }
    // The translation searches for a closing bracket from every opening one.
    ctx.count_work(pattern.len().saturating_mul(pattern.len()) / SLOWER)?;
    let invalid =
        |reason: &str| FunctionError::new(format!("error parsing regexp: {reason}: {pattern:?}"));
    let translated = match translate(pattern) {
        Ok(translated) => translated,
        Err(PatternError::Invalid(reason)) => return Ok(Err(invalid(reason))),
        Err(PatternError::Unsupported(class)) => {
            return Err(FunctionError::new(format!(
                "{pattern:?}: \\{class} is not supported here: write the characters out, as in [a-zA-Z]"
            )));
        }
    };
    let limit = (MAX_WORK / text.len().max(1)).min(MAX_EXPRESSION);
    // The size of a compiled expression is known only as the limit into which it fits.
    let mut size = UNIT.min(limit);
    loop {
        ctx.count_work(size.saturating_mul(SLOWER))?;
        match RegexBuilder::new(&translated).size_limit(size).build() {
            Ok(regex) => {
                return Ok(Ok(CompiledRegex {
                    regex,
                    cost: size.div_ceil(UNIT).saturating_mul(SLOWER),
                    // Nothing repeats, so no match is longer than the expression.
                    ahead: (!pattern.contains(['*', '+', '{'])).then_some(pattern.len() * 4),
                }));
            }
            Err(error) if !error.to_string().contains("size") => {
                return Ok(Err(invalid(&error.to_string())));
            }
            Err(_) if size < limit => size = size.saturating_mul(2).min(limit),
            Err(_) => {
                return Err(FunctionError::new(format!(
                    "{pattern:?} is too large an expression for this text"
                )));
            }
        }
    }
}

/// Returns whether the expression matches. The errors are those of [`compile`].
fn matches(
    ctx: &mut FunctionContext,
    args: Arguments<'_>,
) -> Result<Result<bool, FunctionError>, FunctionError> {
    let text = args.text(1)?;
    Ok(match compile(ctx, args)? {
        Ok(compiled) => {
            compiled.count_search(ctx, text)?;
            Ok(compiled.regex.is_match(text))
        }
        Err(error) => Err(error),
    })
}

fn find(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let compiled = compile(ctx, args)??;
    let text = args.text(1)?;
    compiled.count_search(ctx, text)?;
    let found = compiled.regex.find(text);
    Ok(Value::text(found.map_or("", |found| found.as_str())))
}

/// Returns at most as many matches as asked for; all if the number is negative.
fn find_all(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let compiled = compile(ctx, args)??;
    let text = args.text(1)?;
    let limit = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut parts = compiled.regex.find_iter(text).take(limit);
    let mut end = 0;
    loop {
        compiled.count_next_search(ctx, text, end)?;
        let Some(part) = parts.next() else { break };
        ctx.reserve(part.len().saturating_add(2 * ITEM))?;
        compiled.count_match(ctx, end, part.end())?;
        end = part.end();
        found.push(part.as_str());
    }
    Ok(Value::texts(found))
}

/// Replaces all matches; `$1`, `${1}` and `${name}` stand for the text of a group.
fn replace_all(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let template = args.text(2)?;
    replace_matches(ctx, args, |groups, out| expand(template, groups, out))
}

fn replace_matches(
    ctx: &mut FunctionContext,
    args: Arguments<'_>,
    write: impl Fn(&Captures<'_>, &mut String),
) -> FunctionResult {
    let compiled = compile(ctx, args)??;
    let text = args.text(1)?;
    let mut out = String::new();
    let mut all = compiled.regex.captures_iter(text);
    let mut end = 0;
    loop {
        compiled.count_next_search(ctx, text, end)?;
        let Some(groups) = all.next() else { break };
        let Some(whole) = groups.get(0) else { continue };
        let before = out.len();
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        write(&groups, &mut out);
        compiled.count_match(ctx, end, whole.end())?;
        end = whole.end();
        ctx.reserve(out.len() - before)?;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(Value::text(out))
}

/// Go's `Regexp.Expand`: takes the longest name of letters, digits and `_`; a `$` before anything else is literal.
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

/// Splits off a name at the start, perhaps in braces, from the rest.
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

/// Splits into at most as many parts as asked for; all if the number is negative.
fn split(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let compiled = compile(ctx, args)??;
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
    let mut all = compiled.regex.find_iter(text).take(limit);
    while parts.len() + 1 != limit {
        compiled.count_next_search(ctx, text, start)?;
        let Some(found) = all.next() else { break };
        compiled.count_match(ctx, start, found.end())?;
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
