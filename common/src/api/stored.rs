//! Parts of stored objects that are read by themselves.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Error;
use serde_json::value::{RawValue, to_raw_value};

use crate::entrance::{self, MAX_STORED_DEPTH, Unreadable};

/// The fields of an object, as text.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads an object; where that fails, those of its fields that `keeps` wants. `field`: what is left out then.
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

/// Reads an object with some of its fields.
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
