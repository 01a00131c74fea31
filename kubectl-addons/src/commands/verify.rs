//! `verify NAME[@VERSION]…|oci://REF…`: verifies whether sources are signed, and by whom.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use common::api::catalogue::Method;
use common::api::catalogue::{
    AddonVersion, CatalogueClass, HelmSource, Keyless, SignaturePolicy, Source, Template,
};
use common::api::installation::Signature;
use common::catalogue::author::Author;
use common::catalogue::{Entry, Origin};
use common::image::is_of_this_machine;
use serde::Serialize;

use super::chosen::{self, Offered};
use crate::choices;
use crate::cli::verify::{Signer, Verify};
use crate::cli::{Format, Listing};
use crate::exit::Exit;
use crate::output::{self, Items, table::Table};
use crate::session::Session;
use crate::usage::Usage;
use addons_operation::{OperationError, provenance, signature};

/// The prefix that distinguishes references from names.
const OCI: &str = "oci://";

/// The result for a source.
#[derive(Debug, Serialize)]
struct Row {
    /// The name or reference as it was typed.
    name: String,
    #[serde(flatten)]
    signature: Option<Signature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The signers that are accepted.
enum Signed {
    /// The signers that the catalogue names.
    AsCatalogued,
    /// A key or an identity.
    By(SignaturePolicy),
    /// The owners of OpenPGP keys.
    Ring(Vec<u8>),
}

/// Verifies each source. If one is unsigned or signed by another signer, names it, and the exit code is 1.
///
/// # Errors
/// The catalogues or the index cannot be read, a name is unknown or does not fit, or a file cannot be read.
pub async fn run(session: &Session, args: &Verify) -> Result<Exit> {
    let signed = signed(&args.signer)?;
    let is_reference = |name: &String| name.starts_with(OCI);
    if !args.names.iter().all(is_reference) {
        let offer = choices::offer(&args.source);
        super::warn_of_unread(&*session.ctx().catalogue(&offer).await?);
    }
    let offered = Offered {
        source: &args.source,
        registry: args.site.registry.as_deref(),
        fit: &args.fit,
    };
    let mut rows = Vec::with_capacity(args.names.len());
    for name in &args.names {
        let verified = match name.strip_prefix(OCI) {
            Some(reference) => {
                // As everywhere, a registry on this machine is accessed over HTTP.
                let host = reference.split('/').next().unwrap_or_default();
                let plain_http = args.plain_http || is_of_this_machine(host);
                of_reference(session, reference, plain_http, &signed).await?
            }
            None => {
                let (entry, _) = chosen::entry(session, &offered, name).await?;
                of_entry(session, &entry, &signed).await?
            }
        };
        rows.push(match verified {
            Ok(signature) => Row {
                name: name.clone(),
                signature: Some(signature),
                problem: None,
            },
            Err(problem) => {
                output::note(&format!("not verified: {name}: {problem}"));
                Row {
                    name: name.clone(),
                    signature: None,
                    problem: Some(problem),
                }
            }
        });
    }
    print(&rows, args.output)?;
    Ok(match rows.iter().all(|row| row.signature.is_some()) {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn signed(given: &Signer) -> Result<Signed> {
    if let Some(file) = &given.keyring {
        return Ok(Signed::Ring(read("--keyring", file)?));
    }
    let mut policy = SignaturePolicy {
        required: true,
        ..SignaturePolicy::default()
    };
    if let Some(file) = &given.key {
        policy.key = Some(text("--key", file)?);
    } else if let (Some(identity), Some(issuer), Some(root)) = (
        &given.certificate_identity,
        &given.certificate_oidc_issuer,
        &given.trusted_root,
    ) {
        policy.keyless = Some(Keyless {
            identity: identity.clone(),
            issuer: issuer.clone(),
            trusted_root: text("--trusted-root", root)?,
        });
    } else {
        return Ok(Signed::AsCatalogued);
    }
    Ok(Signed::By(policy))
}

fn read(flag: &str, file: &Path) -> Result<Vec<u8>> {
    crate::input::read(file).with_context(|| format!("{flag} {}", file.display()))
}

fn text(flag: &str, file: &Path) -> Result<String> {
    let bytes = read(flag, file)?;
    String::from_utf8(bytes).with_context(|| format!("{flag} {}", file.display()))
}

/// Returns the signature, or why it could not be verified.
async fn of_entry(
    session: &Session,
    entry: &Entry,
    signed: &Signed,
) -> Result<Result<Signature, String>> {
    let policy = match signed {
        Signed::Ring(keyring) => return Ok(of_chart(session, entry, keyring).await),
        Signed::By(policy) => {
            // The catalogue's digest can vouch for the source, but is not a signature of this signer.
            if let Some(field) = signature::unsignable(&entry.version.source) {
                let digest = match entry.verifiable_hash() {
                    Some(_) => " (its digest is in the catalogue)",
                    None => "",
                };
                let way_out = "only images and charts in a registry can";
                return Ok(Err(format!("{field} cannot be signed{digest}; {way_out}")));
            }
            policy.clone()
        }
        Signed::AsCatalogued => match &entry.signature {
            Some(policy) => SignaturePolicy {
                required: true,
                ..(**policy).clone()
            },
            None => {
                return Err(Usage(format!(
                    "{} does not say who signs {}; name the signer with --key, --certificate-identity or --keyring",
                    entry.origin, entry.addon
                ))
                .into());
            }
        },
    };
    let verified = signature::verify(session.ctx(), entry, Some(&policy)).await;
    Ok(match verified {
        Ok(verified) => verified.signature.ok_or_else(|| "not signed".to_owned()),
        Err(error) => Err(match error.root() {
            OperationError::Unvouched(unvouched) => unvouched.why.to_string(),
            _ => error.chain(),
        }),
    })
}

async fn of_reference(
    session: &Session,
    reference: &str,
    plain_http: bool,
    signed: &Signed,
) -> Result<Result<Signature, String>> {
    let policy = match signed {
        Signed::By(policy) => policy,
        Signed::Ring(keyring) => {
            let entry = chart(reference, plain_http)?;
            return Ok(of_chart(session, &entry, keyring).await);
        }
        Signed::AsCatalogued => {
            return Err(Usage(format!(
                "name the signer of {OCI}{reference} with --key, --certificate-identity or --keyring"
            ))
            .into());
        }
    };
    let verified = signature::verify_reference(session.ctx(), reference, plain_http, policy).await;
    Ok(verified.map_err(|error| format!("{:#}", anyhow::Error::from(error))))
}

async fn of_chart(session: &Session, entry: &Entry, keyring: &[u8]) -> Result<Signature, String> {
    let proven = provenance::verify(session.ctx(), entry, keyring).await;
    let proven = proven.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    Ok(Signature {
        digest: proven.digest,
        method: "provenance".to_owned(),
        signer: format!("{} {}", proven.signer, proven.fingerprint),
        issuer: None,
    })
}

/// Makes a catalogue entry for a chart in a registry.
fn chart(reference: &str, plain_http: bool) -> Result<Entry> {
    let parts = reference.rsplit_once('/').and_then(|(path, last)| {
        let (chart, version) = last.split_once(':')?;
        (!last.contains('@')).then_some((path, chart, version))
    });
    let Some((path, chart, version)) = parts else {
        return Err(Usage(format!(
            "{OCI}{reference}: --keyring verifies charts by their version: write {OCI}HOST/PATH/CHART:VERSION"
        ))
        .into());
    };
    let source = Source {
        helm: Some(HelmSource {
            url: format!("{OCI}{path}"),
            chart: chart.to_owned(),
            version: Some(version.replace('_', "+")),
            plain_http,
            ..HelmSource::default()
        }),
        ..Source::default()
    };
    Ok(Entry {
        addon: chart.to_owned(),
        description: None,
        support: None,
        class: CatalogueClass::default(),
        version: AddonVersion {
            source,
            template: Template {
                method: Method::Helm,
                ..Template::default()
            },
            ..AddonVersion::default()
        },
        // The user typed the reference, so the command line may access its registry.
        origin: Arc::new(Origin::Index {
            location: format!("{OCI}{reference}"),
        }),
        base_url: None,
        registry: None,
        signature: None,
        place: String::new(),
        author: Author::Record,
    })
}

fn print(rows: &[Row], asked: Listing) -> Result<()> {
    match asked.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: rows }, asked)?;
        }
        Format::Wide | Format::Table => {
            let mut table = Table::new(&["NAME", "DIGEST", "VERIFIED BY"]);
            for row in rows {
                let (digest, by) = match &row.signature {
                    Some(signature) => (signature.digest.clone(), signature.to_string()),
                    None => ("-".to_owned(), "-".to_owned()),
                };
                table.row(vec![row.name.clone(), digest, by]);
            }
            output::data(&table.listed(asked));
        }
        Format::Name => {
            let verified = rows.iter().filter(|row| row.signature.is_some());
            let lines = verified.map(|row| format!("{}\n", row.name));
            output::data(&lines.collect::<String>());
        }
    }
    Ok(())
}
