//! Credentials of sources: typed Secrets in the namespace of the catalogue (semantics 16).
//!
//! Credentials are never printed (Debug shows the name of the Secret), never cached, and only sent to the
//! hosts that the Secret names.

use std::collections::BTreeMap;
use std::fmt;

use common::api::names::{ANNOTATION_ALLOWED_HOSTS, SECRET_TYPE_OBJECT_STORE};
use common::manifest::digest::sha256;
use k8s_openapi::api::core::v1::Secret;

use super::host;

/// The content of one Secret.
#[derive(Clone)]
pub struct Credentials {
    /// The credentials themselves.
    pub proof: Proof,
    /// Certificate authorities in PEM format (key `ca.crt`) that replace those of the machine.
    pub ca: Option<Vec<u8>>,
    /// `NAMESPACE/NAME` of the Secret.
    pub secret: String,
    hosts: Vec<String>,
}

/// Credentials by the type of the Secret.
#[derive(Clone)]
pub enum Proof {
    /// `kubernetes.io/basic-auth`. A token is the password of any user name.
    Basic {
        /// `username`; may be empty.
        username: String,
        /// `password`.
        password: String,
    },
    /// `kubernetes.io/ssh-auth` with key `known_hosts`.
    Ssh {
        /// `ssh-privatekey`.
        private_key: Vec<u8>,
        /// `known_hosts`.
        known_hosts: Vec<u8>,
    },
    /// `kubernetes.io/dockerconfigjson`.
    Docker {
        /// `.dockerconfigjson`.
        config: Vec<u8>,
    },
    /// `kubectl-addons.dev/object-store`: options of an object store, named like the environment variables of
    /// its tools (`AWS_ACCESS_KEY_ID`, `GOOGLE_SERVICE_ACCOUNT_KEY`, `AZURE_STORAGE_ACCOUNT_KEY`, …).
    ObjectStore {
        /// The options.
        options: BTreeMap<String, String>,
    },
}

/// Why a Secret cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// No source supports this type of Secret.
    #[error(
        "Secret {secret} is of type {found}; credentials are kubernetes.io/basic-auth, kubernetes.io/ssh-auth, \
         kubernetes.io/dockerconfigjson or {SECRET_TYPE_OBJECT_STORE}"
    )]
    Type {
        /// The Secret.
        secret: String,
        /// The type of the Secret.
        found: String,
    },
    /// A key that the type requires is missing.
    #[error("Secret {secret} has no key {key}, which {kind} needs")]
    Missing {
        /// The Secret.
        secret: String,
        /// The key.
        key: &'static str,
        /// The type.
        kind: &'static str,
    },
    /// The value of a key is not text.
    #[error("Secret {secret}: key {key} is not UTF-8 text")]
    NotText {
        /// The Secret.
        secret: String,
        /// The key.
        key: String,
    },
    /// The Secret does not name the host.
    #[error("Secret {secret} may not be sent to {host}: {why}")]
    Host {
        /// The Secret.
        secret: String,
        /// The name of the Secret.
        secret_name: String,
        /// The namespace of the Secret.
        namespace: String,
        /// The host.
        host: String,
        /// What the annotation of the Secret says.
        why: String,
    },
    /// The connection has no TLS, so others on the network could read the credentials.
    #[error(
        "Secret {secret} is not sent to {host} over plain HTTP; use https://, and for a registry leave out plainHTTP"
    )]
    Plain {
        /// The Secret.
        secret: String,
        /// The host.
        host: String,
    },
    /// The type of the Secret does not fit the kind of source.
    #[error(
        "Secret {secret} has a type that cannot be used for {source_kind}, which takes {wanted}"
    )]
    Mismatch {
        /// The Secret.
        secret: String,
        /// `git over https`, `an image`, …
        source_kind: &'static str,
        /// The types that fit.
        wanted: &'static str,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.secret)
    }
}

impl Credentials {
    /// Reads a Secret.
    ///
    /// # Errors
    /// An unsupported type, a missing key, or a key that is not text.
    pub fn read(secret: &Secret) -> Result<Self, CredentialsError> {
        let metadata = &secret.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let name = format!("{}/{}", text(&metadata.namespace), text(&metadata.name));
        let data = |key: &str| {
            let data = secret.data.as_ref().and_then(|data| data.get(key));
            data.map(|bytes| bytes.0.clone())
        };
        let need = |key: &'static str, kind: &'static str| {
            data(key).ok_or_else(|| CredentialsError::Missing {
                secret: name.clone(),
                key,
                kind,
            })
        };
        let as_text = |key: &str, bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|_| CredentialsError::NotText {
                secret: name.clone(),
                key: key.to_owned(),
            })
        };
        let proof = match secret.type_.as_deref().unwrap_or("Opaque") {
            "kubernetes.io/basic-auth" => Proof::Basic {
                username: as_text("username", data("username").unwrap_or_default())?,
                password: as_text("password", need("password", "kubernetes.io/basic-auth")?)?,
            },
            "kubernetes.io/ssh-auth" => Proof::Ssh {
                private_key: need("ssh-privatekey", "kubernetes.io/ssh-auth")?,
                known_hosts: need("known_hosts", "kubernetes.io/ssh-auth")?,
            },
            "kubernetes.io/dockerconfigjson" => Proof::Docker {
                config: need(".dockerconfigjson", "kubernetes.io/dockerconfigjson")?,
            },
            SECRET_TYPE_OBJECT_STORE => {
                let mut options = BTreeMap::new();
                for (key, bytes) in secret.data.iter().flatten() {
                    if key != "ca.crt" {
                        options.insert(key.clone(), as_text(key, bytes.0.clone())?);
                    }
                }
                Proof::ObjectStore { options }
            }
            found => {
                return Err(CredentialsError::Type {
                    secret: name,
                    found: found.to_owned(),
                });
            }
        };
        let annotations = metadata.annotations.as_ref();
        let hosts = annotations
            .and_then(|annotations| annotations.get(ANNOTATION_ALLOWED_HOSTS))
            .map(String::as_str)
            .unwrap_or_default();
        Ok(Self {
            proof,
            ca: data("ca.crt"),
            secret: name,
            hosts: hosts
                .split([',', ' '])
                .filter(|host| !host.is_empty())
                .map(str::to_ascii_lowercase)
                .collect(),
        })
    }

    /// Identifies the credentials in cache keys. Secrets of the same name in two clusters, with other content
    /// or with other certificate authorities have different identities. Only a hash of the content is written
    /// to disk.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut parts: Vec<&[u8]> = Vec::new();
        match &self.proof {
            Proof::Basic { username, password } => {
                parts.extend([username.as_bytes(), password.as_bytes()]);
            }
            Proof::Ssh {
                private_key,
                known_hosts,
            } => parts.extend([private_key.as_slice(), known_hosts]),
            Proof::Docker { config } => parts.push(config),
            Proof::ObjectStore { options } => {
                for (name, value) in options {
                    parts.extend([name.as_bytes(), value.as_bytes()]);
                }
            }
        }
        if let Some(ca) = &self.ca {
            parts.extend([b"ca.crt".as_slice(), ca]);
        }
        let mut all = Vec::new();
        for part in parts {
            all.extend((part.len() as u64).to_be_bytes());
            all.extend(part);
        }
        format!("{} {}", self.secret, sha256(&all))
    }

    /// The user name and password. `None` if both are empty: such a Secret only has a certificate authority,
    /// and requests are sent without credentials.
    #[must_use]
    pub fn account(&self) -> Option<(&str, &str)> {
        match &self.proof {
            Proof::Basic { username, password } if username.is_empty() && password.is_empty() => {
                None
            }
            Proof::Basic { username, password } => Some((username, password)),
            Proof::Ssh { .. } | Proof::Docker { .. } | Proof::ObjectStore { .. } => None,
        }
    }

    /// Checks that the credentials may be sent to `host`: `HOST`, `HOST:PORT`, or `s3://BUCKET` for an object
    /// store. A host in the annotation without a port allows all of its ports. Without `tls`, credentials are
    /// only sent to this machine; empty ones may be sent anywhere.
    ///
    /// # Errors
    /// [`CredentialsError::Plain`], [`CredentialsError::Host`].
    pub fn check(&self, host: &str, tls: bool) -> Result<(), CredentialsError> {
        let wanted = host.to_ascii_lowercase();
        let name = host::without_port(&wanted);
        let is_empty = matches!(self.proof, Proof::Basic { .. }) && self.account().is_none();
        if !tls && !is_empty && !host::is_loopback(name) {
            return Err(CredentialsError::Plain {
                secret: self.secret.clone(),
                host: host.to_owned(),
            });
        }
        if self.hosts.contains(&wanted) || self.hosts.iter().any(|allowed| allowed == name) {
            return Ok(());
        }
        let (namespace, secret_name) = self.secret.split_once('/').unwrap_or_default();
        Err(CredentialsError::Host {
            secret: self.secret.clone(),
            secret_name: secret_name.to_owned(),
            namespace: namespace.to_owned(),
            host: host.to_owned(),
            why: match self.hosts.as_slice() {
                [] => format!("it has no annotation {ANNOTATION_ALLOWED_HOSTS}"),
                hosts => format!(
                    "its annotation {ANNOTATION_ALLOWED_HOSTS} names {}",
                    hosts.join(", ")
                ),
            },
        })
    }

    /// Returns the error for a Secret whose type does not fit: `source_kind` takes `wanted`.
    pub fn mismatch(&self, source_kind: &'static str, wanted: &'static str) -> CredentialsError {
        CredentialsError::Mismatch {
            secret: self.secret.clone(),
            source_kind,
            wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A server that another authority vouches for may be someone else's.
    #[test]
    fn identities_differ_by_certificate_authority() {
        let of = |ca: Option<&str>| {
            let data = json!({"password": "", "ca.crt": ca});
            let data = data.as_object().cloned().unwrap_or_default().into_iter();
            let data: serde_json::Map<_, _> = data.filter(|(_, value)| !value.is_null()).collect();
            let secret = json!({"type": "kubernetes.io/basic-auth", "data": data});
            let secret = serde_json::from_value(secret).unwrap();
            Credentials::read(&secret).unwrap().identity()
        };
        assert_ne!(of(Some("QQ==")), of(Some("Qg==")));
        assert_ne!(of(Some("QQ==")), of(None));
        assert_eq!(of(Some("QQ==")), of(Some("QQ==")));
    }
}
