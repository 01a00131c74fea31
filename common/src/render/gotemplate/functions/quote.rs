//! Texts between quotes, as Go writes them.

/// Go's `strconv.Quote`: `%q` of a text.
pub(in crate::render::gotemplate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{B}' => out.push_str("\\v"),
            '\u{C}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                out.push_str(&match code {
                    0..=0x7F => format!("\\x{code:02x}"),
                    0x80..=0xFFFF => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation, symbols, and the blank of ASCII.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // Rust's own escapes know what can be printed, but also escape marks at the start of a text.
    let escaped = format!("{:?}", String::from_iter(['a', c]));
    !escaped.contains("\\u{")
}
