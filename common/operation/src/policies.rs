//! What administrators let this command install (semantics 19): the verdict of the webhook, and what only who fetches and renders can
//! judge. Every verb and the loop plan here, so all of them are refused before the first write.
//!
//! What is due is judged. A repair of live edits restores what was admitted, and is not.

use std::collections::{BTreeMap, BTreeSet};

use addons_admission::policy::{self, Candidate};
use addons_admission::verdict::Verdict;
use addons_admission::{Requester, validate, writer};
use addons_render::images::images;
use addons_render::objects::{Request, Source};
use common::api::catalogue::Method;
use common::api::installation::AddonInstallation;
use common::api::names::ANNOTATION_WRITTEN_BY;
use common::api::policy::{AddonPolicy, Allowed};
use common::manifest::yaml::DuplicateKeys;
use kube::ResourceExt as _;

use crate::chart;
use crate::context::Context;
use crate::error::{OperationError, within};
use crate::event::Finding;
use crate::records::name_of;
use crate::render::{self, Rendered};
use crate::resolved::Resolved;
use crate::verdict;

/// What was rendered of an installation.
type Due = (Resolved, Rendered);

/// What may be installed, and what may not and why. Warnings go with the plan of their installation.
pub(crate) async fn judge(
    ctx: &Context,
    due: Vec<Due>,
) -> (Vec<Due>, Vec<(Resolved, OperationError)>) {
    let (mut allowed, mut refused) = (Vec::new(), Vec::new());
    let mut is_told = false;
    for (mut resolved, mut rendered) in due {
        let judged = match rendered.is_due {
            true => verdict(ctx, &resolved, Some(&rendered)).await,
            false => Ok(Verdict::default()),
        };
        let judged = match judged {
            // The webhook judges what it can. In the loop it does not, so there this is an error.
            Err(error) if error.is_forbidden() && !resolved.keeps_spec => {
                if !is_told {
                    let warning = format!("policies are not judged here: {}", error.chain());
                    ctx.find(Finding::Verdict(warning));
                    is_told = true;
                }
                Ok(())
            }
            Err(error) => Err(error),
            Ok(mut verdict) => {
                // No one reads the plans of the loop.
                if !resolved.keeps_spec {
                    rendered.warnings.append(&mut verdict.warnings);
                }
                conclude(ctx, &resolved, &verdict)
            }
        };
        let judged = match judged {
            Ok(()) if rendered.is_due => sign(ctx, &mut resolved).await,
            judged => judged,
        };
        match judged {
            Ok(()) => allowed.push((resolved, rendered)),
            Err(error) => refused.push((resolved, error)),
        }
    }
    (allowed, refused)
}

/// Refuses what is not allowed whatever its content is, so that nothing is asked of a host that is not allowed. Warnings are left to
/// [`judge`], and so is a lack of rights.
///
/// # Errors
/// What the policies say; they cannot be read.
pub(crate) async fn before_fetch(ctx: &Context, resolved: &Resolved) -> Result<(), OperationError> {
    unfetched(ctx, resolved, |_| true).await
}

/// The same where only the content says whether something is due: what is installed may stay whatever the policies say by now, but a host
/// that they do not allow is not asked.
///
/// # Errors
/// Those of [`before_fetch`].
pub(crate) async fn before_look(ctx: &Context, resolved: &Resolved) -> Result<(), OperationError> {
    if resolved.entry.version.source.inline.is_some() {
        return Ok(());
    }
    unfetched(ctx, resolved, |rule| rule == policy::SOURCE).await
}

/// Judges an installation by the rules that count, without its content.
async fn unfetched(
    ctx: &Context,
    resolved: &Resolved,
    counts: impl Fn(&str) -> bool,
) -> Result<(), OperationError> {
    match verdict(ctx, resolved, None).await {
        Err(error) if error.is_forbidden() => Ok(()),
        Err(error) => Err(error),
        Ok(mut verdict) => {
            verdict.warnings.clear();
            verdict.problems.retain(|it| counts(it.rule));
            verdict.breaches.retain(|it| counts(it.problem.rule));
            conclude(ctx, resolved, &verdict)
        }
    }
}

/// Refuses an index before it is read: `installation` as it will be. One that is installed from it was allowed to, and may be repaired.
///
/// # Errors
/// Those of [`before_fetch`].
pub(crate) async fn before_index(
    ctx: &Context,
    installation: &AddonInstallation,
) -> Result<(), OperationError> {
    let judged = match of_index(ctx, installation).await {
        Err(error) if error.is_forbidden() => return Ok(()),
        judged => judged?,
    };
    let what = format!("installation {}", name_of(installation));
    Ok(verdict::conclude(ctx, &what, &judged)?)
}

async fn of_index(
    ctx: &Context,
    installation: &AddonInstallation,
) -> Result<Verdict, OperationError> {
    let mut verdict = Verdict::default();
    let policies = ctx.policies().await?;
    if policies.is_empty() || installation.spec.core_addon {
        return Ok(verdict);
    }
    let labels = labels(ctx, policies, &name_of(installation).namespace).await?;
    let candidate = Candidate {
        installation,
        labels: &labels,
        entry: None,
        images: None,
        requester: None,
    };
    policy::judge(policies, &candidate, &mut verdict);
    if !verdict.problems.is_empty() {
        verdict.lift(ctx.requester().await?);
    }
    // They are those of the plan.
    verdict.warnings.clear();
    Ok(verdict)
}

/// The labels of a namespace, where a policy asks for them.
async fn labels(
    ctx: &Context,
    policies: &[AddonPolicy],
    namespace: &str,
) -> Result<BTreeMap<String, String>, OperationError> {
    let mut selectors = policies.iter().map(|one| &one.spec.namespace_selector);
    match selectors.any(Option::is_some) {
        true => ctx.labels(namespace).await,
        false => Ok(BTreeMap::new()),
    }
}

fn conclude(ctx: &Context, resolved: &Resolved, verdict: &Verdict) -> Result<(), OperationError> {
    let what = format!("installation {}", resolved.name);
    Ok(verdict::conclude(ctx, &what, verdict)?)
}

/// What the policies say of an installation; of its images only where it was rendered.
async fn verdict(
    ctx: &Context,
    resolved: &Resolved,
    rendered: Option<&Rendered>,
) -> Result<Verdict, OperationError> {
    let mut verdict = Verdict::default();
    let policies = ctx.policies().await?;
    if policies.is_empty() || resolved.record().spec.core_addon {
        return Ok(verdict);
    }
    let labels = labels(ctx, policies, &resolved.name.namespace).await?;
    let selecting = policies.iter();
    let selecting = selecting.filter(|one| policy::selects(one, &labels));
    let selecting: Vec<&AddonPolicy> = selecting.collect();
    let requester = match asks_who(selecting.iter().copied()) {
        true => installer(ctx, resolved).await?,
        false => None,
    };
    let images = match rendered.filter(|_| restricts_images(&selecting)) {
        Some(rendered) => Some(all_images(ctx, resolved, rendered).await?),
        None => None,
    };
    let candidate = Candidate {
        installation: &resolved.wanted,
        labels: &labels,
        entry: Some(&resolved.entry),
        images: images.as_ref(),
        requester: requester.as_ref(),
    };
    policy::judge(selecting, &candidate, &mut verdict);
    if !verdict.problems.is_empty() && !resolved.keeps_spec {
        verdict.lift(ctx.requester().await?);
    }
    Ok(verdict)
}

/// Who installs: the caller who writes the record, and where the loop carries it out, its writer. `None` where others wrote it and the
/// caller only upgrades it.
async fn installer(
    ctx: &Context,
    resolved: &Resolved,
) -> Result<Option<Requester>, OperationError> {
    if resolved.keeps_spec {
        return Ok(Some(writer::of(&resolved.record().metadata)));
    }
    match is_written(resolved) {
        true => Ok(Some(ctx.requester().await?.clone())),
        false => Ok(None),
    }
}

/// Records the caller as the writer where a policy asks for it. The webhook does the same, for every record.
async fn sign(ctx: &Context, resolved: &mut Resolved) -> Result<(), OperationError> {
    if !is_written(resolved) || resolved.wanted.spec.core_addon {
        return Ok(());
    }
    let policies = match ctx.policies().await {
        Err(error) if error.is_forbidden() => return Ok(()),
        policies => policies?,
    };
    if asks_who(policies) {
        let text = writer::text(ctx.requester().await?);
        let annotations = resolved.wanted.annotations_mut();
        annotations.insert(ANNOTATION_WRITTEN_BY.to_owned(), text);
    }
    Ok(())
}

/// Whether the webhook would judge who writes the record (semantics 19).
fn is_written(resolved: &Resolved) -> bool {
    let existing = resolved.existing.as_ref().map(|record| &record.spec);
    !resolved.keeps_spec && validate::is_judged(&resolved.wanted.spec, existing)
}

fn asks_who<'a>(policies: impl IntoIterator<Item = &'a AddonPolicy>) -> bool {
    let mut policies = policies.into_iter();
    policies.any(|one| one.spec.installers.is_some())
}

fn restricts_images(policies: &[&AddonPolicy]) -> bool {
    let restricts = |allowed: &Allowed| !allowed.image_registries.is_empty();
    let mut all = policies.iter();
    all.any(|one| one.spec.allowed.as_ref().is_some_and(restricts))
}

/// The images of what is rendered; where helm applies its objects by itself, of what it will render.
async fn all_images(
    ctx: &Context,
    resolved: &Resolved,
    rendered: &Rendered,
) -> Result<BTreeSet<String>, OperationError> {
    let mut found = BTreeSet::new();
    for manifest in &rendered.manifests {
        found.extend(images(&manifest.object));
    }
    if let Some(chart) = &rendered.release {
        let text = chart::of_release(ctx, resolved, &rendered.inputs, chart).await;
        let text = within(text, || resolved.place())?;
        let request = Request {
            source: Source::of_text(text),
            location: rendered.location.clone(),
            method: Method::Helm,
            // What helm runs at another occasion counts, too.
            occasion: None,
            duplicate_keys: DuplicateKeys::LastWins,
            registry: None,
        };
        let parsed = render::parse(ctx, resolved, &request, &chart.mask).await;
        for manifest in within(parsed, || resolved.place())?.manifests {
            found.extend(images(&manifest.object));
        }
    }
    Ok(found)
}
