//! Conversions between upper and lower case: goutils 1.1.1 and xstrings 1.5.0, which sprig uses.

/// Go's `unicode.ToUpper`: maps one letter to one letter, so `ß` stays.
fn to_upper(c: char) -> char {
    let mut letters = c.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

/// Go's `unicode.ToLower`.
fn to_lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Go's `unicode.ToTitle`, which differs from [`to_upper`] for letters like `ǆ`.
fn to_title(c: char) -> char {
    match c {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        c => to_upper(c),
    }
}

/// `upper`.
pub(super) fn upper(text: &str) -> String {
    text.chars().map(to_upper).collect()
}

/// `lower`.
pub(super) fn lower(text: &str) -> String {
    text.chars().map(to_lower).collect()
}

/// `title`: a word begins after any character except letters, digits and `_`; outside of ASCII, only blanks separate words.
pub(super) fn title(text: &str) -> String {
    let mut previous = ' ';
    let letter = |c: char| {
        let starts_word = match previous {
            '_' => false,
            c if c.is_ascii() => !c.is_ascii_alphanumeric(),
            c => !c.is_alphanumeric() && c.is_whitespace(),
        };
        previous = c;
        if starts_word { to_title(c) } else { c }
    };
    text.chars().map(letter).collect()
}

/// `untitle`: converts the first letter of each word to lower case.
pub(super) fn untitle(text: &str) -> String {
    let mut starts_word = true;
    let letter = |c: char| {
        let was_start = std::mem::replace(&mut starts_word, c.is_whitespace());
        if was_start && !c.is_whitespace() {
            to_lower(c)
        } else {
            c
        }
    };
    text.chars().map(letter).collect()
}

/// `swapcase`.
pub(super) fn swapcase(text: &str) -> String {
    let mut starts_word = true;
    let letter = |c: char| {
        if c.is_uppercase() || to_title(c) == c && to_upper(c) != c {
            starts_word = false;
            to_lower(c)
        } else if c.is_lowercase() {
            if std::mem::replace(&mut starts_word, false) {
                to_title(c)
            } else {
                to_upper(c)
            }
        } else {
            starts_word = c.is_whitespace();
            c
        }
    };
    text.chars().map(letter).collect()
}

/// `initials`. goutils treats bytes as characters: characters outside of ASCII come out as Latin-1.
pub(super) fn initials(text: &str) -> String {
    let mut starts_word = true;
    let first = |c: &char| {
        let was_start = std::mem::replace(&mut starts_word, c.is_whitespace());
        was_start && !c.is_whitespace()
    };
    text.bytes().map(char::from).filter(first).collect()
}

/// `nospace`. goutils treats bytes as characters here as well, but only if there is something to delete.
pub(super) fn nospace(text: &str) -> String {
    let characters = || text.bytes().map(char::from);
    if characters().any(char::is_whitespace) {
        characters().filter(|c| !c.is_whitespace()).collect()
    } else {
        text.to_owned()
    }
}

/// `camelcase`: `http_server` is `HttpServer`.
pub(super) fn camelcase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let start = text.find(|c| !is_connector(c));
    let (connectors, rest) = text.split_at(start.unwrap_or(text.len()));
    out.push_str(connectors);
    let mut letters = rest.chars();
    let Some(first) = letters.next() else {
        // A text of connectors only: xstrings writes the last connector twice.
        out.extend(connectors.chars().next_back());
        return out;
    };
    // A word in capitals continues in lower case; a word with a single capital stays as it is.
    let mut in_capitals = first.is_uppercase();
    let mut last = to_upper(first);
    for c in letters {
        let mut c = c;
        if is_connector(c) && is_connector(last) {
            out.push(last);
            continue;
        }
        if is_connector(last) {
            in_capitals = c.is_uppercase();
            c = to_upper(c);
        } else {
            if in_capitals {
                if c.is_uppercase() {
                    c = to_lower(c);
                } else {
                    in_capitals = false;
                }
            }
            out.push(last);
        }
        last = c;
    }
    out.push(last);
    out
}

/// `snakecase` and `kebabcase`: words in lower case, joined by `connector`.
pub(super) fn join_words(text: &str, connector: char) -> String {
    let mut out = WordJoiner {
        text: String::with_capacity(text.len() + 8),
        connector,
    };
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != WordKind::Connector {
            out.push(kind, word);
        }
        let (previous, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match previous {
            WordKind::Number => {
                (kind, word, rest) = out.push_alphabet(kind, word, rest);
                out.connect(kind);
            }
            WordKind::Connector => out.push(previous, last),
            WordKind::Punctuation => {}
            _ if kind != WordKind::Number => out.connect(kind),
            // A number at the end belongs to the word before it.
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind == WordKind::Alphabet {
                    out.text.push(connector);
                    out.push(WordKind::Number, number);
                    (kind, word, rest) = out.push_alphabet(kind, word, rest);
                } else {
                    out.push(WordKind::Number, number);
                }
                out.connect(kind);
            }
        }
    }
    out.push(kind, word);
    out.text
}

#[derive(Clone, Copy, PartialEq)]
enum WordKind {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

struct WordJoiner {
    text: String,
    connector: char,
}

impl WordJoiner {
    fn push(&mut self, kind: WordKind, word: &str) {
        match kind {
            WordKind::Upper => self.text.extend(word.chars().map(to_lower)),
            WordKind::Connector => self.text.extend(word.chars().map(|_| self.connector)),
            _ => self.text.push_str(word),
        }
    }

    /// Appends adjacent lower-case words and numbers, which count as one word.
    fn push_alphabet<'a>(
        &mut self,
        mut kind: WordKind,
        mut word: &'a str,
        mut rest: &'a str,
    ) -> (WordKind, &'a str, &'a str) {
        while matches!(kind, WordKind::Alphabet | WordKind::Number) {
            self.push(kind, word);
            (kind, word, rest) = next_word(rest);
        }
        (kind, word, rest)
    }

    fn connect(&mut self, next: WordKind) {
        if !matches!(
            next,
            WordKind::None | WordKind::Connector | WordKind::Punctuation
        ) {
            self.text.push(self.connector);
        }
    }
}

/// Splits off the word at the start. Returns its kind, the word and the rest.
fn next_word(text: &str) -> (WordKind, &str, &str) {
    let Some(first) = text.chars().next() else {
        return (WordKind::None, "", "");
    };
    let is_small = |c: char| is_alphabet(c) && !c.is_uppercase();
    let is_other =
        |c: char| !is_connector(c) && !is_alphabet(c) && !c.is_numeric() && !is_punctuation(c);
    let (kind, length) = if is_connector(first) {
        (WordKind::Connector, prefix_length(text, is_connector))
    } else if is_punctuation(first) {
        (WordKind::Punctuation, prefix_length(text, is_punctuation))
    } else if first.is_uppercase() {
        (
            WordKind::Upper,
            upper_word(text, first.len_utf8(), is_small),
        )
    } else if is_alphabet(first) {
        (WordKind::Alphabet, prefix_length(text, is_small))
    } else if first.is_numeric() {
        (WordKind::Number, prefix_length(text, char::is_numeric))
    } else {
        (WordKind::Other, prefix_length(text, is_other))
    };
    let (word, rest) = text.split_at(length);
    (kind, word, rest)
}

/// Length of `HTTP` in `HTTPServer`, or of `Server` in `ServerName`, in bytes.
fn upper_word(text: &str, first: usize, is_small: impl Fn(char) -> bool) -> usize {
    let capitals = prefix_length(text, char::is_uppercase);
    let next_is_small = text[capitals..].chars().next().is_some_and(&is_small);
    if capitals == first && next_is_small {
        capitals + prefix_length(&text[capitals..], is_small)
    } else if next_is_small {
        let last = text[..capitals].chars().next_back();
        capitals - last.map_or(0, char::len_utf8)
    } else {
        capitals
    }
}

/// Length of the leading characters that satisfy `is`, in bytes.
fn prefix_length(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_') || c.is_whitespace()
}

/// xstrings does not count Chinese characters as letters.
fn is_alphabet(c: char) -> bool {
    c.is_alphabetic()
        && !matches!(c, '\u{4E00}'..='\u{9FCC}' | '\u{3400}'..='\u{4D85}' | '\u{20000}'..='\u{2B81D}')
}

/// Go's `unicode.IsPunct`, limited to the blocks that hold common punctuation.
fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation()
            && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    matches!(c,
        '¡' | '§' | '«' | '¶' | '·' | '»' | '¿'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205E}'
        | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301F}' | '\u{30FB}'
        | '\u{FF01}'..='\u{FF03}' | '\u{FF05}'..='\u{FF0A}' | '\u{FF0C}'..='\u{FF0F}' | '\u{FF1A}' | '\u{FF1B}'
        | '\u{FF1F}' | '\u{FF20}' | '\u{FF3B}'..='\u{FF3D}' | '\u{FF3F}' | '\u{FF5B}' | '\u{FF5D}')
}
