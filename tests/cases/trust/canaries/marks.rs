//! Looking for a value in whatever spelling it may have got.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde_json::json;

use super::draw::{Case, Form};

/// Texts of which none may be found.
pub(super) struct Marks(Vec<String>);

impl Marks {
    /// Of a case; names are public.
    pub(super) fn of(case: &Case) -> Self {
        let mut marks = Self(Vec::new());
        if case.form != Form::Name {
            for (text, mark) in case.texts.iter().zip(&case.marks) {
                marks.add(text, mark);
            }
        }
        marks
    }

    /// One more value.
    pub(super) fn add(&mut self, text: &str, mark: &str) {
        let whole = [text, text.trim()];
        self.0.extend(whole.map(str::to_owned));
        // The part of it that no other text has: it is also in lines, in what was cut off, and in what was escaped.
        if text.contains(mark) {
            self.0.push(mark.to_owned());
            self.0.extend(inside(mark));
        }
        let start: String = text.chars().take(14).collect();
        if text.len() > 40 && text.contains(mark) && !start.starts_with('-') {
            self.0.push(start);
        }
        let escaped = json!(text).to_string();
        self.0.push(escaped.trim_matches('"').to_owned());
        self.0.push(escaped.replace('<', "\\u003c"));
        self.0
            .extend(whole.map(|text| BASE64_STANDARD_NO_PAD.encode(text)));
        let encoded = BASE64_STANDARD_NO_PAD.encode(text);
        self.0.push(encoded.chars().take(16).collect());
        self.0.sort();
        self.0.dedup();
    }

    /// What of them is in a text, with what stands around it.
    pub(super) fn found_in(&self, text: &str) -> Option<String> {
        let at = self.0.iter().find_map(|mark| text.find(mark.as_str()))?;
        let around = text.char_indices().map(|(index, _)| index);
        let start = around.clone().filter(|index| index + 160 > at).min()?;
        let end = around.filter(|index| *index < at + 160).max()?;
        text.get(start..end).map(str::to_owned)
    }
}

/// Base64 of any text that has this one inside, wherever it begins there.
fn inside(mark: &str) -> [String; 3] {
    [0, 1, 2].map(|shift| {
        let padded = format!("{}{mark}", "x".repeat(shift));
        let encoded = BASE64_STANDARD_NO_PAD.encode(&padded);
        let first = (shift * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        encoded[first..last].to_owned()
    })
}
