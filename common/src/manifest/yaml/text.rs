//! From bytes to text: UTF-8 without a byte order mark and control characters.

use super::error::{YamlError, YamlProblem};
use super::section::Section;

/// The text of a section.
pub(super) fn text_of<'a>(section: &Section<'a>) -> Result<&'a str, YamlError> {
    let text = match std::str::from_utf8(section.bytes) {
        Ok(text) => text,
        Err(error) => {
            let (before, _) = section.bytes.split_at(error.valid_up_to());
            let (line, column) = end_of(&String::from_utf8_lossy(before));
            return Err(YamlError::new(
                section.line + line - 1,
                column,
                YamlProblem::NotUtf8,
            ));
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let control = if text.is_ascii() {
        let at = text.bytes().position(is_ascii_control);
        at.and_then(|at| Some((at, text.get(at..)?.chars().next()?)))
    } else {
        text.char_indices().find(|(_, c)| is_control(*c))
    };
    if let Some((at, c)) = control {
        let (line, column) = end_of(text.get(..at).unwrap_or_default());
        let problem = YamlProblem::ControlCharacter(c.into());
        return Err(YamlError::new(section.line + line - 1, column, problem));
    }
    Ok(text)
}

/// Line and column, from 1, after the last character of a text.
fn end_of(text: &str) -> (usize, usize) {
    let line = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let last = text.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

/// [`is_control`] for ASCII, called for every byte of a manifest.
fn is_ascii_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r') || byte == 0x7f
}

/// Characters that YAML 1.1 does not allow in a stream.
fn is_control(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => c.is_control(),
    }
}

/// Characters that end a line in YAML 1.1 and do not in YAML 1.2.
pub(super) fn is_line_separator(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_has_one_answer() {
        for byte in 0..=0x7f_u8 {
            assert_eq!(is_ascii_control(byte), is_control(byte.into()), "{byte}");
        }
    }
}
