//! Our own authority, and the serving certificates that it signs.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::der::asn1::Utf8StringRef;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::{self, KeyUsage, SubjectKeyIdentifier};
use x509_cert::name::Name;
use zeroize::Zeroizing;

/// Certificates are backdated by this much, because the issuer's clock may be ahead of the clocks of API servers.
const BACKDATED: Duration = Duration::from_hours(24);
/// Key usages of an authority.
const USAGES: [KeyUsagePurpose; 2] = [KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];

/// An authority that signs serving certificates. Its key exists only as long as this value, unless the caller stores it.
pub struct Authority {
    certificate_pem: String,
    key: Zeroizing<KeyPair>,
    /// The fields that issued certificates copy from their issuer: its name and the identifier of its key.
    issuer: CertificateParams,
    life: CertificateLife,
}

/// The time from the issue of a certificate until it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateLife {
    /// Time of issue. The certificate itself is valid from a day earlier.
    pub begin: Timestamp,
    /// When it expires.
    pub end: Timestamp,
}

/// A certificate with its private key, both as PEM. `Debug` shows neither.
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate_pem: String,
    /// Private key (PKCS #8).
    pub key_pem: Zeroizing<String>,
    /// The time from issue until expiry.
    pub life: CertificateLife,
}

/// A certificate could not be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// No name was given.
    #[error("a serving certificate needs a DNS name or an IP address")]
    NoName,
    /// The begin is before 1970, or the end is later than a certificate can express.
    #[error("a certificate cannot be valid from {from} for {lifetime:?}")]
    Dates {
        /// Begin of the validity.
        from: Timestamp,
        /// Requested lifetime.
        lifetime: Duration,
    },
    /// The key could not be generated, or the certificate could not be signed.
    #[error("the certificate for {subject} could not be issued")]
    Sign {
        /// Common name, or first DNS name.
        subject: String,
        /// The message of the library.
        source: rcgen::Error,
    },
}

/// Why a stored certificate and key cannot be used as an authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The text is not exactly one certificate in PEM.
    #[error("the certificate cannot be read")]
    Certificate,
    /// The certificate must not sign others.
    #[error("the certificate is not one of an authority")]
    NotAnAuthority,
    /// The dates are out of the range of timestamps.
    #[error("the dates of the certificate cannot be read")]
    Dates,
    /// The key cannot be read.
    #[error("the key cannot be read")]
    Key(#[source] rcgen::Error),
    /// The key belongs to another certificate.
    #[error("the key does not belong to the certificate")]
    OtherKey,
}

impl Authority {
    /// Returns a new self-signed authority with a new key. It is valid from a day before `now` until `lifetime` after it.
    ///
    /// # Errors
    /// [`IssueError`] if no key can be generated, or if the dates cannot be expressed.
    pub fn new(common_name: &str, now: Timestamp, lifetime: Duration) -> Result<Self, IssueError> {
        let failed = |source| IssueError::Sign {
            subject: common_name.to_owned(),
            source,
        };
        let key = generate_key().map_err(failed)?;
        let (mut params, life) = certificate_params(common_name, now, lifetime)?;
        // No intermediate authorities: this authority signs only leaf certificates.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = USAGES.to_vec();
        let certificate = params.self_signed(&*key).map_err(failed)?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            key,
            issuer: params,
            life,
        })
    }

    /// Reads an authority that was stored as PEM.
    ///
    /// # Errors
    /// [`AuthorityError`] if the texts are not the certificate and the key of one authority. The dates are not checked.
    pub fn read(certificate_pem: &str, key_pem: &str) -> Result<Self, AuthorityError> {
        let certificate = parse(certificate_pem)?;
        let life = certificate_life(&certificate)?;
        let unreadable = |_| AuthorityError::Certificate;
        let tbs = &certificate.tbs_certificate;
        let public_key = tbs.subject_public_key_info.to_der().map_err(unreadable)?;
        let key = Zeroizing::new(KeyPair::from_pem(key_pem).map_err(AuthorityError::Key)?);
        if key.subject_public_key_info() != public_key {
            return Err(AuthorityError::OtherKey);
        }
        let mut issuer = CertificateParams::default();
        issuer.distinguished_name =
            read_common_name(&tbs.subject).ok_or(AuthorityError::Certificate)?;
        issuer.key_usages = USAGES.to_vec();
        if let Some((_, id)) = tbs.get::<SubjectKeyIdentifier>().map_err(unreadable)? {
            issuer.key_identifier_method = KeyIdMethod::PreSpecified(id.0.into_bytes());
        }
        Ok(Self {
            certificate_pem: certificate_pem.to_owned(),
            key,
            issuer,
            life,
        })
    }

    /// Returns the authority's certificate (PEM), for `caBundle`.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the private key (PKCS #8, PEM), so that other replicas can store it and sign with it.
    #[must_use]
    pub fn key_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.key.serialize_pem())
    }

    /// The time from issue until expiry.
    #[must_use]
    pub fn life(&self) -> CertificateLife {
        self.life
    }

    /// Issues a serving certificate with a new key for `names` (DNS names or IP addresses).
    ///
    /// The API server dials `SERVICE.NAMESPACE.svc` and reads only the subject alternative names.
    ///
    /// # Errors
    /// [`IssueError`] if `names` is empty, a name is not valid, no key can be generated, or the dates cannot be expressed.
    pub fn issue(
        &self,
        names: &[&str],
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<IssuedCertificate, IssueError> {
        let Some(&subject) = names.first() else {
            return Err(IssueError::NoName);
        };
        let failed = |source| IssueError::Sign {
            subject: subject.to_owned(),
            source,
        };
        let key = generate_key().map_err(failed)?;
        let (mut params, life) = certificate_params(subject, now, lifetime)?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        params.subject_alt_names = CertificateParams::new(names)
            .map_err(failed)?
            .subject_alt_names;
        params.use_authority_key_identifier_extension = true;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let issuer = Issuer::from_params(&self.issuer, &*self.key);
        let certificate = params.signed_by(&*key, &issuer).map_err(failed)?;
        Ok(IssuedCertificate {
            certificate_pem: certificate.pem(),
            key_pem: Zeroizing::new(key.serialize_pem()),
            life,
        })
    }
}

impl CertificateLife {
    /// Returns whether two thirds of the time have passed. The last third is left for retries of a renewal that fails.
    ///
    /// A clock that is before the begin does not cause a renewal: which clock is wrong cannot be known, and a certificate renewed by a
    /// wrong clock would be valid for no other client.
    #[must_use]
    pub fn needs_renewal(&self, now: Timestamp) -> bool {
        let whole = self.end.duration_since(self.begin);
        now.duration_since(self.begin) >= whole * 2 / 3
    }

    /// Returns whether the certificate has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.end
    }
}

/// Returns the time from the issue of an authority's certificate until it expires.
///
/// # Errors
/// [`AuthorityError`] if it is not the certificate of an authority.
pub fn read_life(certificate_pem: &str) -> Result<CertificateLife, AuthorityError> {
    certificate_life(&parse(certificate_pem)?)
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for IssuedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

/// Generates a key that is wiped from memory when it is dropped.
fn generate_key() -> Result<Zeroizing<KeyPair>, rcgen::Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map(Zeroizing::new)
}

/// Parses a PEM text that is exactly one certificate, of an authority.
fn parse(certificate_pem: &str) -> Result<Certificate, AuthorityError> {
    let unreadable = |_| AuthorityError::Certificate;
    let mut found = CertificateDer::pem_slice_iter(certificate_pem.as_bytes());
    let (Some(Ok(der)), None) = (found.next(), found.next()) else {
        return Err(AuthorityError::Certificate);
    };
    let certificate = Certificate::from_der(&der).map_err(unreadable)?;
    let tbs = &certificate.tbs_certificate;
    let constraints = tbs.get::<pkix::BasicConstraints>().map_err(unreadable)?;
    let usage = tbs.get::<KeyUsage>().map_err(unreadable)?;
    let is_authority = constraints.is_some_and(|(_, constraints)| constraints.ca)
        && usage.is_none_or(|(_, usage)| usage.key_cert_sign());
    if is_authority {
        Ok(certificate)
    } else {
        Err(AuthorityError::NotAnAuthority)
    }
}

fn certificate_life(certificate: &Certificate) -> Result<CertificateLife, AuthorityError> {
    let validity = &certificate.tbs_certificate.validity;
    let at = |time: x509_cert::time::Time| {
        let since = time.to_unix_duration().as_secs().try_into().ok();
        let at = since.and_then(|seconds| Timestamp::from_second(seconds).ok());
        at.ok_or(AuthorityError::Dates)
    };
    let begin = at(validity.not_before)?;
    let end = at(validity.not_after)?;
    let begin = begin
        .checked_add(BACKDATED)
        .map_err(|_| AuthorityError::Dates)?
        .min(end);
    Ok(CertificateLife { begin, end })
}

/// Returns the subject of one of our authorities, which consists of a common name only.
fn read_common_name(subject: &Name) -> Option<DistinguishedName> {
    let [part] = subject.0.as_slice() else {
        return None;
    };
    let [attribute] = part.0.as_slice() else {
        return None;
    };
    if attribute.oid != COMMON_NAME {
        return None;
    }
    let text: Utf8StringRef<'_> = attribute.value.decode_as().ok()?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text.as_str());
    Some(name)
}

/// Returns certificate parameters with subject and dates.
fn certificate_params(
    common_name: &str,
    now: Timestamp,
    lifetime: Duration,
) -> Result<(CertificateParams, CertificateLife), IssueError> {
    let dates = || IssueError::Dates {
        from: now,
        lifetime,
    };
    let begin = now.checked_sub(BACKDATED).map_err(|_| dates())?;
    // Certificates have a resolution of seconds: round up, so that none is valid for less than its lifetime.
    let end = now
        .checked_add(lifetime)
        .and_then(|end| {
            end.round(
                jiff::TimestampRound::new()
                    .smallest(jiff::Unit::Second)
                    .mode(jiff::RoundMode::Ceil),
            )
        })
        .map_err(|_| dates())?;
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
    // The ranges of jiff and of certificates both end with the year 9999, so the additions stay in range.
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(begin)?;
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(end)?;
    Ok((params, CertificateLife { begin: now, end }))
}
