//! `.Cluster.Network.ConfigHash`. It changes if the network settings change, so that pods roll out again.

use addons_gotemplate::sprig::to_json;
use addons_gotemplate::value::{StructValue, Value};
use sha1::{Digest as _, Sha1};

use super::field::{DataField, FieldError, NullValue};
use super::shapes::HASHED;
use common::hex;

/// Returns the lower-case hex SHA-1 of the struct's compact JSON, as Go writes it. All lists are sorted before.
pub(super) fn config_hash(network: &DataField<'_>) -> Result<String, FieldError> {
    let mut values = Vec::with_capacity(HASHED.fields.len());
    for (name, of) in HASHED.fields {
        let value = network.get(name)?.to_value(of, NullValue::Nil)?;
        values.push(match value {
            Value::List(list) => {
                let texts = list.iter().filter_map(|item| match item {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                });
                let mut texts: Vec<_> = texts.collect();
                texts.sort_unstable();
                Value::texts(texts)
            }
            other => other,
        });
    }
    let json = to_json(&Value::Record(StructValue::new(&HASHED, values).into()));
    let json = json.map_err(|error| network.error(error.to_string()))?;
    Ok(hex::encode(&Sha1::digest(json.as_bytes())))
}
