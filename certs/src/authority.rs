//! Our own authority, and the serving certificates that it signs.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

/// How far before its issue a certificate is valid: clocks of API servers differ.
const BACKDATED: Duration = Duration::from_secs(300);

/// An authority that signs serving certificates. Its key exists only as long as this value, unless the caller keeps it.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

/// A certificate with its key, both PEM. Debug shows neither.
pub struct Issued {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS #8).
    pub key_pem: String,
}

/// A certificate could not be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// No name was given.
    #[error("a serving certificate needs a DNS name or an IP address")]
    NoName,
    /// `now` is before 1970, or the end of the validity after what a certificate can express.
    #[error("a certificate cannot be valid from {from} for {lifetime:?}")]
    Dates {
        /// Begin.
        from: Timestamp,
        /// Lifetime.
        lifetime: Duration,
    },
    /// The key could not be generated or the certificate not signed.
    #[error("the certificate for {subject} could not be issued")]
    Sign {
        /// Common name or first name.
        subject: String,
        /// The message of the library.
        source: rcgen::Error,
    },
}

impl Authority {
    /// A new self-signed authority with a new key, valid from five minutes before `now` for `lifetime`.
    ///
    /// # Errors
    /// [`IssueError`] where no key can be generated, or the dates cannot be expressed.
    pub fn new(common_name: &str, now: Timestamp, lifetime: Duration) -> Result<Self, IssueError> {
        let failed = |source| IssueError::Sign {
            subject: common_name.to_owned(),
            source,
        };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = params(common_name, now, lifetime)?;
        // No intermediate authorities: this one signs leaves only.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The authority's certificate, PEM, for `caBundle`.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Its private key (PKCS #8), PEM, for an authority that others keep and sign with.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A serving certificate for `names` (DNS names or IP addresses) with a new key.
    ///
    /// The API server dials `SERVICE.NAMESPACE.svc` and reads only the subject alternative names.
    ///
    /// # Errors
    /// [`IssueError`] where there is no name, a name is not valid, no key can be generated or the dates cannot be expressed.
    pub fn issue(
        &self,
        names: &[&str],
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Issued, IssueError> {
        let Some(&subject) = names.first() else {
            return Err(IssueError::NoName);
        };
        let failed = |source| IssueError::Sign {
            subject: subject.to_owned(),
            source,
        };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = params(subject, now, lifetime)?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        params.subject_alt_names = CertificateParams::new(names)
            .map_err(failed)?
            .subject_alt_names;
        params.use_authority_key_identifier_extension = true;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Issued {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

/// Subject and dates.
fn params(
    common_name: &str,
    now: Timestamp,
    lifetime: Duration,
) -> Result<CertificateParams, IssueError> {
    let dates = || IssueError::Dates {
        from: now,
        lifetime,
    };
    let begin = now.checked_sub(BACKDATED).map_err(|_| dates())?;
    let end = now.checked_add(lifetime).map_err(|_| dates())?;
    let since_epoch = |at: Timestamp| {
        u64::try_from(at.as_second())
            .map(Duration::from_secs)
            .map_err(|_| dates())
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    // jiff's range ends with the year 9999, as that of a certificate does, so the additions stay in range.
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(begin)?;
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(end)?;
    Ok(params)
}
