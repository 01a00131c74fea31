//! Limits who may connect to clients with a certificate of one of the given authorities and with one of the given names. The API server
//! presents a certificate if its AdmissionConfiguration says so.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, bail};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// Verifies clients by the authorities that were in the file when it was last read.
#[derive(Debug)]
pub struct Clients {
    path: PathBuf,
    names: Vec<String>,
    current: RwLock<CurrentAuthorities>,
}

#[derive(Debug)]
struct CurrentAuthorities {
    pem: Vec<u8>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Clients {
    /// Reads the authorities. `names`: the common names or DNS names of accepted certificates.
    ///
    /// # Errors
    /// The file cannot be read or contains no authority.
    pub fn new(path: &Path, names: Vec<String>) -> anyhow::Result<Arc<Self>> {
        let current = CurrentAuthorities::from_pem(path, read(path)?)?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            names,
            current: RwLock::new(current),
        }))
    }

    /// Reads the file again. Returns whether its authorities changed, so that new connections are verified by other ones.
    ///
    /// # Errors
    /// As [`Clients::new`]; the authorities stay as they are.
    pub fn poll(&self) -> anyhow::Result<bool> {
        let pem = read(&self.path)?;
        if self.read(|current| current.pem == pem) {
            return Ok(false);
        }
        let current = CurrentAuthorities::from_pem(&self.path, pem)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(true)
    }

    fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        self.read(|current| Arc::clone(&current.verifier))
    }

    fn read<T>(&self, read: impl FnOnce(&CurrentAuthorities) -> T) -> T {
        read(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether a certificate has one of the names.
    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = Certificate::from_der(certificate) else {
            return false;
        };
        let is_ours = |name: &str| self.names.iter().any(|ours| ours == name);
        let tbs = &certificate.tbs_certificate;
        let mut subject = tbs.subject.0.iter().flat_map(|part| part.0.iter());
        let alternative = tbs.get::<SubjectAltName>().ok().flatten();
        let mut alternative = alternative.iter().flat_map(|(_, names)| &names.0);
        subject.any(|attribute| common_name(attribute).is_some_and(is_ours))
            || alternative
                .any(|name| matches!(name, GeneralName::DnsName(name) if is_ours(name.as_str())))
    }
}

/// Returns the text of an attribute that is a common name.
fn common_name(attribute: &AttributeTypeAndValue) -> Option<&str> {
    if attribute.oid != COMMON_NAME {
        return None;
    }
    let value = &attribute.value;
    let text = value
        .decode_as::<Utf8StringRef<'_>>()
        .map(|text| text.as_str());
    let printable = || {
        value
            .decode_as::<PrintableStringRef<'_>>()
            .map(|text| text.as_str())
    };
    text.or_else(|_| printable()).ok()
}

impl CurrentAuthorities {
    fn from_pem(path: &Path, pem: Vec<u8>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate =
                certificate.with_context(|| format!("{} holds no readable PEM", path.display()))?;
            roots
                .add(certificate)
                .with_context(|| format!("an authority of {} cannot be used", path.display()))?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .with_context(|| format!("{} holds no usable authority", path.display()))?;
        Ok(Self { pem, verifier })
    }
}

impl ClientCertVerifier for Clients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // The authorities change while this is borrowed, and without a hint clients send the certificate that they have.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .verifier()
            .verify_client_cert(end_entity, intermediates, now)?;
        if self.is_named(end_entity) {
            Ok(verified)
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier().supported_verify_schemes()
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(failed)?;
    let mut pem = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut pem)
        .with_context(failed)?;
    if pem.len() as u64 > MAX_FILE {
        bail!("{} is larger than {MAX_FILE} bytes", path.display());
    }
    Ok(pem)
}
