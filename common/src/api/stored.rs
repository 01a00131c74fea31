//! Reads stored objects of which some fields may be unreadable.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Error;
use serde_json::value::{RawValue, to_raw_value};

use crate::entrance::{self, MAX_STORED_DEPTH, Unreadable};

/// The fields of an object, as raw JSON.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads an object. If that fails, reads only the fields that `keeps` accepts, and returns `field` as the part that is missing.
pub(super) fn without<T: DeserializeOwned>(
    text: &RawValue,
    field: &'static str,
    keeps: impl Fn(&str) -> bool,
) -> Result<(T, Option<Unreadable>), Error> {
    let error = match entrance::from_str(text.get()) {
        Ok(read) => return Ok((read, None)),
        Err(error) => error,
    };
    let fields: Fields<'_> = entrance::outline(text.get().as_bytes())?;
    let read = kept(&fields, keeps)?;
    let why = entrance::reason(text.get().as_bytes(), &error, MAX_STORED_DEPTH);
    Ok((read, Some(Unreadable { field, why })))
}

/// Reads an object from some of its fields.
pub(super) fn kept<T: DeserializeOwned>(
    fields: &Fields<'_>,
    keeps: impl Fn(&str) -> bool,
) -> Result<T, Error> {
    let kept: Fields<'_> = fields
        .iter()
        .filter(|(field, _)| keeps(field))
        .map(|(field, text)| (field.clone(), *text))
        .collect();
    entrance::from_str(to_raw_value(&kept)?.get())
}
