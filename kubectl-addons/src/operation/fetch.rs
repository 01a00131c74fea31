//! From an entry to the package that its source holds: with the credentials that the entry names, and verified.

use anyhow::{Context as _, Result};
use common::api::catalogue::{Auth, Source};
use common::catalogue::{Entry, Origin};
use common::manifest::digest;
use common::render::package::Package;

use crate::progress::patiently;
use crate::session::Session;
use addons_sources::{self, Access, Fetched};

use super::candidate::Candidate;

/// A package that is what its entry says.
#[derive(Debug)]
pub struct Verified {
    /// What the source holds.
    pub fetched: Fetched,
    /// The entry's hash, or the sha256 of the content where it has none (semantics 11).
    pub manifest_hash: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Fetches what the source of an entry holds and verifies its hash. Nothing is applied from an unverified source.
///
/// # Errors
/// A source that cannot be read, a Secret that is missing, a hash that differs; each with the entry's place.
pub async fn fetch(session: &Session, candidate: &Candidate) -> Result<Verified> {
    let entry = &candidate.entry;
    let name = || format!("{} in {}, {}", entry.addon, entry.origin, entry.place);
    let mut source = entry.version.source.clone();
    let mut warnings = Vec::new();
    if let Some(registry) = candidate.registry().with_context(name)? {
        let moved = registry.rewrite_source(&source).with_context(name)?;
        source = moved.source;
        warnings.extend(moved.warning);
    }
    let credentials = match auth(&source) {
        Some(auth) => {
            let secret = &auth.secret_ref.name;
            let namespace = secrets_namespace(session, entry);
            Some(
                session
                    .credentials(namespace, secret)
                    .await
                    .with_context(name)?,
            )
        }
        None => None,
    };
    let access = Access {
        ambient: is_of_this_machine(&entry.origin),
        credentials: credentials.as_deref(),
        ..session.access()
    };
    let base = entry.base_url.as_deref().unwrap_or_default();
    let fetching = format!(
        "{}  fetching {}",
        entry.addon,
        addons_sources::title(&source)
    );
    let package = addons_sources::package(&source, base, &entry.place, &access);
    let fetched = patiently(&fetching, package).await.with_context(name)?;
    let manifest_hash = match &entry.version.manifest_hash {
        Some(expected) => {
            let verified = verify(&fetched.package, expected)
                .with_context(|| format!("{}: {}", name(), fetched.location))?;
            if verified == digest::Verified::Unverifiable {
                warnings.push(format!(
                    "manifestHash {expected} is neither sha256 nor sha1 and was not verified"
                ));
            }
            expected.clone()
        }
        None => match fetched.package.as_file() {
            Some(file) => digest::sha256_trimmed(&file.bytes),
            None => fetched.package.digest(),
        },
    };
    Ok(Verified {
        fetched,
        manifest_hash,
        warnings,
    })
}

/// Whether the user of this machine wrote, or chose with credentials of theirs, what names the source. What stands in a cluster
/// (semantics 16) or on a web server is not to reach for the files and accounts of whoever reads it.
fn is_of_this_machine(origin: &Origin) -> bool {
    match origin {
        Origin::Catalogue { .. } => false,
        Origin::Index { location } => {
            let scheme = location.split_once("://").map(|(scheme, _)| scheme);
            !scheme.is_some_and(|scheme| {
                scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
            })
        }
    }
}

/// Of a file its bytes, of a folder its listing.
fn verify(package: &Package, expected: &str) -> Result<digest::Verified, digest::HashMismatch> {
    match package.as_file() {
        Some(file) => digest::verify(&file.bytes, expected),
        None => digest::verify(package.listing().as_bytes(), expected),
    }
}

/// The credentials that a source names.
fn auth(source: &Source) -> Option<&Auth> {
    source.kind().ok()?.auth()
}

/// Secrets lie beside their catalogue; those of an index, which has no namespace, in the system namespace (semantics 16).
fn secrets_namespace<'a>(session: &'a Session, entry: &'a Entry) -> &'a str {
    match &*entry.origin {
        Origin::Catalogue { namespace, .. } => namespace,
        Origin::Index { .. } => &session.global().system_namespace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_users_own_reaches_this_machine() {
        let index = |location: &str| Origin::Index {
            location: location.to_owned(),
        };
        for (origin, expected) in [
            (index("file:///home/me/index.yaml"), true),
            (index("s3://bucket/index.yaml"), true),
            (index("https://example.com/index.yaml"), false),
            (index("HTTP://example.com/index.yaml"), false),
            (
                Origin::Catalogue {
                    namespace: "kubectl-addons".to_owned(),
                    name: "platform".to_owned(),
                },
                false,
            ),
        ] {
            assert_eq!(is_of_this_machine(&origin), expected, "{origin}");
        }
    }
}
