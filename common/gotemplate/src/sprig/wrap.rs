//! Wraps lines: goutils 1.1.1, which counts bytes and breaks lines only at `' '`.

use super::pieces::slice_text;
use crate::function::{FunctionContext, FunctionResult};
use crate::value::Value;

/// Puts `line_break` (a newline if it is empty) before each line that would be longer than `width`.
pub(super) fn wrap_text(
    ctx: &mut FunctionContext,
    text: &str,
    width: i64,
    line_break: &str,
    breaks_words: bool,
) -> FunctionResult {
    let line_break = if line_break.is_empty() {
        "\n"
    } else {
        line_break
    };
    let width = usize::try_from(width).unwrap_or_default().max(1);
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut start = 0;
    // A line ends at the last blank that fits; the blank is dropped.
    while bytes.len() - start > width {
        let rest = &bytes[start..];
        if rest.first() == Some(&b' ') {
            start += 1;
            continue;
        }
        let fitting = &rest[..=width];
        let (end, next) = match fitting.iter().rposition(|byte| *byte == b' ') {
            Some(blank) => (start + blank, start + blank + 1),
            None if breaks_words => (start + width, start + width),
            None => match rest[width..].iter().position(|byte| *byte == b' ') {
                Some(blank) => (start + width + blank, start + width + blank + 1),
                None => break,
            },
        };
        ctx.reserve(line_break.len())?;
        out.push_str(slice_text(text, start, end)?);
        out.push_str(line_break);
        start = next;
    }
    out.push_str(slice_text(text, start, bytes.len())?);
    Ok(Value::text(out))
}
