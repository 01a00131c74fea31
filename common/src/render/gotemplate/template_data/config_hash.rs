//! `.Cluster.Network.ConfigHash`: changes when the network's settings change, so that pods roll out again.

use serde_json::{Map, Value as Json};
use sha1::{Digest as _, Sha1};

use super::field::Field;
use crate::render::gotemplate::error::TemplateError;

/// How a field of KKP's struct is written.
enum Kind {
    Text,
    SortedTexts,
    OptionalBool,
    Bool,
    Number,
    Allocations,
}

/// The fields of KKP's struct, in its order.
const FIELDS: [(&str, Kind); 14] = [
    ("DNSDomain", Kind::Text),
    ("DNSClusterIP", Kind::Text),
    ("DNSResolverIP", Kind::Text),
    ("PodCIDRBlocks", Kind::SortedTexts),
    ("ServiceCIDRBlocks", Kind::SortedTexts),
    ("ProxyMode", Kind::Text),
    ("StrictArp", Kind::OptionalBool),
    ("DualStack", Kind::Bool),
    ("PodCIDRIPv4", Kind::Text),
    ("PodCIDRIPv6", Kind::Text),
    ("NodeCIDRMaskSizeIPv4", Kind::Number),
    ("NodeCIDRMaskSizeIPv6", Kind::Number),
    ("IPAMAllocations", Kind::Allocations),
    ("NodePortRange", Kind::Text),
];

/// The lower-case hex SHA-1 of the compact JSON that Go writes of the struct.
pub(super) fn config_hash(network: &Map<String, Json>) -> Result<String, TemplateError> {
    let mut text = String::from("{");
    for (index, (name, kind)) in FIELDS.iter().enumerate() {
        let field = Field {
            json: network.get(*name).unwrap_or(&Json::Null),
            path: format!("Cluster.Network.{name}"),
        };
        if index > 0 {
            text.push(',');
        }
        text.push_str(&format!("\"{name}\":{}", written(&field, kind)?));
    }
    text.push('}');
    let digest = Sha1::digest(text.as_bytes());
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn written(field: &Field<'_>, kind: &Kind) -> Result<String, TemplateError> {
    Ok(match kind {
        Kind::Text => quoted(field.text()?),
        Kind::SortedTexts => {
            let mut items = field.texts()?;
            if let Some(items) = &mut items {
                items.sort_unstable();
            }
            list(items)
        }
        Kind::OptionalBool => match field.optional_bool()? {
            Some(value) => value.to_string(),
            None => "null".to_owned(),
        },
        Kind::Bool => field.bool()?.to_string(),
        Kind::Number => field.int32()?.to_string(),
        Kind::Allocations => match field.object()? {
            None => "null".to_owned(),
            Some(allocations) => {
                let mut names: Vec<(&String, &Json)> = allocations.iter().collect();
                names.sort_unstable_by_key(|(name, _)| *name);
                let names = names.into_iter();
                let written = names.map(|(name, json)| allocation(&field.child(name, json), name));
                format!("{{{}}}", written.collect::<Result<Vec<_>, _>>()?.join(","))
            }
        },
    })
}

fn allocation(field: &Field<'_>, name: &str) -> Result<String, TemplateError> {
    let object = field.object()?;
    let child = |name: &str| {
        let json = object.and_then(|object| object.get(name));
        field.child(name, json.unwrap_or(&Json::Null))
    };
    let (kind, cidr) = (child("Type"), child("CIDR"));
    let addresses = child("Addresses");
    Ok(format!(
        "{}:{{\"Type\":{},\"CIDR\":{},\"Addresses\":{}}}",
        quoted(name),
        quoted(kind.text()?),
        quoted(cidr.text()?),
        list(addresses.texts()?),
    ))
}

fn list(items: Option<Vec<&str>>) -> String {
    match items {
        None => "null".to_owned(),
        Some(items) => {
            let items: Vec<String> = items.into_iter().map(quoted).collect();
            format!("[{}]", items.join(","))
        }
    }
}

/// A JSON string as Go writes it: safe in HTML.
fn quoted(text: &str) -> String {
    let text = Json::from(text).to_string();
    [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ]
    .into_iter()
    .fold(text, |text, (c, escaped)| text.replace(c, escaped))
}
