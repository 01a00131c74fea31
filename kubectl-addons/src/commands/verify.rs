//! `verify NAME[@VERSION]…|oci://REF…`: verifies whether sources are signed, and by whom.

use std::path::Path;
use std::sync::Arc;

use addons_operation::OperationError;
use addons_operation::fetch::{provenance, signature};
use anyhow::{Context as _, Result};
use common::api::catalogue::{
    AddonTemplate, AddonVersion, CatalogueClass, HelmSource, Keyless, Method, SignaturePolicy,
    Source,
};
use common::api::installation::{Signature, SignatureMethod};
use common::catalogue::author::Author;
use common::catalogue::{CatalogueEntry, Origin};
use common::image::is_of_this_machine;
use serde::Serialize;

use super::chosen::{self, LookupScope};
use crate::choices;
use crate::cli::verify::{SignerArgs, VerifyArgs};
use crate::cli::{Listing, OutputFormat};
use crate::exit::{Exit, UsageError};
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;

/// The prefix that distinguishes references from names.
const OCI: &str = "oci://";

/// The result for a source.
#[derive(Debug, Serialize)]
struct VerificationRow {
    /// The name or reference as it was typed.
    name: String,
    #[serde(flatten)]
    signature: Option<Signature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The signers that are accepted.
enum AcceptedSigner {
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
pub async fn run(session: &Session, args: &VerifyArgs) -> Result<Exit> {
    let signed = parse_signer(&args.signer)?;
    let is_reference = |name: &String| name.starts_with(OCI);
    if !args.names.iter().all(is_reference) {
        let offer = choices::parse_offer(&args.source);
        chosen::warn_of_unread(&*session.ctx().catalogue(&offer).await?);
    }
    let offered = LookupScope {
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
                verify_reference(session, reference, plain_http, &signed).await?
            }
            None => {
                let (entry, _) = chosen::choose_entry(session, &offered, name).await?;
                verify_entry(session, &entry, &signed).await?
            }
        };
        rows.push(match verified {
            Ok(signature) => VerificationRow {
                name: name.clone(),
                signature: Some(signature),
                problem: None,
            },
            Err(problem) => {
                output::note(&format!("not verified: {name}: {problem}"));
                VerificationRow {
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

fn parse_signer(given: &SignerArgs) -> Result<AcceptedSigner> {
    if let Some(file) = &given.keyring {
        return Ok(AcceptedSigner::Ring(read_flag_file("--keyring", file)?));
    }
    let mut policy = SignaturePolicy {
        required: true,
        ..SignaturePolicy::default()
    };
    if let Some(file) = &given.key {
        policy.key = Some(read_flag_text("--key", file)?);
    } else if let (Some(identity), Some(issuer), Some(root)) = (
        &given.certificate_identity,
        &given.certificate_oidc_issuer,
        &given.trusted_root,
    ) {
        policy.keyless = Some(Keyless {
            identity: identity.clone(),
            issuer: issuer.clone(),
            trusted_root: read_flag_text("--trusted-root", root)?,
        });
    } else {
        return Ok(AcceptedSigner::AsCatalogued);
    }
    Ok(AcceptedSigner::By(policy))
}

fn read_flag_file(flag: &str, file: &Path) -> Result<Vec<u8>> {
    crate::input::read_input(file).with_context(|| format!("{flag} {}", file.display()))
}

fn read_flag_text(flag: &str, file: &Path) -> Result<String> {
    let bytes = read_flag_file(flag, file)?;
    String::from_utf8(bytes).with_context(|| format!("{flag} {}", file.display()))
}

/// Returns the signature, or why it could not be verified.
async fn verify_entry(
    session: &Session,
    entry: &CatalogueEntry,
    signed: &AcceptedSigner,
) -> Result<Result<Signature, String>> {
    let policy = match signed {
        AcceptedSigner::Ring(keyring) => return Ok(verify_chart(session, entry, keyring).await),
        AcceptedSigner::By(policy) => {
            // The catalogue's digest can vouch for the source, but is not a signature of this signer.
            if let Some(field) = signature::unsignable_field(&entry.version.source) {
                let digest = match entry.verifiable_hash() {
                    Some(_) => " (its digest is in the catalogue)",
                    None => "",
                };
                let way_out = "only images and charts in a registry can";
                return Ok(Err(format!("{field} cannot be signed{digest}; {way_out}")));
            }
            policy.clone()
        }
        AcceptedSigner::AsCatalogued => match &entry.signature {
            Some(policy) => SignaturePolicy {
                required: true,
                ..(**policy).clone()
            },
            None => {
                return Err(UsageError(format!(
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

async fn verify_reference(
    session: &Session,
    reference: &str,
    plain_http: bool,
    signed: &AcceptedSigner,
) -> Result<Result<Signature, String>> {
    let policy = match signed {
        AcceptedSigner::By(policy) => policy,
        AcceptedSigner::Ring(keyring) => {
            let entry = chart_entry(reference, plain_http)?;
            return Ok(verify_chart(session, &entry, keyring).await);
        }
        AcceptedSigner::AsCatalogued => {
            return Err(UsageError(format!(
                "name the signer of {OCI}{reference} with --key, --certificate-identity or --keyring"
            ))
            .into());
        }
    };
    let verified = signature::verify_reference(session.ctx(), reference, plain_http, policy).await;
    Ok(verified.map_err(|error| format!("{:#}", anyhow::Error::from(error))))
}

async fn verify_chart(
    session: &Session,
    entry: &CatalogueEntry,
    keyring: &[u8],
) -> Result<Signature, String> {
    let proven = provenance::verify(session.ctx(), entry, keyring).await;
    let proven = proven.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    Ok(Signature {
        digest: proven.digest,
        method: SignatureMethod::Provenance,
        signer: format!("{} {}", proven.signer, proven.fingerprint),
        issuer: None,
    })
}

/// Makes a catalogue entry for a chart in a registry.
fn chart_entry(reference: &str, plain_http: bool) -> Result<CatalogueEntry> {
    let parts = reference.rsplit_once('/').and_then(|(path, last)| {
        let (chart, version) = last.split_once(':')?;
        (!last.contains('@')).then_some((path, chart, version))
    });
    let Some((path, chart, version)) = parts else {
        return Err(UsageError(format!(
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
    Ok(CatalogueEntry {
        addon: chart.to_owned(),
        description: None,
        support: None,
        class: CatalogueClass::default(),
        deprecated: None,
        version: AddonVersion {
            source,
            template: AddonTemplate {
                method: Method::Helm,
                ..AddonTemplate::default()
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

fn print(rows: &[VerificationRow], asked: Listing) -> Result<()> {
    match asked.format {
        OutputFormat::Value(_) => {
            output::print_value(&ItemList { items: rows }, asked)?;
        }
        OutputFormat::Wide | OutputFormat::Table => {
            let mut table = Table::new(&["NAME", "DIGEST", "VERIFIED BY"]);
            for row in rows {
                let (digest, by) = match &row.signature {
                    Some(signature) => (signature.digest.clone(), signature.to_string()),
                    None => ("-".to_owned(), "-".to_owned()),
                };
                table.add_row(vec![row.name.clone(), digest, by]);
            }
            output::print_painted(&table.render_listing(asked));
        }
        OutputFormat::Name => {
            let verified = rows.iter().filter(|row| row.signature.is_some());
            let lines = verified.map(|row| format!("{}\n", row.name));
            output::print_text(&lines.collect::<String>());
        }
    }
    Ok(())
}
