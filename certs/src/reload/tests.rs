//! Rotation over real handshakes: a client that trusts only one authority connects before and after the swap.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::*;
use crate::authority::Authority;

const NAME: &str = "addons-webhook.kubectl-addons.svc";
const DAY: Duration = Duration::from_secs(24 * 3600);

fn now() -> Timestamp {
    Timestamp::now()
}

fn unix(at: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().unsigned_abs()))
}

/// Replaces files as the kubelet does: a new folder, and a rename of the link `..data`.
fn publish(dir: &Path, generation: &str, certificate: &str, key: &str, authority: &str) {
    let data = dir.join(generation);
    fs::create_dir(&data).unwrap();
    fs::write(data.join("tls.crt"), certificate).unwrap();
    fs::write(data.join("tls.key"), key).unwrap();
    fs::write(data.join("ca.crt"), authority).unwrap();
    symlink(generation, dir.join("..data_tmp")).unwrap();
    fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
}

fn files(dir: &Path) -> CertificateFiles {
    CertificateFiles {
        certificate: dir.join("..data/tls.crt"),
        key: dir.join("..data/tls.key"),
        authority: Some(dir.join("..data/ca.crt")),
        names: vec![NAME.to_owned()],
    }
}

/// One handshake and one byte each way over a socket; the error is the client's.
fn handshake(served: &Arc<ServedCertificate>, authority_pem: &str) -> Result<(), rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let resolver = Arc::clone(served);
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut tls = ServerConnection::new(Arc::new(server)).unwrap();
        let mut byte = [0; 1];
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        if stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).unwrap();
        }
    });
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap())
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).unwrap();
    let mut tls = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    let sent = stream
        .write_all(b"x")
        .and_then(|()| stream.read_exact(&mut [0; 1]));
    drop(socket);
    serving.join().unwrap();
    sent.map_err(|error| {
        error
            .into_inner()
            .and_then(|inner| inner.downcast::<rustls::Error>().ok())
            .map_or(rustls::Error::General("no TLS error".into()), |tls| *tls)
    })
}

#[test]
fn a_symlink_swap_is_served_from_the_next_handshake_on() {
    let dir = tempfile::tempdir().unwrap();
    let first = Authority::new("first", now(), DAY).unwrap();
    let leaf = first.issue(&[NAME], now(), DAY).unwrap();
    publish(
        dir.path(),
        "1",
        &leaf.certificate_pem,
        &leaf.key_pem,
        first.certificate_pem(),
    );
    let served = Arc::new(ServedCertificate::default());
    let mut reloader = Reloader::new(files(dir.path()), Arc::clone(&served), unix(now())).unwrap();
    handshake(&served, first.certificate_pem()).unwrap();
    assert!(matches!(
        reloader.poll(unix(now())),
        ReloadOutcome::Unchanged
    ));

    let second = Authority::new("second", now(), DAY).unwrap();
    let leaf = second.issue(&[NAME], now(), 2 * DAY).unwrap();
    let before = served.not_after().unwrap();
    publish(
        dir.path(),
        "2",
        &leaf.certificate_pem,
        &leaf.key_pem,
        second.certificate_pem(),
    );
    assert!(matches!(reloader.poll(unix(now())), ReloadOutcome::Swapped));
    handshake(&served, second.certificate_pem()).unwrap();
    handshake(&served, first.certificate_pem()).unwrap_err();
    let later = served.not_after().unwrap().as_secs() - before.as_secs();
    assert!(
        (86_398..=86_402).contains(&later),
        "a day later, not {later}"
    );
}

#[test]
fn a_bad_rotation_keeps_the_old_certificate() {
    let authority = Authority::new("a", now(), DAY).unwrap();
    let good = authority.issue(&[NAME], now(), DAY).unwrap();
    let other = authority.issue(&[NAME], now(), DAY).unwrap();
    let foreign = Authority::new("b", now(), DAY).unwrap();
    let foreign_leaf = foreign.issue(&[NAME], now(), DAY).unwrap();
    let misnamed = authority.issue(&["example.org"], now(), DAY).unwrap();
    let old = now() - 48 * Duration::from_secs(3600);
    let expired = authority.issue(&[NAME], old, DAY).unwrap();
    let ca = authority.certificate_pem();
    // what is wrong, certificate, key, authority
    let cases: &[(&str, &str, &str, &str)] = &[
        (
            "key of another certificate",
            &good.certificate_pem,
            &other.key_pem,
            ca,
        ),
        ("no PEM", "junk", &good.key_pem, ca),
        ("empty", "", &good.key_pem, ca),
        (
            "key is a certificate",
            &good.certificate_pem,
            &good.certificate_pem,
            ca,
        ),
        (
            "unknown issuer",
            &foreign_leaf.certificate_pem,
            &foreign_leaf.key_pem,
            ca,
        ),
        (
            "other name",
            &misnamed.certificate_pem,
            &misnamed.key_pem,
            ca,
        ),
        ("expired", &expired.certificate_pem, &expired.key_pem, ca),
        ("no authority", &good.certificate_pem, &good.key_pem, ""),
    ];
    for (what, certificate, key, ca_file) in cases {
        let dir = tempfile::tempdir().unwrap();
        publish(dir.path(), "1", &good.certificate_pem, &good.key_pem, ca);
        let served = Arc::new(ServedCertificate::default());
        let mut reloader =
            Reloader::new(files(dir.path()), Arc::clone(&served), unix(now())).unwrap();
        publish(dir.path(), "2", certificate, key, ca_file);
        assert!(
            matches!(reloader.poll(unix(now())), ReloadOutcome::Kept(_)),
            "{what}"
        );
        handshake(&served, ca).unwrap();
        assert!(
            Reloader::new(files(dir.path()), Arc::default(), unix(now())).is_err(),
            "{what}"
        );
        // Once the files are right again, they are served again.
        publish(dir.path(), "3", &other.certificate_pem, &other.key_pem, ca);
        assert!(
            matches!(reloader.poll(unix(now())), ReloadOutcome::Swapped),
            "{what}"
        );
    }
}

#[test]
fn without_an_authority_file_dates_names_and_key_are_still_verified() {
    let authority = Authority::new("a", now(), DAY).unwrap();
    let leaf = authority.issue(&[NAME], now(), DAY).unwrap();
    let key = leaf.key_pem.as_bytes();
    let chain = format!("{}{}", leaf.certificate_pem, authority.certificate_pem());
    let good = |chain: &str, name: &str, at| {
        let material = CertificateMaterial {
            chain_pem: chain.as_bytes(),
            key_pem: key,
            authority_pem: None,
        };
        verify(&material, &[name.to_owned()], at).is_ok()
    };
    for chain in [&leaf.certificate_pem, &chain] {
        assert!(good(chain, NAME, unix(now())));
        assert!(!good(chain, "example.org", unix(now())));
        assert!(!good(chain, NAME, unix(now() + 2 * DAY)));
        assert!(!good(chain, "not a name", unix(now())));
    }
}

#[test]
fn an_authority_issues_for_addresses_and_refuses_to_issue_for_nothing() {
    let authority = Authority::new("a", now(), DAY).unwrap();
    let leaf = authority.issue(&["127.0.0.1", "::1"], now(), DAY).unwrap();
    let material = CertificateMaterial {
        chain_pem: leaf.certificate_pem.as_bytes(),
        key_pem: leaf.key_pem.as_bytes(),
        authority_pem: Some(authority.certificate_pem().as_bytes()),
    };
    verify(&material, &["127.0.0.1".to_owned()], unix(now())).unwrap();
    verify(&material, &[], unix(now())).unwrap();
    verify(&material, &["127.0.0.2".to_owned()], unix(now())).unwrap_err();
    assert!(authority.issue(&[], now(), DAY).is_err());
    assert!(authority.issue(&[NAME], Timestamp::MIN, DAY).is_err());
    assert!(!format!("{leaf:?}{authority:?}").contains("PRIVATE"));
}
