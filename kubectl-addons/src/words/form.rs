//! Describes which values a form field accepts.

use common::api::catalogue::{FieldType, FormField};
use common::values::form::list_values;

/// `text`, `number, one of 1, 3`, `text, pattern ^[a-z]+$`.
pub fn describe_accepted(field: &FormField) -> String {
    let kind = match field.r#type {
        FieldType::Text | FieldType::String => "text",
        FieldType::Number => "number",
        FieldType::Boolean => "boolean",
        FieldType::TextArea => "text-area",
    };
    format!("{kind}{}", describe_allowed(field))
}

/// Describes the restrictions of a field other than its type, with a leading comma.
pub fn describe_allowed(field: &FormField) -> String {
    let mut text = String::new();
    if !field.r#enum.is_empty() {
        text.push_str(", one of ");
        text.push_str(&list_values(&field.r#enum, field.r#enum.len()));
    }
    if let Some(pattern) = &field.pattern {
        text.push_str(", pattern ");
        text.push_str(pattern);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_says_what_it_takes() {
        for (field, expected) in [
            (json!({}), "text"),
            (json!({"type": "text-area"}), "text-area"),
            (
                json!({"type": "number", "enum": [1, 3]}),
                "number, one of 1, 3",
            ),
            (
                json!({"enum": ["a", "b c"], "pattern": "^[a-z ]+$"}),
                "text, one of a, \"b c\", pattern ^[a-z ]+$",
            ),
        ] {
            let mut field = field;
            field["internalName"] = json!("a");
            let field = serde_json::from_value(field).unwrap();
            assert_eq!(describe_accepted(&field), expected);
        }
    }
}
