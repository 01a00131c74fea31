//! Versions of TLS, and who may connect.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};

use super::rig::*;
use super::*;
use crate::clients::Clients;
use crate::tls::MinimumTls;

type Client = (CertificateDer<'static>, PrivateKeyDer<'static>);

struct Issuer(CertifiedIssuer<'static, KeyPair>);

impl Issuer {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn write(&self, path: &Path) {
        std::fs::write(path, self.0.pem()).unwrap();
    }

    fn client(&self, common_name: &str, host: &str) -> Client {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate.der().clone(), key.into())
    }
}

/// Whether a client with this certificate gets a verdict.
async fn is_served(served: &Served, certificate: Option<Client>) -> bool {
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        let mut stream = connect_as(address, &pem, certificate, &TLS13);
        let body = core_deletion();
        let head = format!(
            "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // In TLS 1.3 the refusal comes after the handshake, so perhaps only when the answer is read.
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        let mut begin = [0; 12];
        let read = sent.and_then(|()| io::Read::read_exact(&mut stream, &mut begin));
        read.is_ok() && begin == *b"HTTP/1.1 200"
    })
    .await
}

#[tokio::test]
async fn only_clients_with_a_certificate_and_a_name_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clients.crt");
    let (ours, theirs) = (Issuer::new(), Issuer::new());
    ours.write(&path);
    let names = vec!["kube-apiserver".to_owned(), "front.example".to_owned()];
    let clients = Clients::new(&path, names).unwrap();
    let verifier = Some(Arc::clone(&clients));
    let served = serve_as(Some(facts()), |options| options.clients = verifier);
    for (certificate, is_welcome) in [
        (Some(ours.client("kube-apiserver", "any.example")), true),
        (Some(ours.client("any", "front.example")), true),
        (Some(ours.client("kubelet", "any.example")), false),
        (Some(theirs.client("kube-apiserver", "any.example")), false),
        (None, false),
    ] {
        let who = certificate
            .as_ref()
            .map(|(certificate, _)| certificate.len());
        assert_eq!(is_served(&served, certificate).await, is_welcome, "{who:?}");
    }
    // Other authorities are read while serving. A file without an authority changes nothing.
    theirs.write(&path);
    assert!(clients.poll().unwrap() && !clients.poll().unwrap());
    let client = || Some(theirs.client("kube-apiserver", "any.example"));
    assert!(is_served(&served, client()).await);
    let before = ours.client("kube-apiserver", "any.example");
    assert!(!is_served(&served, Some(before)).await);
    for content in [
        "",
        "junk",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        std::fs::write(&path, content).unwrap();
        assert!(clients.poll().is_err(), "{content:?}");
    }
    assert!(is_served(&served, client()).await);
}

#[tokio::test]
async fn the_oldest_version_is_what_was_asked_for() {
    for (minimum, is_served) in [(MinimumTls::V13, false), (MinimumTls::V12, true)] {
        let served = serve_as(Some(facts()), |options| options.minimum = minimum);
        let (address, pem) = (served.reviews, served.authority_pem.clone());
        let old = client(move || {
            let mut stream = connect_as(address, &pem, None, &TLS12);
            stream.write_all(b"x").is_ok()
        });
        assert_eq!(old.await, is_served, "{minimum:?}");
    }
}
