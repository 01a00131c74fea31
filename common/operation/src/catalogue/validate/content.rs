//! Checks the content that a catalogue entry refers to: that it can be read, has the hash in the entry, and fits the method.

use std::io::ErrorKind;

use addons_helm::HelmError;
use addons_render::hooks::{self, Occasion, OmittedObject};
use addons_render::package::Package;
use addons_render::text::{self, RenderedText};
use addons_sources::url::UrlError;
use addons_sources::{SourceError, archive};
use common::api::catalogue::{Method, SourceKind};
use common::catalogue::CatalogueEntry;
use common::catalogue::local::local_location;
use common::manifest::digest::HashError;
use common::manifest::parse::{ManifestError, ManifestOptions};

use super::SourceScope;
use crate::context::Context;
use crate::error::OperationError;
use crate::{fetch, render};

/// What messages call an inline manifest.
const INLINE: &str = "manifest";

/// A flaw of an entry.
pub(super) struct Flaw {
    /// The field, relative to the entry.
    pub(super) field: String,
    /// The line and column in the text of the field.
    pub(super) inside: Option<(usize, usize)>,
    /// What is wrong.
    pub(super) message: String,
    /// Whether an installation continues in spite of it.
    pub(super) is_warning: bool,
}

/// Returns the flaws that an installation of an entry would find, whatever the cluster and the values are.
pub(super) async fn find_flaws(
    ctx: &Context,
    entry: &CatalogueEntry,
    sources: SourceScope,
) -> Vec<Flaw> {
    // A rule reports sources with no kind or with several.
    let Ok(kind) = entry.version.source.kind() else {
        return Vec::new();
    };
    let base = entry.base_url.as_deref().unwrap_or_default();
    let is_inline = matches!(kind, SourceKind::Inline(_));
    let is_local = match local_location(&entry.version.source, base) {
        Ok(location) => is_inline || location.is_some(),
        // A location that cannot be resolved is not a server.
        Err(_) => true,
    };
    if !is_local && sources == SourceScope::Local {
        return Vec::new();
    }
    let (field, written) = match kind {
        SourceKind::Git(_) => ("source.git", None),
        SourceKind::Docker(_) => ("source.docker", None),
        SourceKind::Helm(_) => ("source.helm", None),
        SourceKind::Url(url) => ("source.url.manifest", Some(url.manifest.as_str())),
        SourceKind::Inline(_) => ("source.inline.manifest", Some(INLINE)),
        // A rule reports it.
        SourceKind::Catalogue(_) => return Vec::new(),
    };
    let flaw = |message| Flaw {
        field: field.to_owned(),
        inside: None,
        message,
        is_warning: false,
    };
    let resolved = render::resolve_uninstalled(ctx, entry);
    let verified = match fetch::package(ctx, &resolved).await {
        Ok(verified) => verified,
        Err(error) => return fetch_flaw(&error, flaw).into_iter().collect(),
    };
    let fetched = verified.fetched;
    let location = written.unwrap_or(&fetched.location);
    let method = entry.version.template.method;
    let package = match method {
        Method::Helm => fetched.package,
        Method::Manifest | Method::GoTemplate => match archive::unpack_package(fetched.package) {
            Ok(package) => package,
            Err(error) => return vec![flaw(SourceError::Archive(error).to_string())],
        },
    };
    let mut left_out = Vec::new();
    let found = match method {
        Method::Manifest => {
            let options = ManifestOptions {
                duplicate_keys: ctx.duplicate_keys(),
                ..ManifestOptions::default()
            };
            let text = RenderedText::from_manifests(package);
            if let Ok(parsed) = text.parse_objects(location, &options) {
                let kept = hooks::select_for_occasion(parsed.manifests, Occasion::Install, method);
                left_out.extend(kept.left_out.iter().map(left_out_message));
            }
            text.find_mistakes(location, &options)
                .iter()
                .map(manifest_message)
                .collect()
        }
        Method::GoTemplate => check_templates(&package, location),
        Method::Helm => check_chart(&package),
    };
    let mistakes = found.into_iter().map(|found| (found, false));
    let all = mistakes.chain(left_out.into_iter().map(|found| (found, true)));
    all.map(|((inside, message), is_warning)| Flaw {
        inside: inside.filter(|_| is_inline),
        message: match inside {
            Some(_) if !is_inline => message,
            _ => strip_place(message, is_inline),
        },
        is_warning,
        ..flaw(String::new())
    })
    .collect()
}

/// Removes the place from a message about an inline text.
fn strip_place(message: String, is_inline: bool) -> String {
    let rest = message.strip_prefix(INLINE).filter(|_| is_inline);
    let rest = rest.and_then(|rest| {
        let rest = rest.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        rest.strip_prefix(' ')
    });
    rest.map_or(message.clone(), str::to_owned)
}

/// The line and column in a file, and a message, which names the place as well.
type LocatedMessage = (Option<(usize, usize)>, String);

fn fetch_flaw(error: &OperationError, flaw: impl Fn(String) -> Flaw) -> Option<Flaw> {
    let root = error.root();
    let of_hash = |message: String| Flaw {
        field: "manifestHash".to_owned(),
        ..flaw(message)
    };
    Some(match root {
        // A rule reports these.
        OperationError::Hash(HashError::Md5 { .. } | HashError::NotAHash { .. }) => return None,
        OperationError::Hash(_) | OperationError::PartialHash { .. } => {
            let message = root.to_string();
            let message = message.strip_prefix("manifestHash ").unwrap_or(&message);
            of_hash(message.to_owned())
        }
        OperationError::Source(source) => {
            let message = match &**source {
                SourceError::Url(error) => missing_file_message(error),
                _ => None,
            };
            flaw(message.unwrap_or_else(|| root.chain()))
        }
        root => flaw(root.chain()),
    })
}

/// Returns a message for a file that does not exist.
pub(super) fn missing_file_message(error: &UrlError) -> Option<String> {
    match error {
        UrlError::File { location, source } if source.kind() == ErrorKind::NotFound => {
            Some(format!("there is no file {location}"))
        }
        _ => None,
    }
}

fn manifest_message(error: &ManifestError) -> LocatedMessage {
    let place = error.place().filter(|place| place.line > 0);
    let inside = place.map(|place| (place.line, place.column.max(1)));
    let mut message = error.to_string();
    if let ManifestError::Yaml { problem, .. } = error {
        message.push_str(&format!(": {problem}"));
    }
    (inside, message)
}

/// Returns a message for an object that no installation applies.
fn left_out_message(left_out: &OmittedObject) -> LocatedMessage {
    let line = left_out.place.line;
    let inside = (line > 0).then_some((line, left_out.place.column.max(1)));
    (inside, left_out.to_string())
}

fn check_templates(package: &Package, location: &str) -> Vec<LocatedMessage> {
    let invalid = text::invalid_templates(package, location).into_iter();
    let mut found: Vec<LocatedMessage> = invalid
        .map(|(place, problem)| {
            let inside = (place.line > 0).then_some((place.line, place.column));
            (inside, format!("{place}: {problem}"))
        })
        .collect();
    if let Err(error) = text::package_values(package) {
        found.push((None, OperationError::from(error).chain()));
    }
    found
}

fn check_chart(package: &Package) -> Vec<LocatedMessage> {
    let chart = addons_helm::chart_files(package).and_then(|files| {
        let chart = addons_helm::read_chart(&files)?;
        let archived = archive::archived_charts(&files);
        chart
            .missing_dependencies(&files, &archived)
            .map(drop)
            .map_err(HelmError::Chart)
    });
    let error = chart.err().map(OperationError::from);
    error.into_iter().map(|it| (None, it.chain())).collect()
}
