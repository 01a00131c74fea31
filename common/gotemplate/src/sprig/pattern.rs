//! Translates Go's regular expressions (RE2) to the syntax of regex-lite.

/// Why an expression is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// Go does not accept it either.
    Invalid(&'static str),
    /// Go accepts it, but this crate does not: a Unicode class, or single bytes.
    Unsupported(char),
}

/// Maximum number of repetitions of an atom.
const MAX_REPEAT: usize = 1000;
/// Characters that must be escaped to stand for themselves.
const META: &str = r"\.+*?()|[]{}^$&~#-";

/// Translates an expression: escapes literal braces and brackets, and expands `\Q…\E`. Expressions that only regex-lite accepts (`a**`,
/// `a{1001}`) are refused, as in Go.
pub(super) fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut out = String::with_capacity(pattern.len() + 8);
    // Number of operators after the last atom: at most one, perhaps with a `?` that makes it lazy.
    let (mut operators, mut is_lazy) = (0, false);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        let counts = if c == '{' {
            read_repetition(behind)
        } else {
            None
        };
        match (c, counts) {
            ('?', _) if operators == 1 && !is_lazy => is_lazy = true,
            ('*' | '+' | '?', _) | ('{', Some(_)) => operators += 1,
            _ => (operators, is_lazy) = (0, false),
        }
        if operators > 1 {
            return Err(PatternError::Invalid("nested repetition"));
        }
        rest = match (c, counts) {
            ('{', Some((numbers, behind))) => {
                let mut numbers_in = numbers.split(',').filter_map(|number| number.parse().ok());
                if numbers_in.any(|number: usize| number > MAX_REPEAT) {
                    return Err(PatternError::Invalid("more than 1000 repetitions"));
                }
                out.extend(["{", numbers, "}"]);
                behind
            }
            ('{', None) => {
                out.push_str("\\{");
                behind
            }
            ('\\', _) => write_escape(behind, &mut out)?,
            ('[', _) => write_class(behind, &mut out)?,
            // The `?` before flags and names of groups repeats nothing.
            ('(', _) if behind.starts_with('?') => {
                let behind = behind.get(1..).unwrap_or_default();
                if read_flags(behind).is_some_and(|flags| flags.contains('x')) {
                    return Err(PatternError::Invalid("unknown flag x"));
                }
                out.push_str("(?");
                behind
            }
            _ => {
                out.push(c);
                behind
            }
        };
    }
    Ok(out)
}

/// Reads `2,3}`. Returns `2,3` and the rest.
fn read_repetition(text: &str) -> Option<(&str, &str)> {
    let (numbers, rest) = text.split_once('}')?;
    let (least, most) = numbers.split_once(',').unwrap_or((numbers, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some((numbers, rest))
}

/// Reads the flags: the `i` of `(?i)` and `(?i:…)`.
fn read_flags(text: &str) -> Option<&str> {
    let flags = text.get(..text.find([':', ')'])?)?;
    let is_flag = |c: char| c.is_ascii_alphabetic() || c == '-';
    flags.chars().all(is_flag).then_some(flags)
}

/// Writes the escape sequence after a backslash, and returns the rest.
fn write_escape<'a>(text: &'a str, out: &mut String) -> Result<&'a str, PatternError> {
    if let Some(quoted) = text.strip_prefix('Q') {
        let (quoted, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
        quoted.chars().for_each(|c| write_literal(c, out));
        return Ok(rest);
    }
    let Some(c) = text.chars().next() else {
        out.push('\\');
        return Ok(text);
    };
    match c {
        'p' | 'P' | 'C' => return Err(PatternError::Unsupported(c)),
        c if c.is_ascii_punctuation() || c == ' ' => write_literal(c, out),
        c => out.extend(['\\', c]),
    }
    Ok(text.get(c.len_utf8()..).unwrap_or_default())
}

/// Writes a bracketed class, and returns the rest. A `]` at its start is literal.
fn write_class<'a>(text: &'a str, out: &mut String) -> Result<&'a str, PatternError> {
    out.push('[');
    let mut rest = text;
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    if let Some(behind) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = behind;
    }
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        let named = rest
            .strip_prefix("[:")
            .and_then(|name| name.split_once(":]"));
        rest = match (c, named) {
            (']', _) => {
                out.push(']');
                return Ok(behind);
            }
            ('[', Some((name, behind))) => {
                out.extend(["[:", name, ":]"]);
                behind
            }
            ('\\', _) => write_escape(behind, out)?,
            ('[' | '&' | '~', _) => {
                write_literal(c, out);
                behind
            }
            _ => {
                out.push(c);
                behind
            }
        };
    }
    Ok(rest)
}

fn write_literal(c: char, out: &mut String) {
    if META.contains(c) {
        out.push('\\');
    }
    out.push(c);
}
