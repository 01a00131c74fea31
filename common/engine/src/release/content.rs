//! Computes a digest of the objects and hooks in a record of a release. It leaves out the state of the release, and the content of Secrets,
//! which could be guessed (semantics 13.4).

use serde_json::{Value, json};

use common::manifest::digest::sha256_canonical;
use common::manifest::key::ObjectKey;
use common::manifest::parse::{ManifestOptions, parse};

use super::stored::{self, StoredRelease};

/// Returns the digest of a record; `None` if the record cannot be read, which equals no other record.
pub(super) fn digest(text: &[u8]) -> Option<String> {
    let StoredRelease {
        manifest, hooks, ..
    } = stored::read(text).ok()?;
    let hooks = hooks.iter().map(|hook| hook.manifest.as_str());
    let mut objects = Vec::new();
    for text in std::iter::once(manifest.as_str()).chain(hooks) {
        let parsed = parse(text.as_bytes(), "its manifest", &ManifestOptions::default()).ok()?;
        let found = parsed.manifests.iter();
        objects.push(Value::from_iter(found.map(|it| comparable(&it.object))));
    }
    Some(sha256_canonical(&Value::Array(objects)))
}

/// Returns an object, or only the key of a Secret.
fn comparable(object: &Value) -> Value {
    match ObjectKey::from_object(object).filter(ObjectKey::is_secret) {
        Some(key) => json!(key),
        None => object.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn stored(manifest: &str, hook: &str, status: &str) -> Option<String> {
        let release = json!({"name": "web", "info": {"status": status}, "manifest": manifest,
            "hooks": [{"name": "hook", "manifest": hook, "last_run": {"phase": status}}]});
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(release.to_string().as_bytes()).unwrap();
        digest(STANDARD.encode(encoder.finish().unwrap()).as_bytes())
    }

    #[test]
    fn the_digest_is_of_what_helm_would_do() {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let secret = |value: &str| {
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{a: {value}}}\n"
            )
        };
        let one = stored(map, &secret("one"), "deployed");
        assert!(one.is_some());
        assert_eq!(stored(map, &secret("two"), "pending-upgrade"), one);
        let renamed = map.replace("name: a", "name: b");
        for (manifest, hook) in [(renamed.as_str(), secret("one")), (map, map.to_owned())] {
            let other = stored(manifest, &hook, "deployed");
            assert!(other.is_some() && other != one, "{manifest} {hook}");
        }
        assert_eq!(stored("a: [", "", "deployed"), None);
        assert_eq!(digest(b"none"), None);
    }
}
