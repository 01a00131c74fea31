//! The options of an object store, by the names that its own tools use in the environment.
//!
//! They come from a Secret, else, for the user of this machine, from the environment and the profile of the AWS tools; never
//! from both. Without any proof among them requests are not signed. The identity of the machine itself (instance metadata) is
//! never used.

use std::collections::BTreeMap;

use url::Url;

use super::profile;
use crate::Access;
use crate::credentials::{CredentialsError, Proof};
use crate::platform::{GOOGLE_SETTINGS, HOME};
use crate::reach::{Addresses, Used, place};
use crate::url::{UrlError, shown};

/// The kinds of object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `s3://`, also of other vendors.
    S3,
    /// `gs://`.
    Google,
    /// `az://`, `azure://`.
    Azure,
}

/// The options of one store.
pub struct Options {
    /// By name.
    pub values: BTreeMap<String, String>,
    /// Whether requests can be signed.
    pub signed: bool,
    /// Whether the endpoint may lack TLS.
    pub allow_http: bool,
    /// Where they come from.
    pub identity: String,
    /// [`Access::reader`]
    reader: String,
    /// Where requests may lead: the settings of the user may name a service of their machine that gives credentials.
    pub addresses: Addresses,
}

/// What an option is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Setting,
    /// Requests are signed with it.
    Proof,
    /// Only from the environment: it names a file or a service of this machine.
    Machine,
    MachineProof,
}

use Use::{Machine, MachineProof, Setting};

const S3: &[(&str, Use)] = &[
    ("AWS_ACCESS_KEY_ID", Use::Proof),
    ("AWS_ALLOW_HTTP", Setting),
    ("AWS_DEFAULT_REGION", Setting),
    ("AWS_ENDPOINT", Setting),
    ("AWS_ENDPOINT_URL", Setting),
    ("AWS_ENDPOINT_URL_S3", Setting),
    ("AWS_REGION", Setting),
    ("AWS_REQUEST_PAYER", Setting),
    ("AWS_SECRET_ACCESS_KEY", Setting),
    ("AWS_SESSION_TOKEN", Setting),
    ("AWS_SKIP_SIGNATURE", Setting),
    ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", Setting),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", Machine),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", MachineProof),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", MachineProof),
    ("AWS_ENDPOINT_URL_STS", Machine),
    ("AWS_ROLE_ARN", Machine),
    ("AWS_ROLE_SESSION_NAME", Machine),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", MachineProof),
];

const GOOGLE: &[(&str, Use)] = &[
    ("GOOGLE_ALLOW_HTTP", Setting),
    ("GOOGLE_BASE_URL", Setting),
    ("GOOGLE_BEARER_TOKEN", Use::Proof),
    ("GOOGLE_SERVICE_ACCOUNT_KEY", Use::Proof),
    ("GOOGLE_SKIP_SIGNATURE", Setting),
    ("GOOGLE_APPLICATION_CREDENTIALS", MachineProof),
    ("GOOGLE_SERVICE_ACCOUNT", MachineProof),
    ("GOOGLE_SERVICE_ACCOUNT_PATH", MachineProof),
];

const AZURE: &[(&str, Use)] = &[
    ("AZURE_ALLOW_HTTP", Setting),
    ("AZURE_AUTHORITY_HOST", Setting),
    ("AZURE_CLIENT_ID", Setting),
    ("AZURE_CLIENT_SECRET", Use::Proof),
    ("AZURE_ENDPOINT", Setting),
    ("AZURE_SKIP_SIGNATURE", Setting),
    ("AZURE_STORAGE_ACCOUNT_KEY", Use::Proof),
    ("AZURE_STORAGE_ACCOUNT_NAME", Setting),
    ("AZURE_STORAGE_ENDPOINT", Setting),
    ("AZURE_STORAGE_SAS_TOKEN", Use::Proof),
    ("AZURE_STORAGE_TOKEN", Use::Proof),
    ("AZURE_TENANT_ID", Setting),
    ("AZURE_FEDERATED_TOKEN_FILE", MachineProof),
];

impl Kind {
    /// The store of a scheme.
    pub fn of(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Self::S3),
            "gs" => Some(Self::Google),
            "az" | "azure" => Some(Self::Azure),
            _ => None,
        }
    }

    fn known(self) -> &'static [(&'static str, Use)] {
        match self {
            Self::S3 => S3,
            Self::Google => GOOGLE,
            Self::Azure => AZURE,
        }
    }
}

impl Options {
    /// The options for a URL.
    pub fn of(kind: Kind, url: &Url, access: &Access<'_>) -> Result<Self, UrlError> {
        let location = || shown(url);
        let setting = |why| UrlError::Setting {
            location: location(),
            why,
        };
        let bucket = place::bucket(url).unwrap_or_default();
        let mut addresses = access.reach.addresses();
        let (values, identity) = match access.credentials {
            Some(credentials) => {
                let wrong = |source: CredentialsError| UrlError::Secret {
                    location: location(),
                    source: Box::new(source),
                };
                let Proof::ObjectStore { options } = &credentials.proof else {
                    let wanted = common::api::names::SECRET_TYPE_OBJECT_STORE;
                    return Err(wrong(credentials.mismatch("an object store", wanted)));
                };
                let named = url.host_str().unwrap_or_default();
                let named = format!("{}://{named}", url.scheme());
                credentials.check(&named, true).map_err(wrong)?;
                let identity = format!("Secret {}", credentials.secret);
                of_secret(kind, options).map_err(|why| setting(format!("{identity}: {why}")))?;
                (options.clone(), identity)
            }
            None if access.reach.opens_bucket(&bucket) => {
                addresses = Addresses::Any;
                let variable = |name: &str| std::env::var(name).ok();
                let values = of_machine(kind, &variable).map_err(setting)?;
                (values, "this machine".to_owned())
            }
            None => (BTreeMap::new(), "no credentials".to_owned()),
        };
        let mut options = Self::read(kind, values, identity);
        options.reader = access.reader(None);
        options.addresses = addresses;
        if options.signed && access.credentials.is_none() {
            access.reach.tell(Used::Bucket(bucket));
        }
        if kind == Kind::Azure && !options.values.contains_key("AZURE_STORAGE_ACCOUNT_NAME") {
            return Err(setting(
                "set the option AZURE_STORAGE_ACCOUNT_NAME in the Secret or, at a terminal, in the environment; \
                 without credentials use the https:// URL of the object"
                    .to_owned(),
            ));
        }
        Ok(options)
    }

    fn read(kind: Kind, mut values: BTreeMap<String, String>, identity: String) -> Self {
        let mut switch = |ending: &str| {
            let name = values.keys().find(|name| name.ends_with(ending)).cloned();
            let value = name.and_then(|name| values.remove(&name));
            value.is_some_and(|value| {
                matches!(
                    value.to_ascii_lowercase().as_str(),
                    "1" | "true" | "yes" | "on"
                )
            })
        };
        let allow_http = switch("_ALLOW_HTTP");
        let unsigned = switch("_SKIP_SIGNATURE");
        let proofs = kind.known().iter();
        let mut proofs = proofs.filter(|(_, of)| matches!(of, Use::Proof | MachineProof));
        let signed = !unsigned && proofs.any(|(name, _)| values.contains_key(*name));
        Self {
            signed,
            values,
            allow_http,
            identity,
            reader: String::new(),
            addresses: Addresses::OtherMachines,
        }
    }

    /// Who reads an object, and in which store: two stores may have a bucket of one name.
    pub fn seen_by(&self) -> String {
        let mut seen = format!("{} {}", self.identity, self.reader);
        for (name, value) in &self.values {
            if ["ACCOUNT_NAME", "BASE_URL", "ENDPOINT"]
                .iter()
                .any(|word| name.contains(word))
            {
                seen.extend([" ", name, "=", value]);
            }
        }
        seen
    }

    /// The first line of a text, without the values of secret options.
    pub fn without_secrets(&self, text: &str) -> String {
        let secrets = self.values.iter().filter(|(name, value)| {
            !value.is_empty()
                && ["KEY", "SECRET", "TOKEN"]
                    .iter()
                    .any(|word| name.contains(word))
        });
        let line = text.lines().next().unwrap_or_default();
        let line = secrets.fold(line.to_owned(), |line, (name, value)| {
            line.replace(value.as_str(), &format!("[{name}]"))
        });
        // Cut only now: half of a secret is still secret.
        line.chars().take(MAX_WORDS).collect()
    }
}

/// Characters of a store's error that are shown.
const MAX_WORDS: usize = 300;

/// A Secret may not name files or services of this machine.
fn of_secret(kind: Kind, options: &BTreeMap<String, String>) -> Result<(), String> {
    let known = kind.known().iter();
    let known: Vec<&str> = known
        .filter(|(_, of)| matches!(of, Setting | Use::Proof))
        .map(|(name, _)| *name)
        .collect();
    match options.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => Err(format!(
            "key {unknown} is not a known option; use {}",
            known.join(", ")
        )),
    }
}

/// The options from the environment and from the profile of the AWS tools.
fn of_machine(
    kind: Kind,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let known = kind.known();
    let mut values: BTreeMap<String, String> = known
        .iter()
        .filter_map(|(name, _)| Some(((*name).to_owned(), set(name)?)))
        .collect();
    let proven = known
        .iter()
        .any(|(name, of)| matches!(of, Use::Proof | MachineProof) && values.contains_key(*name));
    match kind {
        Kind::S3 if !proven => {
            for (name, value) in profile::read(&set)? {
                values.entry(name).or_insert(value);
            }
        }
        // Where gcloud keeps the user's credentials.
        Kind::Google if !proven => {
            let file = set(HOME).map(|home| {
                format!("{home}/{GOOGLE_SETTINGS}/application_default_credentials.json")
            });
            if let Some(file) = file.filter(|file| std::path::Path::new(file).is_file()) {
                values.insert("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), file);
            }
        }
        _ => {}
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
