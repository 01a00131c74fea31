//! Plans several candidates of one command: all are fetched first, for one may define the kinds of another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail};
use common::catalogue::due::Due;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::plan::InstallationName;
use common::plan::order::defined_kind;
use common::plan::prune::limit::PruneLimit;
use common::plan::schema::Schemas;

use crate::cli::operation::Delete;
use crate::output;
use crate::session::Session;

use super::candidate::Candidate;
use super::content::{Rendered, content};
use super::fetch::fetch;
use super::inputs::Inputs;
use super::known::Known;
use super::prepare::{PlanFlags, Prepared, Surroundings, prepare};
use super::required_types::RequiredTypes;
use super::requirements::{self, Available};

/// What the user said about how plans are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    /// Restore what was edited or deleted, even where no other version is due.
    pub repair: bool,
    /// Accept a lower version.
    pub allow_downgrade: bool,
    /// How much of what is installed may be pruned.
    pub allow_prune: PruneLimit,
    /// Kinds that are deleted although they hold data.
    pub delete: Delete,
    /// How long types are waited for that add-ons require; `None` for commands that only show what they would do. A plan does
    /// not depend on it.
    pub wait_for_types: Option<Duration>,
}

/// A candidate, and its plan; `None` where nothing is due: then nothing was read of the live objects.
pub type Planned = (Candidate, Result<Option<Prepared>>);

/// Plans candidates. The failure of one says nothing of the others.
///
/// # Errors
/// What is required and neither there nor part of the command.
pub async fn plan(
    session: &Session,
    known: &Known,
    available: &Available,
    candidates: Vec<Candidate>,
    flags: Flags,
) -> Result<Vec<Planned>> {
    let mut planned = Vec::new();
    let mut loaded = Vec::new();
    for mut candidate in candidates {
        match load(session, &mut candidate, flags).await {
            Ok(Some((content, due))) => loaded.push((candidate, content, due)),
            Ok(None) => planned.push((candidate, Ok(None))),
            Err(error) => planned.push((candidate, Err(error))),
        }
    }
    let due: Vec<&Candidate> = loaded.iter().map(|(candidate, ..)| candidate).collect();
    let order = match requirements::order(&due, known, available) {
        Ok(order) => order,
        // What could not be read is missed by those that require it: the cause is told, not its consequence.
        Err(refusal) => {
            let mut failed = planned.into_iter().filter_map(|(_, outcome)| outcome.err());
            return Err(failed.next().unwrap_or(refusal));
        }
    };
    let mut surroundings = Surroundings {
        kinds: KindTable::default(),
        namespaces: BTreeSet::new(),
        claims: BTreeMap::new(),
        schemas: Schemas::of(loaded.iter().flat_map(|(_, content, _)| &content.manifests)),
    };
    for (_, content, _) in &loaded {
        for manifest in &content.manifests {
            if defined_kind(&manifest.object).is_some() {
                surroundings.kinds.insert_crd(&manifest.object);
            }
            let key = ObjectKey::of(&manifest.object);
            let namespace = key.filter(|key| key.group.is_empty() && key.kind == "Namespace");
            (surroundings.namespaces).extend(namespace.map(|key| key.name));
        }
    }
    let required = RequiredTypes::new(
        loaded
            .iter()
            .map(|(candidate, content, _)| (&candidate.name, content.manifests.as_slice())),
        flags.wait_for_types,
    );
    for ((candidate, content, due), mut first) in loaded.into_iter().zip(order) {
        match required.settle(session, &candidate).await {
            Ok(bringing) => first.extend(bringing),
            Err(error) => {
                planned.push((candidate, Err(error)));
                continue;
            }
        }
        let flags = PlanFlags {
            due,
            allow_prune: flags.allow_prune,
            delete: flags.delete,
        };
        let mut outcome = prepare(
            session,
            known,
            &surroundings,
            candidate.clone(),
            content,
            flags,
        )
        .await;
        if let Ok(prepared) = &mut outcome {
            prepared.requires = first;
            surroundings
                .claims
                .extend(claims(prepared, &candidate.name));
        }
        let outcome =
            outcome.map(|prepared| (due || !prepared.plan.is_empty()).then_some(prepared));
        planned.push((candidate, outcome));
    }
    Ok(planned)
}

/// The objects of a candidate, and whether it is due; `None` where there is nothing to do.
async fn load(
    session: &Session,
    candidate: &mut Candidate,
    flags: Flags,
) -> Result<Option<(Rendered, bool)>> {
    candidate.inputs = Inputs::read(session, candidate).await?;
    let mut due = candidate.due(None);
    let mut fetched = None;
    if due == Due::No && candidate.entry.version.manifest_hash.is_none() {
        let verified = fetch(session, candidate).await?;
        due = candidate.due(Some(&verified.manifest_hash));
        fetched = Some(verified);
    }
    match &due {
        Due::Downgrade { from, to } if !flags.allow_downgrade => {
            let name = &candidate.name.name;
            if candidate.is_asked_for {
                bail!(
                    "{name} {from} is installed and {to} is lower\n  look:   kubectl addons show {}\n  accept: --allow-downgrade",
                    candidate.entry.addon
                );
            }
            output::note(&format!(
                "careful: {name} {from} is newer than {to}, the newest that fits; it stays"
            ));
            return Ok(None);
        }
        Due::No
            if !flags.repair
                && !candidate.is_ensured()
                && !candidate.retains(&flags.delete.kinds()) =>
        {
            return Ok(None);
        }
        _ => {}
    }
    let verified = match fetched {
        Some(verified) => verified,
        None => fetch(session, candidate).await?,
    };
    let content = content(session, candidate, verified).await?;
    Ok(Some((content, due != Due::No || flags.repair)))
}

fn claims<'a>(
    prepared: &'a Prepared,
    name: &'a InstallationName,
) -> impl Iterator<Item = (ObjectKey, InstallationName)> + 'a {
    prepared
        .plan
        .exact
        .objects
        .keys()
        .map(|key| (key.clone(), name.clone()))
}
