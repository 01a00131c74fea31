//! The objects of an add-on: what its source holds, rendered and parsed.

use anyhow::{Context as _, Result};
use common::api::catalogue::{HelmMode, Method};
use common::api::names::installation_name;
use common::catalogue::select::Rules;
use common::catalogue::{Entry, Origin};
use common::manifest::Manifest;
use common::manifest::parse::Options;
use common::plan::InstallationName;
use common::render::hooks::{self, Occasion};
use common::render::package::Package;
use common::render::text::{self, Text};
use common::render::{images, kkp};
use common::values::mask::Mask;

use crate::cli::reading::Fit;
use crate::session::Session;

use super::candidate::Candidate;
use super::chart;
use super::fetch::{Verified, fetch};
use super::inputs::{Data, Inputs};

/// The objects of an add-on.
#[derive(Debug)]
pub struct Rendered {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// The chart that helm itself installs, with its values: then there are no objects.
    pub release: Option<chart::Ready>,
    /// The entry's hash, or that of the package where it has none (semantics 11).
    pub manifest_hash: String,
    /// The commit, image digest or chart version.
    pub resolved: Option<String>,
    /// Where the package was read.
    pub location: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What is installed of a package: its objects, or the chart that helm itself installs.
///
/// # Errors
/// A template, a chart or a manifest that fails, with its place.
pub async fn content(
    session: &Session,
    candidate: &Candidate,
    verified: Verified,
) -> Result<Rendered> {
    let template = &candidate.entry.version.template;
    let helm = template.helm.as_ref();
    let is_release = helm.is_some_and(|helm| helm.mode == HelmMode::Release);
    if template.method != Method::Helm || !is_release {
        return objects(session, candidate, verified).await;
    }
    let package = verified.fetched.package;
    let ready = chart::ready(session, candidate, package).await;
    Ok(Rendered {
        manifests: Vec::new(),
        release: Some(ready.with_context(|| place(&candidate.entry))?),
        manifest_hash: verified.manifest_hash,
        resolved: verified.fetched.resolved,
        location: verified.fetched.location,
        warnings: verified.warnings,
    })
}

/// Renders and parses a package.
///
/// # Errors
/// A template, a chart or a manifest that fails, with its place.
pub async fn objects(
    session: &Session,
    candidate: &Candidate,
    verified: Verified,
) -> Result<Rendered> {
    let entry = &candidate.entry;
    let name = || place(entry);
    let (package, location) = (verified.fetched.package, verified.fetched.location);
    let text = text(session, candidate, package).await.with_context(name)?;
    let options = Options {
        duplicate_keys: session.duplicate_keys(),
        ..Options::default()
    };
    let mask = candidate.inputs.mask();
    let parsed = text.objects(&location, &options);
    let parsed = parsed
        .map_err(|error| masked(error.into(), &mask))
        .with_context(name)?;
    let (mut manifests, mut warnings) = (parsed.manifests, verified.warnings);
    warnings.extend(parsed.warnings);
    if entry.version.template.method == Method::Helm {
        let kept = hooks::of_occasion(manifests, occasion(candidate));
        manifests = kept.manifests;
        warnings.extend(kept.warnings);
    }
    if let Some(registry) = candidate.registry()? {
        for manifest in &mut manifests {
            let place = &manifest.place;
            let doubts = images::rewrite(&mut manifest.object, &registry).doubts;
            let doubts = doubts.into_iter().map(|doubt| format!("{place}: {doubt}"));
            warnings.extend(doubts);
        }
    }
    let warnings = warnings.iter().map(|warning| mask.text(warning)).collect();
    Ok(Rendered {
        manifests,
        release: None,
        manifest_hash: verified.manifest_hash,
        resolved: verified.fetched.resolved,
        location,
        warnings,
    })
}

/// `NAME in catalogue C, spec.addons[0].versions[0]`; a folder that is no entry has no place.
fn place(entry: &Entry) -> String {
    if let (Origin::Index { location }, "") = (&*entry.origin, entry.place.as_str()) {
        return format!("--dir {location}");
    }
    format!("{} in {}, {}", entry.addon, entry.origin, entry.place)
}

/// The objects of an entry as they would be installed, without an installation; for a named version of Kubernetes no cluster
/// is asked.
///
/// # Errors
/// A source, a template or a manifest that fails, with its place.
pub async fn of_entry(session: &Session, entry: &Entry, fit: &Fit) -> Result<Rendered> {
    let name = InstallationName {
        namespace: session.global().system_namespace.clone(),
        name: installation_name(&entry.addon),
    };
    // The rules say nothing about content.
    let mut candidate = Candidate::new(name, None, entry.clone(), Rules::Auto);
    candidate.inputs = match &fit.k8s {
        Some(version) => Inputs::given(&candidate, Data::of_version(version)),
        None => Inputs::read(session, &candidate).await?,
    };
    let verified = fetch(session, &candidate).await?;
    objects(session, &candidate, verified).await
}

/// The text of a package, rendered.
///
/// # Errors
/// A template or a chart that fails.
pub async fn text(session: &Session, candidate: &Candidate, package: Package) -> Result<Text> {
    match candidate.entry.version.template.method {
        Method::Manifest => Ok(Text::plain(package)),
        Method::GoTemplate => templates(session, candidate, &package),
        Method::Helm => {
            let is_upgrade = occasion(candidate) == Occasion::Upgrade;
            chart::text(session, candidate, package, is_upgrade).await
        }
    }
}

fn templates(session: &Session, candidate: &Candidate, package: &Package) -> Result<Text> {
    let inputs = &candidate.inputs;
    let layers = inputs.with_package(text::package_values(package)?);
    let data = inputs.document(&layers.merged());
    let registry = candidate.registry()?;
    let options = kkp::Options {
        strict: session.global().strict,
        registry,
        ..kkp::Options::default()
    };
    let text = Text::of_templates(package, &data, &options);
    text.map_err(|error| masked(error.into(), &inputs.mask()))
}

/// An error about what was rendered, which may repeat what a template made of a Secret.
pub fn masked(error: anyhow::Error, mask: &Mask) -> anyhow::Error {
    if mask.is_empty() {
        return error;
    }
    let mut causes = error.chain().map(|cause| mask.text(&cause.to_string()));
    let words: Vec<String> = causes.by_ref().collect();
    anyhow::Error::msg(words.join(": "))
}

/// Whether something is installed already.
fn occasion(candidate: &Candidate) -> Occasion {
    let existing = candidate.existing.as_ref();
    let status = existing.and_then(|record| record.status.as_ref());
    match status.and_then(|status| status.installed.as_ref()) {
        Some(_) => Occasion::Upgrade,
        None => Occasion::Install,
    }
}

#[cfg(test)]
mod tests {
    use common::manifest::parse;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_about_what_was_rendered_tells_no_secret() {
        let mask = Mask::of([json!({"password": "hunter22"})].iter());
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hunter22}\n";
        let rendered = format!("{object}---\n{object}data: {{a: b}}\n");
        let error = parse::parse(rendered.as_bytes(), "a.yaml", &Options::default()).unwrap_err();
        let error = anyhow::Error::from(error).context("web");
        assert!(format!("{error:#}").contains("hunter22"), "{error:#}");
        let error = masked(error, &mask);
        assert!(!format!("{error:#}").contains("hunter22"), "{error:#}");
        assert!(error.to_string().starts_with("web: "), "{error}");
    }
}
