//! Reads stored objects of which some fields may be unreadable.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Error;
use serde_json::value::{RawValue, to_raw_value};

use crate::entrance::{self, MAX_STORED_DEPTH, UnreadableField};

/// The fields of an object, as raw JSON.
pub(super) type RawFields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads an object. If that fails, reads only the fields that `keeps` accepts, and returns `field` as the part that is missing.
pub(super) fn read_without<T: DeserializeOwned>(
    text: &RawValue,
    field: &'static str,
    keeps: impl Fn(&str) -> bool,
) -> Result<(T, Option<UnreadableField>), Error> {
    let error = match entrance::from_str(text.get()) {
        Ok(read) => return Ok((read, None)),
        Err(error) => error,
    };
    let fields: RawFields<'_> = entrance::read_outline(text.get().as_bytes())?;
    let read = read_fields(&fields, keeps)?;
    let why = entrance::describe_refusal(text.get().as_bytes(), &error, MAX_STORED_DEPTH);
    Ok((read, Some(UnreadableField { field, why })))
}

/// Reads an object from some of its fields.
pub(super) fn read_fields<T: DeserializeOwned>(
    fields: &RawFields<'_>,
    keeps: impl Fn(&str) -> bool,
) -> Result<T, Error> {
    let kept: RawFields<'_> = fields
        .iter()
        .filter(|(field, _)| keeps(field))
        .map(|(field, text)| (field.clone(), *text))
        .collect();
    entrance::from_str(to_raw_value(&kept)?.get())
}
