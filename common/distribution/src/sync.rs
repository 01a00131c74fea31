//! Updates a catalogue of the cluster from the file that it comes from (semantics 1.4).
//!
//! The object names the file in `spec.from`, and keeps its class and registry whatever the file says. If the file cannot be read or is
//! refused, the add-ons stay unchanged, and a condition says why.

use addons_admission::verdict::Verdict;
use addons_admission::{AdmissionFacts, Requester, validate};
use addons_engine::EngineError;
use addons_engine::catalogues::{self, SyncFailure};
use addons_operation::catalogue::file::{self, check_size};
use addons_operation::context::Context;
use addons_operation::error::{CatalogueFileError, OperationError, within};
use addons_operation::records::Records;
use addons_operation::resolve::verdict;
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec, CatalogueClass};
use common::api::conditions;
use common::catalogue::is_copy;

/// A catalogue that is up to date.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncedCatalogue {
    /// The catalogue as it is stored now.
    pub object: AddonCatalogue,
    /// The commit, the digest of the image, or the sha256 of the file.
    pub revision: String,
    /// Whether its add-ons changed.
    pub is_changed: bool,
}

/// Updates a catalogue that was read before. If nothing changed, nothing is written. `is_loop` is set if no person runs it.
///
/// # Errors
/// The file cannot be read or is refused, which is also written into the status; those of the requests.
pub async fn sync(
    ctx: &Context,
    known: &AddonCatalogue,
    is_loop: bool,
) -> Result<SyncedCatalogue, OperationError> {
    let home = ctx.home().await?;
    let synced = sync_file(ctx, known, is_loop).await;
    match &synced {
        Ok(synced) => {
            let read = Ok(synced.revision.clone());
            catalogues::record_sync(home, &synced.object, &read).await?;
        }
        Err(error) => {
            if let Some(reason) = condition_reason(error) {
                let message = conditions::shorten_message(error.chain());
                let read = Err(SyncFailure { reason, message });
                catalogues::record_sync(home, known, &read).await?;
            }
        }
    }
    synced
}

async fn sync_file(
    ctx: &Context,
    known: &AddonCatalogue,
    is_loop: bool,
) -> Result<SyncedCatalogue, OperationError> {
    let name = known.metadata.name.clone().unwrap_or_default();
    if is_copy(&known.metadata) {
        return Err(CatalogueFileError::Copy { name }.into());
    }
    let from = file::named_file(known)?;
    let place = || format!("catalogue {name}");
    let file = within(file::fetch_file(ctx, known, from).await, place)?;
    let revision = file::revision(&file);
    let unchanged = |revision| SyncedCatalogue {
        object: known.clone(),
        revision,
        is_changed: false,
    };
    if is_current(known, &revision) {
        return Ok(unchanged(revision));
    }
    let (spec, content) = match known.spec.reference() {
        Some(_) => within(file::to_reference(ctx, known, from, file), place)?,
        None => {
            let content = within(file::read_content(ctx, known, from, file), place)?;
            (content.clone(), content)
        }
    };
    if spec == known.spec {
        return Ok(unchanged(revision));
    }
    check_size(&name, &spec)?;
    check_verdict(ctx, known, &content, is_loop).await?;
    let object = catalogues::replace(ctx.home().await?, known, spec).await?;
    Ok(SyncedCatalogue {
        object,
        revision,
        is_changed: true,
    })
}

/// Whether the status says that the object in this generation has this revision.
fn is_current(known: &AddonCatalogue, revision: &str) -> bool {
    let Some(status) = &known.status else {
        return false;
    };
    let condition = conditions::find_raised(&status.conditions, conditions::SYNCED);
    let is_of_object =
        condition.is_some_and(|it| it.observed_generation == known.metadata.generation);
    let read = status.synced.as_ref();
    is_of_object && read.is_some_and(|read| read.revision == revision)
}

/// Validates the catalogue as the webhook does.
async fn check_verdict(
    ctx: &Context,
    known: &AddonCatalogue,
    spec: &AddonCatalogueSpec,
    is_loop: bool,
) -> Result<(), OperationError> {
    let records = Records::read(ctx).await?;
    let facts = verdict::collect_facts(ctx, &records, Default::default(), true).await?;
    let requester = match spec.class {
        CatalogueClass::Core => ctx.requester().await?.clone(),
        CatalogueClass::Custom => Requester::default(),
    };
    let wanted = AddonCatalogue {
        spec: spec.clone(),
        ..known.clone()
    };
    let judged = verdict_on(&wanted, known, requester, is_loop, facts);
    let name = known.metadata.name.as_deref().unwrap_or_default();
    Ok(verdict::conclude(
        ctx,
        &format!("catalogue {name}"),
        &judged,
    )?)
}

/// Returns the verdict on the write. The webhook knows the user of the loop (`--core-user`), but the loop does not: it assumes that it is
/// that user, and the API server decides (semantics 8).
fn verdict_on(
    wanted: &AddonCatalogue,
    known: &AddonCatalogue,
    requester: Requester,
    is_loop: bool,
    mut facts: AdmissionFacts,
) -> Verdict {
    if is_loop {
        facts.settings.core_users.push(requester.user.clone());
    }
    validate::validate_catalogue(wanted, Some(known), &requester, &facts)
}

/// Returns the reason of the condition, or `None` if the error does not concern the file.
fn condition_reason(error: &OperationError) -> Option<&'static str> {
    match error.root() {
        OperationError::Refused(_) | OperationError::Engine(EngineError::Denied { .. }) => {
            Some("Refused")
        }
        OperationError::CatalogueFile(CatalogueFileError::TooLarge { .. }) => Some("TooLarge"),
        OperationError::CatalogueFile(
            CatalogueFileError::NoFrom { .. } | CatalogueFileError::Copy { .. },
        )
        | OperationError::Engine(_)
        | OperationError::Connect(_)
        | OperationError::NoCluster => None,
        _ => Some("Unreadable"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_brings_catalogues_of_class_core_up_to_date() {
        let spec = AddonCatalogueSpec {
            class: CatalogueClass::Core,
            ..AddonCatalogueSpec::default()
        };
        let known = AddonCatalogue::new("core", spec);
        let mut wanted = known.clone();
        wanted.spec.registry = Some("mirror.example.test".to_owned());
        let account = Requester {
            user: "system:serviceaccount:kubectl-addons-reconciler:addons-reconciler".to_owned(),
            groups: Vec::new(),
        };
        for (is_loop, broken) in [(false, &["class-core"][..]), (true, &[])] {
            let verdict = verdict_on(
                &wanted,
                &known,
                account.clone(),
                is_loop,
                AdmissionFacts::default(),
            );
            let rules: Vec<_> = verdict.problems.iter().map(|it| it.rule).collect();
            assert_eq!(rules, broken);
        }
    }
}
