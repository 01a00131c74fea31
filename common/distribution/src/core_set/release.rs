//! Releases core installations, or everything in a cluster that is being deleted (semantics 14.1, 14.6).

use addons_admission::marks::GuardMarks;
use addons_admission::rules::installation::guards;
use addons_admission::rules::namespace;
use addons_admission::verdict::{AdmissionProblem, Verdict};
use addons_admission::{AdmissionFacts, AdmissionSettings};
use addons_engine::{core_set, record};
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::released_record;
use common::api::names::{ANNOTATION_CLUSTER_DELETING, InstallationName, MARKED};

use addons_operation::context::Context;
use addons_operation::error::OperationError;
use addons_operation::records::name_of;
use addons_operation::resolve::verdict::conclude;

/// Marks a core installation as released, so that it may be uninstalled. Returns whether the mark is new.
///
/// # Errors
/// The verdict is a denial, or the server refuses.
pub async fn release(ctx: &Context, core: &AddonInstallation) -> Result<bool, OperationError> {
    let Some(marked) = released_record(core) else {
        return Ok(false);
    };
    let requester = ctx.requester().await?;
    let (new, old) = (
        GuardMarks::from_installation(&marked),
        GuardMarks::from_installation(core),
    );
    let problem = guards::release_mark(&new, Some(&old), requester, &facts(ctx));
    check_verdict(ctx, &format!("releasing {}", name_of(core)), problem).await?;
    core_set::release(ctx.home().await?, core, false).await?;
    Ok(true)
}

/// Marks the namespace of the command, whose cluster is being deleted, and takes the finalizers from its records, so that deleting the
/// namespace waits for nothing. Sends no request to the cluster itself. Returns the records that had a finalizer.
///
/// # Errors
/// The verdict is a denial, or the server refuses.
pub async fn release_cluster(ctx: &Context) -> Result<Vec<InstallationName>, OperationError> {
    let home = ctx.home().await?;
    let at = ctx.settings().records_namespace();
    let found = core_set::read_home(home, at).await?;
    if !found.is_some_and(|found| found.is_marked) {
        let mut marked = GuardMarks::default();
        marked.metadata.name = Some(at.to_owned());
        let mark = (ANNOTATION_CLUSTER_DELETING.to_owned(), MARKED.to_owned());
        marked.metadata.annotations = Some([mark].into());
        let problem = namespace::deleting_mark(&marked, None, ctx.requester().await?, &facts(ctx));
        check_verdict(ctx, &format!("marking namespace {at}"), problem).await?;
        core_set::mark_cluster_deleting(home, at).await?;
    }
    let mut freed = Vec::new();
    for record in record::list(home, Some(at)).await? {
        if core_set::remove_finalizers(home, &record).await? {
            freed.push(name_of(&record));
        }
    }
    Ok(freed)
}

fn facts(ctx: &Context) -> AdmissionFacts {
    AdmissionFacts {
        settings: AdmissionSettings {
            system_namespace: ctx.settings().system_namespace.clone(),
            ..AdmissionSettings::default()
        },
        ..AdmissionFacts::default()
    }
}

async fn check_verdict(
    ctx: &Context,
    what: &str,
    problem: Option<AdmissionProblem>,
) -> Result<(), OperationError> {
    let mut verdict = Verdict {
        problems: problem.into_iter().collect(),
        ..Verdict::default()
    };
    verdict.apply_break_glass(ctx.requester().await?);
    Ok(conclude(ctx, what, &verdict)?)
}
