//! Certificates from files: whatever the bytes are, what is served is the certificate that the authority signed, with its key.

use std::time::Duration;

use certs::authority::Authority;
use certs::serving::{CertificateMaterial, ServingError, VerifiedCertificate, verify};
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};

const NAME: &str = "addons-webhook.kubectl-addons.svc";
/// When the certificates are issued, in seconds since 1970.
const NOW: u64 = 1_800_000_000;
const TOKENS: &[&str] = &[
    "-----BEGIN CERTIFICATE-----\n",
    "-----END CERTIFICATE-----\n",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----\n",
    "-----BEGIN X509 CRL-----\n",
    "-----BEGIN ",
    "-----",
    "\n\n",
    "\r\n",
    "=",
    "MIIB",
    "AAAA",
    "\0",
    "# a comment\n",
];

/// What is served of bytes that hold chain and key, a minute after they were issued.
fn served(bytes: &[u8], authority_pem: Option<&[u8]>) -> Result<VerifiedCertificate, ServingError> {
    let material = CertificateMaterial {
        chain_pem: bytes,
        key_pem: bytes,
        authority_pem,
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW + 60));
    verify(&material, &[NAME.to_owned()], now)
}

#[test]
fn pem() {
    let now = Timestamp::from_second(NOW.cast_signed()).unwrap();
    let day = Duration::from_secs(86_400);
    let authority = Authority::new("fuzz", now, day * 2).unwrap();
    let issued = authority.issue(&[NAME], now, day).unwrap();
    let other = authority.issue(&["other.example.test"], now, day).unwrap();
    let leaf = CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes()).unwrap();
    let anchors = authority.certificate_pem();
    let whole = |certificate: &str, key: &str| format!("{certificate}{key}").into_bytes();
    let seeds = vec![
        whole(&issued.certificate_pem, &issued.key_pem),
        whole(
            &format!("{}{anchors}", issued.certificate_pem),
            &issued.key_pem,
        ),
        whole(&other.certificate_pem, &other.key_pem),
    ];
    assert!(served(&seeds[0], Some(anchors.as_bytes())).is_ok());
    super::mutant::run("fuzz::pem", seeds, TOKENS, |bytes| {
        if let Ok(served) = served(bytes, Some(anchors.as_bytes())) {
            assert_eq!(served.key.cert.first(), Some(&leaf));
        }
        // The bytes as an authority, and without one.
        let _ = served(bytes, Some(bytes));
        let _ = served(bytes, None);
    });
}
