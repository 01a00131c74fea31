//! `show NAME[@VERSION]`: shows an add-on, and why other versions were rejected.

mod documents;
mod patches;
mod text;

use std::collections::BTreeSet;

use anyhow::Result;
use common::api::catalogue::{Deprecation, FormField, Method, Requirement, Source, Support};
use common::catalogue::select::{ClusterVersions, Rejection, Selection, SelectionRules, select};
use common::catalogue::{CatalogueEntry, Origin};
use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use serde::Serialize;
use serde_json::Value;

use super::chosen::{self, LookupScope};
use crate::cli::OutputFormat;
use crate::cli::reading::ShowArgs;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use addons_operation::render::{self, Rendered};
use addons_operation::resolve::choose::choose;
use addons_operation::{VersionedName, delegate};

/// An add-on as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownAddon {
    name: String,
    /// The version that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    support: Option<Support>,
    /// Set if the entry, or the best one where none fits, is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<Deprecation>,
    /// The versions that entries had to fit.
    cluster: ShownCluster,
    /// The rules that chose the entry.
    rules: SelectionRules,
    /// The entry that fits. Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<ShownEntry>,
    /// The content of the entry's manifest. Absent if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ShownContent>,
    passed_over: Vec<ShownRejection>,
}

/// The versions of a cluster without their pre-release. Absent if unknown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownCluster {
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kkp: Option<String>,
}

/// The chosen entry.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownEntry {
    version: String,
    id: String,
    origin: Origin,
    place: String,
    method: Method,
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    form: Vec<FormField>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requires: Vec<Requirement>,
}

/// The content of a manifest.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownContent {
    location: String,
    /// The hash of the entry, or the computed one.
    manifest_hash: String,
    /// Whether the manifest was verified with a hash of the entry.
    verified: bool,
    objects: Vec<ObjectKey>,
    images: Vec<String>,
}

/// An entry that was rejected.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownRejection {
    version: String,
    id: String,
    origin: Origin,
    /// The reason as a sentence.
    reason: String,
}

/// Shows an add-on. If nothing fits, shows that, and the exit code is 5. `--values` and `--readme` print a document instead.
///
/// # Errors
/// The add-on is unknown, its manifest cannot be fetched, verified or read (everything else is shown first), or for a document nothing
/// fits. `--patches` is about an installation.
pub async fn run(session: &Session, args: &ShowArgs) -> Result<Exit> {
    if args.patches {
        return patches::run(session, args).await;
    }
    let offered = LookupScope {
        source: &args.source,
        registry: args.site.registry.as_deref(),
        fit: &args.fit,
    };
    let found = chosen::find_addon(session, &offered, &args.addon).await?;
    let catalogue = &found.catalogue;
    let request = found.request();
    let facts = chosen::fit_facts(session, catalogue, &args.fit).await?;
    if args.values || args.readme {
        let (entry, selection) = choose(catalogue, &request, &facts, session.rules())?;
        selection
            .warnings
            .iter()
            .for_each(|warning| output::warn(warning));
        return documents::print_document(session, args, &entry).await;
    }
    let selection = select(catalogue, &request, &facts, session.rules());
    let unavailable = delegate::find_unavailable(session.ctx()).await?;
    let fetched = match &selection.chosen {
        Some(_) if unavailable.is_some() => {
            output::note("its objects are not shown: you may not read what they are made from");
            None
        }
        Some(entry) => {
            Some(render::render_entry(session.ctx(), entry, args.fit.k8s.as_deref()).await)
        }
        None => None,
    };
    let is_chart = |entry: &CatalogueEntry| entry.version.template.method == Method::Helm;
    let (rendered, failure) = match fetched.transpose() {
        Ok(rendered) => (rendered, None),
        // Rendering needs helm, and possibly values that only an installation has.
        Err(error) if selection.chosen.as_ref().is_some_and(is_chart) => {
            output::warn(&format!("the chart is not rendered: {}", error.chain()));
            (None, None)
        }
        Err(error) => (None, Some(error)),
    };
    for warning in selection
        .warnings
        .iter()
        .chain(rendered.iter().flat_map(|rendered| &rendered.warnings))
    {
        output::warn(warning);
    }
    let shown = ShownAddon::new(found.wish, &facts, &selection, rendered);
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&shown, args.output.format)?,
        OutputFormat::Name => output::print_names("addon", std::iter::once(shown.name.as_str())),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&text::render_addon(&shown)),
    }
    match failure {
        Some(error) => Err(error.into()),
        None if selection.chosen.is_none() => Ok(Exit::DoesNotFit),
        None => Ok(Exit::Done),
    }
}

impl ShownAddon {
    fn new(
        wish: VersionedName,
        facts: &ClusterVersions,
        selection: &Selection,
        rendered: Option<Rendered>,
    ) -> Self {
        let best = selection
            .rejections
            .first()
            .map(|rejection| &rejection.entry);
        let known = selection.chosen.as_ref().or(best);
        let has_hash = selection
            .chosen
            .as_ref()
            .is_some_and(|entry| entry.verifiable_hash().is_some());
        Self {
            name: wish.name,
            asked_for: wish.version,
            description: known.and_then(|entry| entry.description.clone()),
            support: known.and_then(|entry| entry.support),
            deprecated: known.and_then(|entry| entry.deprecated.clone()),
            cluster: ShownCluster {
                kubernetes: facts.kubernetes.as_ref().map(ToString::to_string),
                kkp: facts.kkp.as_ref().map(ToString::to_string),
            },
            rules: selection.rules,
            entry: selection.chosen.as_ref().map(ShownEntry::new),
            content: rendered.map(|rendered| ShownContent::new(rendered, has_hash)),
            passed_over: selection
                .rejections
                .iter()
                .map(ShownRejection::new)
                .collect(),
        }
    }
}

impl ShownEntry {
    fn new(entry: &CatalogueEntry) -> Self {
        let version = entry.version.clone();
        Self {
            version: version.version,
            id: version.id,
            origin: entry.origin.as_ref().clone(),
            place: entry.place.clone(),
            method: version.template.method,
            source: version.source,
            default_namespace: version.default_namespace,
            values: version.values,
            form: version.template.form_spec,
            requires: version.requires,
        }
    }
}

impl ShownContent {
    fn new(rendered: Rendered, verified: bool) -> Self {
        let mut images = BTreeSet::new();
        for manifest in &rendered.manifests {
            images.extend(addons_render::images::find_images(&manifest.object));
        }
        let key = |manifest: &Manifest| ObjectKey::from_object(&manifest.object);
        Self {
            location: rendered.location,
            manifest_hash: rendered.manifest_hash,
            verified,
            objects: rendered.manifests.iter().filter_map(key).collect(),
            images: images.into_iter().collect(),
        }
    }
}

impl ShownRejection {
    fn new(rejection: &Rejection) -> Self {
        Self {
            version: rejection.entry.version.version.clone(),
            id: rejection.entry.version.id.clone(),
            origin: rejection.entry.origin.as_ref().clone(),
            reason: rejection.reason.to_string(),
        }
    }
}
