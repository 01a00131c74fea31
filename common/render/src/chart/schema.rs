//! Determines whether the JSON schema of a chart's values refuses a certain key.

use serde_json::Value;

/// Maximum depth, including references that are followed.
const DEPTH: usize = 32;

/// Returns whether values with `key` at the root fail the schema because of that key. Only keywords that restrict the keys of an object are
/// read; helm checks everything else.
pub(super) fn refuses(schema: &Value, key: &str) -> bool {
    let document = SchemaDocument { root: schema, key };
    document.refuses(schema, DEPTH)
}

struct SchemaDocument<'a> {
    root: &'a Value,
    key: &'a str,
}

impl<'a> SchemaDocument<'a> {
    fn refuses(&self, schema: &'a Value, depth: usize) -> bool {
        if *schema == Value::Bool(false) {
            return true;
        }
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let is_false = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(false));
        let all = |keyword: &str| list(schema, keyword).any(|it| self.refuses(it, depth));
        let any = |keyword: &str| {
            let mut branches = list(schema, keyword).peekable();
            branches.peek().is_some() && branches.all(|it| self.refuses(it, depth))
        };
        is_false("additionalProperties") && !self.has_property(schema)
            || is_false("unevaluatedProperties") && !self.evaluates(schema, depth)
            || self
                .target(schema)
                .is_some_and(|it| self.refuses(it, depth))
            || all("allOf")
            || any("anyOf")
            || any("oneOf")
    }

    /// Returns whether a part of a schema applies to the key, so that the key does not count as unevaluated.
    fn evaluates(&self, schema: &'a Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return true;
        };
        let is_open = schema
            .get("additionalProperties")
            .is_some_and(|additional| *additional != Value::Bool(false));
        let mut parts = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .flat_map(|keyword| list(schema, keyword))
            .chain(self.target(schema));
        is_open || self.has_property(schema) || parts.any(|part| self.evaluates(part, depth))
    }

    fn has_property(&self, schema: &Value) -> bool {
        let properties = schema.get("properties");
        properties.is_some_and(|properties| properties.get(self.key).is_some())
    }

    /// Returns the target of `$ref` in this document; other documents are not read.
    fn target(&self, schema: &Value) -> Option<&'a Value> {
        let reference = schema.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn list<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> {
    let list = schema.get(keyword).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_closed_object_however_it_is_written() {
        let closed = json!({"additionalProperties": false, "properties": {"a": {}}});
        let open = json!({"properties": {"a": {}}});
        let named = json!({"additionalProperties": false, "properties": {"templateData": {}}});
        for (schema, is_closed) in [
            (json!(true), false),
            (json!(false), true),
            (open.clone(), false),
            (closed.clone(), true),
            (named.clone(), false),
            // cert-manager
            (
                json!({"$defs": {"values": closed}, "$ref": "#/$defs/values"}),
                true,
            ),
            (
                json!({"$defs": {"a/b": closed}, "$ref": "#/$defs/a~1b"}),
                true,
            ),
            (
                json!({"definitions": {"v": named}, "$ref": "#/definitions/v"}),
                false,
            ),
            (json!({"$ref": "#"}), false),
            (json!({"$ref": "https://a.example/schema.json"}), false),
            (json!({"allOf": [open, closed]}), true),
            (json!({"allOf": [open, named]}), false),
            (json!({"anyOf": [open, closed]}), false),
            (json!({"anyOf": [closed, closed]}), true),
            (json!({"oneOf": [{"allOf": [closed]}]}), true),
            (json!({"unevaluatedProperties": false}), true),
            (
                json!({"unevaluatedProperties": false, "allOf": [open]}),
                true,
            ),
            (
                json!({"unevaluatedProperties": false, "allOf": [{"properties": {"templateData": {}}}]}),
                false,
            ),
            (
                json!({"unevaluatedProperties": false, "anyOf": [{"additionalProperties": {"type": "object"}}]}),
                false,
            ),
            (
                json!({"$defs": {"v": {"unevaluatedProperties": false}}, "allOf": [{"$ref": "#/$defs/v"}]}),
                true,
            ),
        ] {
            assert_eq!(refuses(&schema, "templateData"), is_closed, "{schema}");
        }
    }
}
