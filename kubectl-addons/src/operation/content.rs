//! The objects of an add-on: what its source holds, rendered and parsed.

use anyhow::{Context as _, Result, bail};
use common::api::catalogue::Method;
use common::api::names::installation_name;
use common::catalogue::Entry;
use common::catalogue::select::Rules;
use common::manifest::Manifest;
use common::manifest::parse::Options;
use common::plan::InstallationName;
use common::render::package::Package;
use common::render::text::Text;

use crate::session::Session;

use super::candidate::Candidate;
use super::fetch::{Verified, fetch};
use super::inputs::Inputs;

/// The objects of an add-on.
#[derive(Debug)]
pub struct Rendered {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// The entry's hash, or that of the package where it has none (semantics 11).
    pub manifest_hash: String,
    /// The commit, image digest or chart version.
    pub resolved: Option<String>,
    /// Where the package was read.
    pub location: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Renders and parses a package.
///
/// # Errors
/// A template, a chart or a manifest that fails, with its place.
pub async fn content(
    session: &Session,
    candidate: &Candidate,
    verified: Verified,
) -> Result<Rendered> {
    let entry = &candidate.entry;
    let name = || format!("{} in {}, {}", entry.addon, entry.origin, entry.place);
    let location = verified.fetched.location.clone();
    let resolved = verified.fetched.resolved.clone();
    let text = text(session, candidate, verified.fetched.package)
        .await
        .with_context(name)?;
    let options = Options {
        duplicate_keys: session.duplicate_keys(),
        ..Options::default()
    };
    let parsed = text.objects(&location, &options).with_context(name)?;
    let mut warnings = verified.warnings;
    warnings.extend(parsed.warnings);
    Ok(Rendered {
        manifests: parsed.manifests,
        manifest_hash: verified.manifest_hash,
        resolved,
        location,
        warnings,
    })
}

/// The objects of an entry as they would be installed, without an installation.
///
/// # Errors
/// A source, a template or a manifest that fails, with its place.
pub async fn of_entry(session: &Session, entry: &Entry) -> Result<Rendered> {
    let name = InstallationName {
        namespace: session.global().system_namespace.clone(),
        name: installation_name(&entry.addon),
    };
    // The rules say nothing about content.
    let mut candidate = Candidate::new(name, None, entry.clone(), Rules::Auto);
    candidate.inputs = Inputs::read(session, &candidate).await?;
    let verified = fetch(session, entry).await?;
    content(session, &candidate, verified).await
}

/// The text of a package, rendered.
///
/// # Errors
/// A template or a chart that fails.
pub async fn text(_session: &Session, candidate: &Candidate, package: Package) -> Result<Text> {
    match candidate.entry.version.template.method {
        Method::Manifest => Ok(Text::plain(package)),
        Method::GoTemplate | Method::Helm => bail!("template.method can be manifest only"),
    }
}
