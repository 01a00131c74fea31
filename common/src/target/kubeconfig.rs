//! Checks kubeconfigs from Secrets. Anyone who may write the Secret is not the user of this machine or the loop, so a kubeconfig must
//! not reach their files, programs and network: it may hold only data (semantics 6.3).

use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::address::{AddressScope, scope};
use crate::values;

/// The maximum size of a kubeconfig in bytes.
pub const MAX_KUBECONFIG: usize = 256 * 1024;

/// The fields that a cluster may have.
const OF_CLUSTER: &[&str] = &[
    "server",
    "certificate-authority-data",
    "tls-server-name",
    "disable-compression",
    "extensions",
];
/// The fields that a user may have.
const OF_USER: &[&str] = &[
    "token",
    "client-certificate-data",
    "client-key-data",
    "username",
    "password",
    "extensions",
];

/// Why a kubeconfig is not used. Errors repeat nothing of its content except names of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It is too large.
    #[error("it has {0} bytes; a kubeconfig has at most {MAX_KUBECONFIG}")]
    TooLarge(usize),
    /// It is not a map in YAML.
    #[error("it is not YAML with the fields of a kubeconfig")]
    NotYaml,
    /// A field is missing or has another type.
    #[error("{0} is missing, or not what a kubeconfig has there")]
    Missing(&'static str),
    /// A reference names an entry that does not exist.
    #[error("{0} names an entry that is not in it")]
    Dangling(&'static str),
    /// A field refers to something outside of the kubeconfig.
    #[error(
        "{part}.{field} is refused: a kubeconfig in a Secret holds data only, as server, certificate-authority-data, token, \
         client-certificate-data and client-key-data"
    )]
    Refused {
        /// `cluster` or `user`.
        part: &'static str,
        /// The field.
        field: String,
    },
    /// The credentials would be sent unencrypted.
    #[error("cluster.server is not an https URL")]
    NotHttps,
    /// The server is at an address that only the reader's machine may connect to.
    #[error(
        "cluster.server leads to {0}, which is an address of the machine that reads it or of its cloud"
    )]
    Address(IpAddr),
    /// The credentials would appear wherever the server is named.
    #[error("cluster.server contains credentials: move them to the user of the kubeconfig")]
    CredentialsInServer,
}

/// Returns a kubeconfig with only the current context, after checking that it holds only data.
///
/// # Errors
/// [`KubeconfigError`].
pub fn read_kubeconfig(text: &[u8]) -> Result<Value, KubeconfigError> {
    if text.len() > MAX_KUBECONFIG {
        return Err(KubeconfigError::TooLarge(text.len()));
    }
    let whole = values::read(text, "kubeconfig").map_err(|_| KubeconfigError::NotYaml)?;
    let current = whole["current-context"].as_str();
    let current = current.ok_or(KubeconfigError::Missing("current-context"))?;
    let context = find_entry(&whole, "contexts", "context", current)
        .ok_or(KubeconfigError::Dangling("current-context"))?;
    let cluster = context["cluster"].as_str();
    let cluster = cluster.ok_or(KubeconfigError::Missing("context.cluster"))?;
    let user = context["user"].as_str();
    let user = user.ok_or(KubeconfigError::Missing("context.user"))?;
    let cluster = find_entry(&whole, "clusters", "cluster", cluster)
        .ok_or(KubeconfigError::Dangling("context.cluster"))?;
    let user = find_entry(&whole, "users", "user", user)
        .ok_or(KubeconfigError::Dangling("context.user"))?;
    let cluster = allowed_fields(cluster, "cluster", OF_CLUSTER)?;
    let user = allowed_fields(user, "user", OF_USER)?;
    let server = cluster.get("server").and_then(Value::as_str);
    let server = server.ok_or(KubeconfigError::Missing("cluster.server"))?;
    let rest = server.strip_prefix("https://");
    let rest = rest.ok_or(KubeconfigError::NotHttps)?;
    let mut authority = rest.chars().take_while(|c| !matches!(c, '/' | '?' | '#'));
    // Errors name the server, and appear in the status and in Events.
    if authority.any(|c| c == '@') {
        return Err(KubeconfigError::CredentialsInServer);
    }
    let name = "target";
    Ok(serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }))
}

/// Checks an address that the server's name resolves to. `is_near`: the API server with the records is on this machine, too.
///
/// # Errors
/// [`KubeconfigError::Address`].
pub fn check_address(address: IpAddr, is_near: bool) -> Result<(), KubeconfigError> {
    match scope(address) {
        AddressScope::Other => Ok(()),
        AddressScope::Machine if is_near => Ok(()),
        AddressScope::LinkLocal | AddressScope::Metadata | AddressScope::Machine => {
            Err(KubeconfigError::Address(address))
        }
    }
}

/// Returns the named entry of a list, without its name.
fn find_entry<'a>(whole: &'a Value, list: &str, part: &str, name: &str) -> Option<&'a Value> {
    let mut entries = whole[list].as_array()?.iter();
    let found = entries.find(|entry| entry["name"] == name)?;
    found.get(part)
}

/// Returns the fields of a part that are set, if all of them are allowed. Null, false and an empty text count as not set.
fn allowed_fields(
    part: &Value,
    name: &'static str,
    allowed: &[&str],
) -> Result<Map<String, Value>, KubeconfigError> {
    let fields = part.as_object().ok_or(KubeconfigError::Missing(name))?;
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != "";
    let mut kept = Map::new();
    for (field, value) in fields.iter().filter(|(_, value)| is_set(value)) {
        if !allowed.contains(&field.as_str()) {
            return Err(KubeconfigError::Refused {
                part: name,
                field: field.clone(),
            });
        }
        if field != "extensions" {
            kept.insert(field.clone(), value.clone());
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kubeconfig(cluster: Value, user: Value) -> Vec<u8> {
        let whole = json!({
            "current-context": "a@b",
            "contexts": [
                {"name": "other", "context": {"cluster": "none", "user": "none"}},
                {"name": "a@b", "context": {"cluster": "b", "user": "a", "namespace": "x"}},
            ],
            "clusters": [{"name": "b", "cluster": cluster}],
            "users": [{"name": "a", "user": user}],
        });
        whole.to_string().into_bytes()
    }

    fn server() -> Value {
        json!({"server": "https://shop.example:6443", "certificate-authority-data": "QQ=="})
    }

    #[test]
    fn data_is_taken_and_nothing_else() {
        let user = json!({"token": "t", "client-key-data": "", "exec": null, "extensions": []});
        let taken = read_kubeconfig(&kubeconfig(server(), user)).unwrap();
        assert_eq!(taken["clusters"][0]["cluster"], server());
        assert_eq!(taken["users"][0]["user"], json!({"token": "t"}));
        assert_eq!(taken["contexts"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn what_reaches_beyond_it_is_refused_by_name() {
        let on_cluster = [
            ("certificate-authority", json!("/etc/ssl/ca.pem")),
            ("proxy-url", json!("http://10.0.0.1")),
            ("insecure-skip-tls-verify", json!(true)),
            ("a-later-field", json!("x")),
        ];
        for (field, value) in on_cluster {
            let mut cluster = server();
            cluster[field] = value;
            let refused = read_kubeconfig(&kubeconfig(cluster, json!({"token": "t"}))).unwrap_err();
            let expected = KubeconfigError::Refused {
                part: "cluster",
                field: field.to_owned(),
            };
            assert_eq!(refused, expected);
        }
        let on_user = [
            ("exec", json!({"command": "sh"})),
            ("auth-provider", json!({"name": "oidc"})),
            ("tokenFile", json!("/etc/token")),
            ("client-certificate", json!("/etc/tls.crt")),
            ("client-key", json!("/etc/tls.key")),
            ("as", json!("admin")),
            ("as-groups", json!(["system:masters"])),
            ("as-uid", json!("1")),
            ("as-user-extra", json!({"a": ["b"]})),
        ];
        for (field, value) in on_user {
            let mut user = json!({"token": "secret-token"});
            user[field] = value;
            let refused = read_kubeconfig(&kubeconfig(server(), user)).unwrap_err();
            assert_eq!(
                refused,
                KubeconfigError::Refused {
                    part: "user",
                    field: field.to_owned()
                }
            );
            assert!(!refused.to_string().contains("secret-token"));
        }
    }

    #[test]
    fn servers_are_other_machines() {
        for (address, near, far) in [
            ("10.0.0.1", true, true),
            ("127.0.0.1", true, false),
            ("::1", true, false),
            ("169.254.169.254", false, false),
            ("100.100.100.200", false, false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            for (is_near, expected) in [(true, near), (false, far)] {
                let found = check_address(address, is_near);
                assert_eq!(found.is_ok(), expected, "{address} {is_near}");
            }
        }
    }

    #[test]
    fn what_is_no_kubeconfig_is_told() {
        let token = json!({"token": "t"});
        let plain = json!({"server": "http://shop.example"});
        let with_password = json!({"server": "https://admin:hunter2@shop.example:6443/a"});
        let with_user = json!({"server": "https://hunter2@shop.example"});
        let huge = vec![b'#'; MAX_KUBECONFIG + 1];
        for (text, expected) in [
            (huge, KubeconfigError::TooLarge(MAX_KUBECONFIG + 1)),
            (b"a: [".to_vec(), KubeconfigError::NotYaml),
            (vec![0xff], KubeconfigError::NotYaml),
            (b"{}".to_vec(), KubeconfigError::Missing("current-context")),
            (
                b"current-context: x".to_vec(),
                KubeconfigError::Dangling("current-context"),
            ),
            (kubeconfig(plain, token.clone()), KubeconfigError::NotHttps),
            (
                kubeconfig(with_password, token.clone()),
                KubeconfigError::CredentialsInServer,
            ),
            (
                kubeconfig(with_user, token.clone()),
                KubeconfigError::CredentialsInServer,
            ),
            (
                kubeconfig(json!({}), token),
                KubeconfigError::Missing("cluster.server"),
            ),
            (
                kubeconfig(server(), json!("x")),
                KubeconfigError::Missing("user"),
            ),
        ] {
            assert_eq!(read_kubeconfig(&text), Err(expected));
        }
        let path = json!({"server": "https://rancher.example/k8s/c@1"});
        assert!(read_kubeconfig(&kubeconfig(path, json!({"token": "t"}))).is_ok());
    }
}
