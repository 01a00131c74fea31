//! `catalogue add LOCATION…`

use addons_engine::catalogues::{self, Written};
use addons_engine::{EngineError, local};
use anyhow::{Result, bail};
use common::admission::validate;
use common::api::catalogue::{AddonCatalogue, CatalogueFrom};
use common::api::names;

use super::contained::contain;
use crate::cli::reading::CatalogueAdd;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use crate::usage::Usage;
use addons_operation::Records;
use addons_operation::definitions;
use addons_operation::distribution::md5;
use addons_operation::verdict;
use addons_sources::location::{self, Located};

/// Adds catalogues, or replaces those of the same name. All are read and judged before the first one is written.
///
/// # Errors
/// A location that cannot be read; a verdict that is a denial; what the server refuses.
pub async fn run(session: &Session, args: &CatalogueAdd) -> Result<Exit> {
    let objects = read(session, args).await?;
    let known = Records::read(session.ctx()).await?;
    let existing = session.ctx().catalogues().await?;
    let requester =
        super::requester(session, &objects.iter().chain(existing).collect::<Vec<_>>()).await?;
    let mut facts = verdict::facts(session.ctx(), &known, Default::default(), true).await?;
    for object in &objects {
        let old = existing
            .iter()
            .find(|old| super::name(old) == super::name(object));
        let judged = validate::catalogue(object, old, &requester, &facts);
        let what = format!("catalogue {}", super::name(object));
        verdict::conclude(session.ctx(), &what, &judged)?;
        super::replace(&mut facts, object.clone());
    }
    if known.uninitialised {
        definitions::ensure(session.ctx(), !args.no_init).await?;
    }
    for object in &objects {
        let written = write(session, object).await?;
        output::note(&done(object, written));
    }
    fill(session, &objects).await
}

/// Reads the add-ons of those that only say where they come from.
async fn fill(session: &Session, added: &[AddonCatalogue]) -> Result<Exit> {
    let mut worst = Exit::Done;
    let mut empty = added
        .iter()
        .filter(|object| object.spec.from.is_some() && object.spec.addons.is_empty())
        .peekable();
    if empty.peek().is_none() {
        return Ok(worst);
    }
    let stored = session.ctx().fresh();
    let stored = stored.catalogues().await?;
    for object in empty {
        let object = super::named(stored, super::name(object))?;
        worst = worst.max(super::sync::one(session, object).await.1);
    }
    Ok(worst)
}

async fn read(session: &Session, args: &CatalogueAdd) -> Result<Vec<AddonCatalogue>> {
    let mut found = Vec::new();
    for location in &args.locations {
        found.extend(location::read(location, &session.ctx().access()).await?);
    }
    if args.name.is_some() && found.len() != 1 {
        return Err(Usage(format!(
            "--name goes with one catalogue only, these are {}",
            found.len()
        ))
        .into());
    }
    let mut objects = Vec::new();
    for mut one in found {
        for warning in &md5::take_out(session.rules(), &mut one) {
            output::warn(warning);
        }
        for warning in &one.warnings {
            output::warn(warning);
        }
        let mut object = resolve(session, args, one)?;
        contain(&mut object, &session.ctx().access()).await?;
        if objects
            .iter()
            .any(|other| super::name(other) == super::name(&object))
        {
            bail!(
                "two catalogues named {}; add one of them with --name",
                super::name(&object)
            );
        }
        objects.push(object);
    }
    Ok(objects)
}

/// Gives the object its name and namespace.
fn resolve(session: &Session, args: &CatalogueAdd, located: Located) -> Result<AddonCatalogue> {
    let Located {
        mut object,
        location,
        ..
    } = located;
    let name = args
        .name
        .as_deref()
        .unwrap_or(super::name(&object))
        .to_owned();
    if !names::is_object_name(&name) {
        let problem = if name.is_empty() {
            "the catalogue has no name".to_owned()
        } else {
            format!(
                "{name:?} cannot be the name of a catalogue (lower-case letters, digits, - and .)"
            )
        };
        return Err(Usage(format!("{location}: {problem}; give it one with --name")).into());
    }
    if let Some(namespace) = object.metadata.namespace.as_deref()
        && namespace != session.global().system_namespace
    {
        bail!(
            "{location}: catalogue {name} is meant for namespace {namespace}; source catalogues live in {} (--system-namespace)",
            session.global().system_namespace
        );
    }
    // A file on this machine is nothing that another client could read again.
    if object.spec.from.is_none() && !location.starts_with("file:") {
        object.spec.from = Some(CatalogueFrom::of_url(&location));
    }
    object.metadata.name = Some(name);
    object.metadata.namespace = Some(session.global().system_namespace.clone());
    Ok(object)
}

async fn write(session: &Session, object: &AddonCatalogue) -> Result<Written> {
    let cluster = session.cluster().await?;
    match catalogues::put(cluster, object).await {
        // The namespace of the definitions' first use is missing.
        Err(EngineError::Api { code: 404, .. }) => {
            local::ensure(cluster, &session.global().system_namespace).await?;
            Ok(catalogues::put(cluster, object).await?)
        }
        other => Ok(other?),
    }
}

fn done(object: &AddonCatalogue, written: Written) -> String {
    let word = match written {
        Written::Created => "added",
        Written::Replaced => "replaced",
        Written::Unchanged => return format!("catalogue {} is as it was", super::name(object)),
    };
    format!(
        "catalogue {} {word}: {}",
        super::name(object),
        super::counts(object)
    )
}
