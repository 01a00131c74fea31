//! Converts bytes to text: UTF-8 without a byte order mark and control characters.

use super::error::{YamlError, YamlProblem};
use super::section::YamlSection;

/// Returns the text of a section.
pub(super) fn section_text<'a>(section: &YamlSection<'a>) -> Result<&'a str, YamlError> {
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
        let at = first_ascii_control(text.as_bytes());
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

/// Returns line and column, from 1, after the last character of a text.
fn end_of(text: &str) -> (usize, usize) {
    let line = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let last = text.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

/// Returns the position of the first control character in an ASCII text. All bytes of a manifest are checked, and hardly any text contains
/// one, so eight bytes are checked at once.
fn first_ascii_control(bytes: &[u8]) -> Option<usize> {
    let (eights, _) = bytes.as_chunks::<8>();
    let is_clean = |eight: &&[u8; 8]| !has_ascii_control(u64::from_ne_bytes(**eight));
    let clean = 8 * eights.iter().take_while(is_clean).count();
    let rest = bytes.get(clean..)?;
    let at = rest.iter().position(|byte| is_ascii_control(*byte))?;
    Some(clean + at)
}

/// Returns whether any of eight ASCII characters satisfies [`is_ascii_control`]. The highest bit of each byte is free and holds the result
/// for that byte; no sum carries into the next byte.
fn has_ascii_control(eight: u64) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let is = |byte: u8| !((eight ^ each(byte)) + each(0x7f));
    let is_below_blank = !(eight + each(0x80 - b' '));
    let is_allowed = is(b'\t') | is(b'\n') | is(b'\r');
    ((is_below_blank & !is_allowed) | is(0x7f)) & each(0x80) != 0
}

/// Like [`is_control`], for ASCII.
fn is_ascii_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r') || byte == 0x7f
}

/// Returns whether YAML 1.1 does not allow a character in a stream.
fn is_control(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => c.is_control(),
    }
}

/// Returns whether a character ends a line in YAML 1.1, but not in YAML 1.2.
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
            for other in 0..=0x7f_u8 {
                let eight = [b'a', other, b'~', byte, b' ', other, b'\n', byte];
                let expected = is_ascii_control(byte) || is_ascii_control(other);
                let found = has_ascii_control(u64::from_ne_bytes(eight));
                assert_eq!(found, expected, "{byte} {other}");
            }
        }
    }

    #[test]
    fn the_first_control_character_is_found_wherever_it_is() {
        for length in [1, 7, 8, 9, 16, 30] {
            let clean = vec![b'a'; length];
            assert_eq!(first_ascii_control(&clean), None, "{length}");
            for at in [0, length / 2, length - 1] {
                let mut bytes = clean.clone();
                bytes[at] = 7;
                bytes[length - 1] = 7;
                assert_eq!(first_ascii_control(&bytes), Some(at), "{length}");
            }
        }
        assert_eq!(first_ascii_control(b""), None);
    }
}
