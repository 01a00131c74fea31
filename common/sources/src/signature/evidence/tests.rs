use std::path::PathBuf;

use common::api::catalogue::{Keyless, SignaturePolicy};
use serde_json::{Value, json};
use sigstore_verify::SubjectAltName;
use sigstore_verify::crypto::{KeyPair, parse_certificate_info};
use sigstore_verify::trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT;
use sigstore_verify::types::pae;

use super::*;

fn digest(byte: char) -> String {
    format!("sha256:{}", byte.to_string().repeat(64))
}

fn signer(key: &KeyPair) -> TrustedSigner {
    let policy = SignaturePolicy {
        required: true,
        key: Some(key.public_key_der().unwrap().to_pem()),
        keyless: None,
    };
    TrustedSigner::new(&policy).unwrap()
}

fn sign(key: &KeyPair, bytes: &[u8]) -> String {
    STANDARD.encode(key.sign(bytes).unwrap().as_bytes())
}

/// A bundle as cosign creates it with a key and without a log.
fn bundle(key: &KeyPair, predicate: &str, digest: &str) -> Evidence {
    let hex = digest.strip_prefix("sha256:").unwrap();
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": hex}}],
        "predicateType": predicate,
        "predicate": {},
    });
    let payload = statement.to_string();
    let signature = sign(key, &pae(IN_TOTO, payload.as_bytes()));
    let bundle = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": ""}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": IN_TOTO,
            "signatures": [{"sig": signature}],
        },
    });
    Evidence::Bundle {
        bundle: bundle.to_string(),
    }
}

fn layer(key: &KeyPair, kind: &str, digest: &str) -> Evidence {
    let payload = json!({"critical": {
        "identity": {"docker-reference": "elsewhere.example/web"},
        "image": {"docker-manifest-digest": digest},
        "type": kind,
    }, "optional": null});
    let payload = payload.to_string();
    Evidence::Simple {
        signature: sign(key, payload.as_bytes()),
        payload,
    }
}

fn verdict(evidence: &Evidence, digest: &str, signer: &TrustedSigner) -> String {
    match evidence.verify(digest, signer) {
        Ok(()) => "signed".to_owned(),
        Err(flaw) => flaw.to_string(),
    }
}

#[test]
fn only_the_key_and_the_digest_that_were_signed_count() {
    let (key, other) = (
        KeyPair::generate_ecdsa_p256().unwrap(),
        KeyPair::generate_ecdsa_p256().unwrap(),
    );
    let (ours, theirs) = (signer(&key), signer(&other));
    let (web, api) = (digest('a'), digest('b'));
    let provenance = "https://slsa.dev/provenance/v1";
    for (evidence, digest, signer, expected) in [
        (bundle(&key, SIGNED, &web), &web, &ours, "signed"),
        (
            bundle(&key, SIGNED, &web),
            &web,
            &theirs,
            "the key does not verify it",
        ),
        (
            bundle(&key, SIGNED, &web),
            &api,
            &ours,
            "it is the signature of another digest",
        ),
        (
            bundle(&key, provenance, &web),
            &web,
            &ours,
            "it is an attestation (https://slsa.dev/provenance/v1) and not a signature",
        ),
        (layer(&key, IMAGE_SIGNATURE, &web), &web, &ours, "signed"),
        (
            layer(&key, IMAGE_SIGNATURE, &web),
            &web,
            &theirs,
            "the key does not verify it",
        ),
        (
            layer(&key, IMAGE_SIGNATURE, &web),
            &api,
            &ours,
            "it is the signature of another digest",
        ),
        (
            layer(&key, "something else", &web),
            &web,
            &ours,
            "the payload cannot be read: its type is \"something else\"",
        ),
    ] {
        assert_eq!(verdict(&evidence, digest, signer), expected, "{evidence:?}");
    }
}

#[test]
fn content_that_was_changed_after_signing_is_refused() {
    let key = KeyPair::generate_ecdsa_p256().unwrap();
    let signer = signer(&key);
    let (web, api) = (digest('a'), digest('b'));
    let Evidence::Simple { payload, signature } = layer(&key, IMAGE_SIGNATURE, &web) else {
        panic!("another kind");
    };
    let changed = Evidence::Simple {
        payload: payload.replace(&web, &api),
        signature,
    };
    assert_eq!(
        verdict(&changed, &api, &signer),
        SignatureFlaw::Key.to_string()
    );
    let (Evidence::Bundle { bundle: one }, Evidence::Bundle { bundle: two }) =
        (bundle(&key, SIGNED, &web), bundle(&key, SIGNED, &api))
    else {
        panic!("another kind");
    };
    let (mut one, two): (Value, Value) = (
        serde_json::from_str(&one).unwrap(),
        serde_json::from_str(&two).unwrap(),
    );
    one["dsseEnvelope"]["payload"] = two["dsseEnvelope"]["payload"].clone();
    let changed = Evidence::Bundle {
        bundle: one.to_string(),
    };
    assert_eq!(
        verdict(&changed, &api, &signer),
        SignatureFlaw::Key.to_string()
    );
    let broken = Evidence::Bundle {
        bundle: "{".to_owned(),
    };
    assert!(verdict(&broken, &web, &signer).starts_with("the bundle cannot be read"));
}

/// A bundle of the public instance, taken from the tests of the verifier.
fn keyless() -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| std::env::home_dir().unwrap().join(".cargo"));
    let file = "sigstore-verify-0.15.1/test_data/bundles/cosign-v3-blob.sigstore.json";
    let registries = std::fs::read_dir(home.join("registry/src")).unwrap();
    let mut files = registries.map(|registry| registry.unwrap().path().join(file));
    let found = files.find(|file| file.is_file());
    std::fs::read_to_string(found.expect("cargo has unpacked sigstore-verify")).unwrap()
}

#[test]
fn keyless_signatures_are_those_of_one_identity() {
    let text = keyless();
    let bundle = Bundle::from_json(&text).unwrap();
    let SignatureContent::MessageSignature(message) = &bundle.content else {
        panic!("another kind");
    };
    let signed = format!(
        "sha256:{}",
        message.message_digest.as_ref().unwrap().digest.to_hex()
    );
    let who = parse_certificate_info(bundle.signing_certificate().unwrap()).unwrap();
    let Some(SubjectAltName::Email(identity)) = who.identity else {
        panic!("another kind of identity");
    };
    let issuer = who.issuer.unwrap();
    let by = |identity: &str, issuer: &str, root: &str| {
        TrustedSigner::new(&SignaturePolicy {
            required: true,
            key: None,
            keyless: Some(Keyless {
                identity: identity.to_owned(),
                issuer: issuer.to_owned(),
                trusted_root: root.to_owned(),
            }),
        })
    };
    let root = SIGSTORE_PRODUCTION_TRUSTED_ROOT;
    let evidence = Evidence::Bundle { bundle: text };
    let judged = |digest: &str, signer: Result<TrustedSigner, _>| {
        verdict(&evidence, digest, &signer.unwrap())
    };
    assert_eq!(judged(&signed, by(&identity, &issuer, root)), "signed");
    let other = judged(&signed, by("other@example.com", &issuer, root));
    assert!(other.to_lowercase().contains("identity"), "{other}");
    let other = judged(&signed, by(&identity, "https://issuer.example", root));
    assert!(other.to_lowercase().contains("issuer"), "{other}");
    assert_ne!(judged(&digest('a'), by(&identity, &issuer, root)), "signed");
    // Another instance trusts neither the authority nor the log.
    let mut empty: Value = serde_json::from_str(root).unwrap();
    for list in ["tlogs", "ctlogs", "certificateAuthorities"] {
        empty[list] = json!([]);
    }
    assert_ne!(
        judged(&signed, by(&identity, &issuer, &empty.to_string())),
        "signed"
    );
    let key = KeyPair::generate_ecdsa_p256().unwrap();
    assert_eq!(
        judged(&signed, Ok(signer(&key))),
        SignatureFlaw::Key.to_string()
    );
    assert!(by(&identity, &issuer, "{}").is_err());
}
