//! The options of an object store, named like the environment variables of its tools.
//!
//! The options come from a Secret or, if the user opened the bucket, from the environment and the profile of
//! the AWS tools, but never from both. Without credentials in the options, requests are not signed. The
//! identity of the machine itself (instance metadata) is never used.

use std::collections::BTreeMap;

use url::Url;

use super::profile;
use crate::SourceAccess;
use crate::credentials::{CredentialsError, Proof};
use crate::platform::{GOOGLE_SETTINGS, HOME};
use crate::reach::{Addresses, UsedAccount, place};
use crate::url::{UrlError, redact_url};

/// The kinds of object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// `s3://`, also for compatible stores of other vendors.
    S3,
    /// `gs://`.
    Google,
    /// `az://`, `azure://`.
    Azure,
}

/// The options of a store.
pub struct StoreOptions {
    /// The options by name.
    pub values: BTreeMap<String, String>,
    /// Whether requests can be signed.
    pub signed: bool,
    /// Whether the endpoint may lack TLS.
    pub allow_http: bool,
    /// Where the options come from.
    pub identity: String,
    /// The reader, as returned by [`SourceAccess::reader`].
    reader: String,
    /// The allowed addresses. The settings of the user can name a local service that provides credentials.
    pub addresses: Addresses,
}

/// The purpose of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionUse {
    Setting,
    /// Credentials that sign requests.
    Proof,
    /// Names a local file or service. Only allowed in the environment.
    Machine,
    MachineProof,
}

use OptionUse::{Machine, MachineProof, Setting};

const S3: &[(&str, OptionUse)] = &[
    ("AWS_ACCESS_KEY_ID", OptionUse::Proof),
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

const GOOGLE: &[(&str, OptionUse)] = &[
    ("GOOGLE_ALLOW_HTTP", Setting),
    ("GOOGLE_BASE_URL", Setting),
    ("GOOGLE_BEARER_TOKEN", OptionUse::Proof),
    ("GOOGLE_SERVICE_ACCOUNT_KEY", OptionUse::Proof),
    ("GOOGLE_SKIP_SIGNATURE", Setting),
    ("GOOGLE_APPLICATION_CREDENTIALS", MachineProof),
    ("GOOGLE_SERVICE_ACCOUNT", MachineProof),
    ("GOOGLE_SERVICE_ACCOUNT_PATH", MachineProof),
];

const AZURE: &[(&str, OptionUse)] = &[
    ("AZURE_ALLOW_HTTP", Setting),
    ("AZURE_AUTHORITY_HOST", Setting),
    ("AZURE_CLIENT_ID", Setting),
    ("AZURE_CLIENT_SECRET", OptionUse::Proof),
    ("AZURE_ENDPOINT", Setting),
    ("AZURE_SKIP_SIGNATURE", Setting),
    ("AZURE_STORAGE_ACCOUNT_KEY", OptionUse::Proof),
    ("AZURE_STORAGE_ACCOUNT_NAME", Setting),
    ("AZURE_STORAGE_ENDPOINT", Setting),
    ("AZURE_STORAGE_SAS_TOKEN", OptionUse::Proof),
    ("AZURE_STORAGE_TOKEN", OptionUse::Proof),
    ("AZURE_TENANT_ID", Setting),
    ("AZURE_FEDERATED_TOKEN_FILE", MachineProof),
];

impl StoreKind {
    /// Returns the kind of store for a URL scheme.
    pub fn from_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Self::S3),
            "gs" => Some(Self::Google),
            "az" | "azure" => Some(Self::Azure),
            _ => None,
        }
    }

    fn known_options(self) -> &'static [(&'static str, OptionUse)] {
        match self {
            Self::S3 => S3,
            Self::Google => GOOGLE,
            Self::Azure => AZURE,
        }
    }
}

impl StoreOptions {
    /// Loads the options for a URL.
    pub fn load(kind: StoreKind, url: &Url, access: &SourceAccess<'_>) -> Result<Self, UrlError> {
        let location = || redact_url(url);
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
                check_secret_options(kind, options)
                    .map_err(|why| setting(format!("{identity}: {why}")))?;
                (options.clone(), identity)
            }
            None if access.reach.opens_bucket(&bucket) => {
                addresses = Addresses::Any;
                let variable = |name: &str| std::env::var(name).ok();
                let values = machine_options(kind, &variable).map_err(setting)?;
                (values, "this machine".to_owned())
            }
            None => (BTreeMap::new(), "no credentials".to_owned()),
        };
        let mut options = Self::read(kind, values, identity);
        options.reader = access.reader(None);
        options.addresses = addresses;
        if options.signed && access.credentials.is_none() {
            access.reach.report_use(UsedAccount::Bucket(bucket));
        }
        if kind == StoreKind::Azure && !options.values.contains_key("AZURE_STORAGE_ACCOUNT_NAME") {
            return Err(setting(
                "set the option AZURE_STORAGE_ACCOUNT_NAME in the Secret or, at a terminal, in the environment; \
                 without credentials use the https:// URL of the object"
                    .to_owned(),
            ));
        }
        Ok(options)
    }

    fn read(kind: StoreKind, mut values: BTreeMap<String, String>, identity: String) -> Self {
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
        let proofs = kind.known_options().iter();
        let mut proofs = proofs.filter(|(_, of)| matches!(of, OptionUse::Proof | MachineProof));
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

    /// Identifies the reader and the store in cache keys, because two stores can have buckets of the same
    /// name.
    pub fn reader_key(&self) -> String {
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

    /// Returns the first line of a text without the values of secret options.
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
        // Truncate last, because a truncated secret would not be recognised.
        line.chars().take(MAX_WORDS).collect()
    }
}

/// The maximum number of characters of a store's error to show.
const MAX_WORDS: usize = 300;

/// Checks that a Secret has only known options and names no local files or services.
fn check_secret_options(kind: StoreKind, options: &BTreeMap<String, String>) -> Result<(), String> {
    let known = kind.known_options().iter();
    let known: Vec<&str> = known
        .filter(|(_, of)| matches!(of, Setting | OptionUse::Proof))
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

/// Reads the options from the environment and from the profile of the AWS tools.
fn machine_options(
    kind: StoreKind,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let known = kind.known_options();
    let mut values: BTreeMap<String, String> = known
        .iter()
        .filter_map(|(name, _)| Some(((*name).to_owned(), set(name)?)))
        .collect();
    let proven = known.iter().any(|(name, of)| {
        matches!(of, OptionUse::Proof | MachineProof) && values.contains_key(*name)
    });
    match kind {
        StoreKind::S3 if !proven => {
            for (name, value) in profile::read(&set)? {
                values.entry(name).or_insert(value);
            }
        }
        // The file in which gcloud stores the credentials of the user.
        StoreKind::Google if !proven => {
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
