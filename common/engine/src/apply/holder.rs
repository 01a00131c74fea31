//! The manager of a field that we want.

use std::fmt;

use serde_json::Value;

/// The manager of a field as the server names it: `conflict with "kubectl" with subresource "scale" using apps/v1`.
pub(super) struct FieldHolder {
    manager: String,
    subresource: String,
}

impl FieldHolder {
    /// Parses the server's message.
    pub(super) fn parse(message: &str) -> Self {
        let after = |words: &str| {
            let (_, rest) = message.split_once(words)?;
            // It is a string literal of Go; JSON's syntax is close enough.
            let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            texts.next()?.ok()
        };
        Self {
            manager: after("conflict with ").unwrap_or_else(|| message.to_owned()),
            subresource: after(" with subresource ").unwrap_or_default(),
        }
    }

    /// Returns when this manager last wrote.
    pub(super) fn last_write(&self, live: &Value) -> Option<String> {
        let entries = live.pointer("/metadata/managedFields")?.as_array()?;
        let text = |entry: &Value, name: &str| {
            let text = entry.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let mut times: Vec<String> = entries
            .iter()
            .filter(|entry| {
                text(entry, "manager") == self.manager
                    && text(entry, "subresource") == self.subresource
            })
            .map(|entry| text(entry, "time"))
            .filter(|time| !time.is_empty())
            .collect();
        // RFC 3339 in UTC sorts by time.
        times.sort();
        times.pop()
    }
}

impl fmt::Display for FieldHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Messages of kube-apiserver 1.36.3: managers that apply have no version.
    #[test]
    fn the_server_names_manager_and_subresource() {
        let live = json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "operation": "Update", "subresource": "scale"},
            {"manager": "a \"b\"", "operation": "Apply", "time": "2026-11-21T12:00:00Z"},
            {"manager": "a \"b\"", "operation": "Update", "time": "2026-11-21T12:34:56Z"},
        ]}});
        let written = Some("2026-11-21T12:34:56Z".to_owned());
        for (message, shown, time) in [
            (
                "conflict with \"kubectl\" with subresource \"scale\" using apps/v1",
                "kubectl/scale",
                None,
            ),
            ("conflict with \"a \\\"b\\\"\"", "a \"b\"", written),
            ("conflict with \"nobody\" using v1", "nobody", None),
            ("other words", "other words", None),
        ] {
            let holder = FieldHolder::parse(message);
            assert_eq!(
                (holder.to_string().as_str(), holder.last_write(&live)),
                (shown, time)
            );
        }
    }
}
