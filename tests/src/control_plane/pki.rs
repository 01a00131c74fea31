//! Certificates and kubeconfigs of a control plane.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

/// The certificate authority of one cluster.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's certificate.
    pub certificate: String,
}

/// A certificate with its key, both PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS 8.
    pub key: String,
}

/// Somebody whom the API server knows by a client certificate.
#[derive(Clone, Debug)]
pub struct User {
    /// The name (CN).
    pub name: String,
    /// The certificate.
    pub pair: Pair,
    /// A kubeconfig file with that certificate.
    pub kubeconfig: PathBuf,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// Of the cryptography.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// A serving certificate for host names and addresses.
    ///
    /// # Errors
    /// For a name that no certificate can hold.
    pub fn serving(&self, name: &str, hosts: &[&str]) -> Result<Pair> {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A client certificate: CN is the user, each O a group.
    ///
    /// # Errors
    /// For more than two groups, which rcgen's names cannot hold.
    pub fn client(&self, name: &str, groups: &[&str]) -> Result<Pair> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        // rcgen keeps one value a type; the same OID spelled out is another type to it.
        let organization = [
            DnType::OrganizationName,
            DnType::CustomDnType(vec![2, 5, 4, 10]),
        ];
        if groups.len() > organization.len() {
            bail!(
                "user {name}: a client certificate of the test authority holds at most two groups"
            );
        }
        for (kind, &group) in organization.into_iter().zip(groups) {
            params.distinguished_name.push(kind, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        Ok(Pair {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl Pair {
    /// Writes `NAME.crt` and `NAME.key` into a folder.
    ///
    /// # Errors
    /// Of the file system.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        for (extension, content) in [("crt", &self.certificate), ("key", &self.key)] {
            let path = folder.join(format!("{name}.{extension}"));
            fs::write(&path, content).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// How a client proves who it is.
pub enum Credentials<'a> {
    /// A client certificate.
    Certificate(&'a Pair),
    /// A bearer token.
    Token(&'a str),
}

/// A kubeconfig with one cluster, one user and one context.
///
/// # Errors
/// Where the file cannot be written.
pub fn write_kubeconfig(
    path: &Path,
    server: &str,
    authority: &str,
    credentials: &Credentials<'_>,
) -> Result<()> {
    let user = match credentials {
        Credentials::Certificate(pair) => json!({
            "client-certificate-data": base64(&pair.certificate),
            "client-key-data": base64(&pair.key),
        }),
        Credentials::Token(token) => json!({ "token": token }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": server,
            "certificate-authority-data": base64(authority),
        }}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    // JSON is YAML.
    fs::write(path, format!("{config:#}\n")).with_context(|| path.display().to_string())
}

/// Standard base64, as kubeconfigs and webhook configurations hold PEM.
#[must_use]
pub fn base64(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}
