//! Recognises values that look like secrets by their names, before they are stored where more people may read them (semantics 12.12).

use serde_json::Value;

/// Parts of names that hold secrets, in lower case and without separators.
const SECRET_NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
];
/// Ends of names that refer to a secret, or say where it is, and do not hold it.
const REFERENCE_ENDS: [&str; 7] = ["name", "ref", "file", "path", "key", "ttl", "url"];
/// Ends of names that hold a secret although they end like a reference.
const SECRET_KEYS: [&str; 4] = ["apikey", "accesskey", "privatekey", "secretkey"];
/// The text of a private key in PEM.
const PEM: &str = "PRIVATE KEY-----";

/// Returns the paths of texts that look like secrets.
#[must_use]
pub fn find_secrets(values: &Value) -> Vec<String> {
    let mut found = Vec::new();
    search("", "", values, &mut found);
    found
}

/// `name` is the name that `value` has: its key, or that of the list or environment variable that it is in.
fn search(path: &str, name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            // A list of variables names each of them in a field of its own.
            let variable = fields.get("name").and_then(Value::as_str);
            for (key, value) in fields {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                let name = match (key.as_str(), variable) {
                    ("value", Some(variable)) => variable,
                    _ => key,
                };
                search(&path, name, value, found);
            }
        }
        Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                search(&format!("{path}[{index}]"), name, value, found);
            }
        }
        Value::String(text) if text.contains(PEM) || (!text.is_empty() && is_secret(name)) => {
            found.push(path.to_owned());
        }
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    let refers =
        name.starts_with("existing") || REFERENCE_ENDS.iter().any(|end| name.ends_with(end));
    let holds = SECRET_KEYS.iter().any(|end| name.ends_with(end)) && !name.starts_with("existing");
    (holds || !refers) && SECRET_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_whose_name_says_so_are_secrets() {
        let values = json!({
            "adminPassword": "hunter2",
            "auth": {"api-key": "k", "token": "", "existingSecret": "db", "secretName": "db"},
            "automountServiceAccountToken": true,
            "env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "COLOUR", "value": "blue"}],
            "existingSecretPasswordKey": "password",
            "image": {"tag": "1"},
            "passwordSecretRef": {"name": "db", "key": "password"},
            "s3": {"secretKey": "k", "secretAccessKey": "k", "passwordFile": "/run/p"},
            "tls": {"key": "-----BEGIN RSA PRIVATE KEY-----\nMII", "crt": "-----BEGIN CERTIFICATE-----"},
            "tokens": ["a", "b"],
        });
        assert_eq!(
            find_secrets(&values),
            [
                "adminPassword",
                "auth.api-key",
                "env[0].value",
                "s3.secretAccessKey",
                "s3.secretKey",
                "tls.key",
                "tokens[0]",
                "tokens[1]",
            ]
        );
    }
}
