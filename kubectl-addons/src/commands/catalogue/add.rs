//! `catalogue add LOCATION…`

use addons_admission::validate;
use addons_engine::catalogues::{self, CatalogueWrite};
use addons_engine::{EngineError, local};
use addons_operation::catalogue::find_named;
use anyhow::{Context as _, Result, bail};
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec, CatalogueFrom, UrlSource};
use common::api::names;
use common::catalogue::author::Typed;
use common::catalogue::relative;

use super::objects;
use crate::cli::reading::CatalogueAddArgs;
use crate::contained::inline_all;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::session::Session;
use addons_operation::Records;
use addons_operation::builtin::definitions;
use addons_operation::catalogue::file::{ReferredCatalogue, check_size, make_reference, md5};
use addons_operation::error::OperationError;
use addons_operation::resolve::verdict;
use addons_sources::location::{self, LocatedCatalogue};
use addons_sources::url;

/// Adds catalogues, or replaces those with the same name. All are read and validated before the first one is written.
///
/// # Errors
/// A location cannot be read, validation denies a catalogue, or the server refuses it.
pub async fn run(session: &Session, args: &CatalogueAddArgs) -> Result<Exit> {
    let added = read_locations(session, args).await?;
    let objects: Vec<&AddonCatalogue> = added.iter().map(|one| &one.object).collect();
    let known = Records::read(session.ctx()).await?;
    let existing = session.ctx().catalogues().await?;
    let requester = objects::find_requester(
        session,
        &existing.iter().chain(objects.clone()).collect::<Vec<_>>(),
    )
    .await?;
    let mut facts = verdict::collect_facts(session.ctx(), &known, Default::default(), true).await?;
    for one in &added {
        let content = one.content.as_ref().unwrap_or(&one.object);
        let name = objects::catalogue_name(content);
        let old = existing
            .iter()
            .find(|old| objects::catalogue_name(old) == name);
        let judged = validate::validate_catalogue(content, old, &requester, &facts);
        verdict::conclude(session.ctx(), &format!("catalogue {name}"), &judged)?;
        facts.replace_catalogue(content.clone());
        check_size(name, &one.object.spec).map_err(OperationError::from)?;
    }
    if known.uninitialised {
        definitions::ensure(session.ctx(), !args.no_init).await?;
    }
    for object in &objects {
        let written = write(session, object).await?;
        output::note(&describe_written(object, written));
    }
    sync_empty(session, &objects).await
}

/// A catalogue as it will be stored.
struct AddedCatalogue {
    object: AddonCatalogue,
    /// The content of its file, if the catalogue is by reference.
    content: Option<AddonCatalogue>,
}

/// Syncs the catalogues that only say where their add-ons come from. For catalogues by reference this writes the status.
async fn sync_empty(session: &Session, added: &[&AddonCatalogue]) -> Result<Exit> {
    let mut worst = Exit::Done;
    let mut empty = added
        .iter()
        .filter(|object| object.spec.from.is_some())
        .filter(|object| object.spec.addons.is_empty() || object.spec.reference().is_some())
        .peekable();
    if empty.peek().is_none() {
        return Ok(worst);
    }
    let stored = session.ctx().fresh();
    let stored = stored.catalogues().await?;
    for object in empty {
        let object = find_named(stored, objects::catalogue_name(object))?;
        worst = worst.max(super::sync::sync_one(session, object).await.1);
    }
    Ok(worst)
}

async fn read_locations(session: &Session, args: &CatalogueAddArgs) -> Result<Vec<AddedCatalogue>> {
    let mut found = Vec::new();
    for location in &args.locations {
        let reach = session.ctx().reach_of_typed(location);
        let read = location::read(location, &session.ctx().access(&reach)).await?;
        found.extend(read.into_iter().map(|one| (location, one)));
    }
    if args.name.is_some() && found.len() != 1 {
        return Err(UsageError(format!(
            "--name can only be used with a single catalogue; these are {}",
            found.len()
        ))
        .into());
    }
    let mut objects: Vec<AddedCatalogue> = Vec::new();
    for (typed, mut one) in found {
        for warning in &md5::remove_hashes(session.rules(), &mut one) {
            output::warn(warning);
        }
        for warning in &one.warnings {
            output::warn(warning);
        }
        let location = one.location.clone();
        let object = name_object(session, args, one)?;
        if objects
            .iter()
            .any(|other| objects::catalogue_name(&other.object) == objects::catalogue_name(&object))
        {
            bail!(
                "two catalogues named {}; add one of them with --name",
                objects::catalogue_name(&object)
            );
        }
        objects.push(prepare_catalogue(session, args, (typed, &location), object).await?);
    }
    Ok(objects)
}

/// Prepares a catalogue for storing: with all its manifests, or by reference.
async fn prepare_catalogue(
    session: &Session,
    args: &CatalogueAddArgs,
    (typed, location): (&Typed, &str),
    mut object: AddonCatalogue,
) -> Result<AddedCatalogue> {
    if !args.by_reference && object.spec.reference().is_none() {
        let reach = session.ctx().reach_beside(typed, location);
        inline_all(
            &mut object,
            (typed, location),
            &session.ctx().access(&reach),
        )
        .await?;
        let content = None;
        return Ok(AddedCatalogue { object, content });
    }
    if object.spec.from.is_none() {
        return Err(UsageError(format!(
            "{location}: --by-reference needs a file that others can read: add it by URL, or say in spec.from where it is"
        ))
        .into());
    }
    let ReferredCatalogue { object, content } = make_reference(session.ctx(), &object).await?;
    let content = Some(content);
    Ok(AddedCatalogue { object, content })
}

/// Sets the name and namespace of the object.
fn name_object(
    session: &Session,
    args: &CatalogueAddArgs,
    located: LocatedCatalogue,
) -> Result<AddonCatalogue> {
    let LocatedCatalogue {
        mut object,
        location,
        ..
    } = located;
    let name = args
        .name
        .as_deref()
        .unwrap_or(objects::catalogue_name(&object))
        .to_owned();
    if !names::is_object_name(&name) {
        let problem = if name.is_empty() {
            "the catalogue has no name".to_owned()
        } else {
            format!(
                "{name:?} cannot be the name of a catalogue (lower-case letters, digits, - and .)"
            )
        };
        return Err(UsageError(format!("{location}: {problem}; give it one with --name")).into());
    }
    if let Some(namespace) = object.metadata.namespace.as_deref()
        && namespace != session.global().system_namespace
    {
        bail!(
            "{location}: catalogue {name} is meant for namespace {namespace}; source catalogues live in {} (--system-namespace)",
            session.global().system_namespace
        );
    }
    // Other clients cannot read a file on this machine.
    if object.spec.from.is_none() && !location.starts_with("file:") {
        object.spec.from = Some(match location.starts_with(url::ARTIFACT) {
            true => resolve_in_artifact(&mut object.spec, &location)?,
            false => CatalogueFrom::from_url(&location),
        });
    }
    object.metadata.name = Some(name);
    object.metadata.namespace = Some(session.global().system_namespace.clone());
    Ok(object)
}

/// Returns the origin of a catalogue in a registry. Manifests beside it in the artifact become sources of their own, because a cluster
/// resolves no location in a registry.
fn resolve_in_artifact(spec: &mut AddonCatalogueSpec, location: &str) -> Result<CatalogueFrom> {
    let from = CatalogueFrom {
        docker: Some(url::artifact_source(location)?),
        ..CatalogueFrom::default()
    };
    if spec.base_url.as_deref() == Some(location) {
        spec.base_url = None;
    }
    if let Some((_, digest)) = location.rsplit_once('@') {
        relative::resolve(spec, &from, digest).with_context(|| location.to_owned())?;
        return Ok(from);
    }
    let mut versions = spec.addons.iter().flat_map(|addon| &addon.versions);
    let is_relative = |url: &UrlSource| spec.base_url.is_none() && !url.manifest.contains("://");
    match versions.any(|version| version.source.url.as_ref().is_some_and(is_relative)) {
        false => Ok(from),
        true => Err(UsageError(format!(
            "{location}: its manifests lie beside it in the artifact, and a tag may move; add it by digest: oci://HOST/NAME@sha256:DIGEST"
        ))
        .into()),
    }
}

async fn write(session: &Session, object: &AddonCatalogue) -> Result<CatalogueWrite> {
    let cluster = session.cluster().await?;
    match catalogues::put(cluster, object).await {
        // The system namespace does not exist yet.
        Err(EngineError::Api { code: 404, .. }) => {
            local::ensure(cluster, &session.global().system_namespace).await?;
            Ok(catalogues::put(cluster, object).await?)
        }
        other => Ok(other?),
    }
}

fn describe_written(object: &AddonCatalogue, written: CatalogueWrite) -> String {
    let word = match written {
        CatalogueWrite::Created => "added",
        CatalogueWrite::Replaced => "replaced",
        CatalogueWrite::Unchanged => {
            return format!("catalogue {} is as it was", objects::catalogue_name(object));
        }
    };
    format!(
        "catalogue {} {word}: {}",
        objects::catalogue_name(object),
        objects::count_content(object)
    )
}
