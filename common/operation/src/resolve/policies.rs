//! Evaluates AddonPolicies for this command (semantics 19.2): like the webhook, and in addition what needs fetching and rendering. Every
//! command and the loop plan here, so a refusal comes before the first write.
//!
//! Only installations that are due are evaluated. A repair of live edits restores what was admitted.

use std::collections::{BTreeMap, BTreeSet};

use addons_admission::policy::{self, PolicyCandidate};
use addons_admission::verdict::Verdict;
use addons_admission::{Requester, validate, writer};
use addons_render::images::find_images;
use addons_render::objects::{RenderRequest, RenderSource};
use common::api::catalogue::Method;
use common::api::installation::AddonInstallation;
use common::api::names::ANNOTATION_WRITTEN_BY;
use common::api::policy::{AddonPolicy, AllowedContent};
use common::catalogue::CatalogueEntry;
use common::manifest::yaml::DuplicateKeys;
use kube::ResourceExt as _;

use super::resolved::Resolved;
use super::verdict;
use crate::context::Context;
use crate::error::{OperationError, within};
use crate::event::Finding;
use crate::records::name_of;
use crate::render::{self, Rendered, chart};

/// An installation and its rendered objects.
type RenderedInstallation = (Resolved, Rendered);

/// Separates the installations that the policies allow from those that they refuse. Warnings are added to the plan of their installation.
pub(crate) async fn separate_allowed(
    ctx: &Context,
    due: Vec<RenderedInstallation>,
) -> (Vec<RenderedInstallation>, Vec<(Resolved, OperationError)>) {
    let (mut allowed, mut refused) = (Vec::new(), Vec::new());
    let mut is_told = false;
    for (mut resolved, mut rendered) in due {
        let judged = match rendered.is_due {
            true => policy_verdict(ctx, &resolved, Some(&rendered)).await,
            false => Ok(Verdict::default()),
        };
        let judged = match judged {
            // The webhook evaluates what it can. It is not called for the loop, where this is an error (semantics 19.6).
            Err(error) if error.is_forbidden() && !resolved.keeps_spec => {
                if !is_told {
                    let warning = format!("policies are not judged here: {}", error.chain());
                    ctx.report_finding(Finding::Verdict(warning));
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
            Ok(()) if rendered.is_due => record_writer(ctx, &mut resolved).await,
            judged => judged,
        };
        match judged {
            Ok(()) => allowed.push((resolved, rendered)),
            Err(error) => refused.push((resolved, error)),
        }
    }
    (allowed, refused)
}

/// Refuses an installation that is not allowed whatever its content, before a forbidden host is contacted. Warnings, and missing rights to
/// read policies, are left to [`separate_allowed`].
///
/// # Errors
/// The policies refuse, or cannot be read.
pub(crate) async fn check_before_fetch(
    ctx: &Context,
    resolved: &Resolved,
) -> Result<(), OperationError> {
    check_without_content(ctx, resolved, |_| true).await
}

/// As [`check_before_fetch`], if only the content says whether the installation is due: what is installed may stay, but a forbidden host is not
/// contacted.
///
/// # Errors
/// Those of [`check_before_fetch`].
pub(crate) async fn check_host(ctx: &Context, resolved: &Resolved) -> Result<(), OperationError> {
    if resolved.entry.version.source.inline.is_some() {
        return Ok(());
    }
    check_without_content(ctx, resolved, |rule| rule == policy::SOURCE).await
}

/// Evaluates the policies for an installation without its content, by the rules that count.
async fn check_without_content(
    ctx: &Context,
    resolved: &Resolved,
    counts: impl Fn(&str) -> bool,
) -> Result<(), OperationError> {
    match policy_verdict(ctx, resolved, None).await {
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

/// Refuses an index, or a chart or manifest by reference, before it is read. `installation` is the record as it will be. An installation
/// that already comes from there was allowed to, and may be repaired.
///
/// # Errors
/// Those of [`check_before_fetch`].
pub(crate) async fn check_source(
    ctx: &Context,
    installation: &AddonInstallation,
) -> Result<(), OperationError> {
    let judged = match source_verdict(ctx, installation).await {
        Err(error) if error.is_forbidden() => return Ok(()),
        judged => judged?,
    };
    let what = format!("installation {}", name_of(installation));
    Ok(verdict::conclude(ctx, &what, &judged)?)
}

async fn source_verdict(
    ctx: &Context,
    installation: &AddonInstallation,
) -> Result<Verdict, OperationError> {
    let mut verdict = Verdict::default();
    let policies = ctx.policies().await?;
    if policies.is_empty() || installation.spec.core_addon {
        return Ok(verdict);
    }
    let labels = selector_labels(ctx, policies, &name_of(installation).namespace).await?;
    let entry = CatalogueEntry::from_installation(&installation.spec.addon_ref);
    let candidate = PolicyCandidate {
        installation,
        labels: &labels,
        entry: entry.as_ref(),
        images: None,
        requester: None,
    };
    policy::evaluate(policies, &candidate, &mut verdict);
    if !verdict.problems.is_empty() {
        verdict.apply_break_glass(ctx.requester().await?);
    }
    // The plan has these warnings.
    verdict.warnings.clear();
    Ok(verdict)
}

/// Returns the labels of a namespace if a policy selects by them.
pub(crate) async fn selector_labels<'a>(
    ctx: &Context,
    policies: impl IntoIterator<Item = &'a AddonPolicy>,
    namespace: &str,
) -> Result<BTreeMap<String, String>, OperationError> {
    let mut selectors = policies.into_iter().map(|one| &one.spec.namespace_selector);
    match selectors.any(Option::is_some) {
        true => ctx.namespace_labels(namespace).await,
        false => Ok(BTreeMap::new()),
    }
}

fn conclude(ctx: &Context, resolved: &Resolved, verdict: &Verdict) -> Result<(), OperationError> {
    let what = format!("installation {}", resolved.name);
    Ok(verdict::conclude(ctx, &what, verdict)?)
}

/// Returns the verdict of the policies on an installation. Images are included only if it was rendered.
async fn policy_verdict(
    ctx: &Context,
    resolved: &Resolved,
    rendered: Option<&Rendered>,
) -> Result<Verdict, OperationError> {
    let mut verdict = Verdict::default();
    let policies = ctx.policies().await?;
    if policies.is_empty() || resolved.record().spec.core_addon {
        return Ok(verdict);
    }
    let labels = selector_labels(ctx, policies, &resolved.name.namespace).await?;
    let selecting = policies.iter();
    let selecting = selecting.filter(|one| policy::selects(one, &labels));
    let selecting: Vec<&AddonPolicy> = selecting.collect();
    let requester = match restricts_installers(selecting.iter().copied()) {
        true => installer(ctx, resolved).await?,
        false => None,
    };
    let images = match rendered.filter(|_| restricts_images(&selecting)) {
        Some(rendered) => Some(collect_images(ctx, resolved, rendered).await?),
        None => None,
    };
    let candidate = PolicyCandidate {
        installation: &resolved.wanted,
        labels: &labels,
        entry: Some(&resolved.entry),
        images: images.as_ref(),
        requester: requester.as_ref(),
    };
    policy::evaluate(selecting, &candidate, &mut verdict);
    if !verdict.problems.is_empty() && !resolved.keeps_spec {
        verdict.apply_break_glass(ctx.requester().await?);
    }
    Ok(verdict)
}

/// Returns the user who installs: the caller if it writes the record, or the recorded writer if the loop executes it. Returns `None` if
/// others wrote the record and the caller only upgrades it.
async fn installer(
    ctx: &Context,
    resolved: &Resolved,
) -> Result<Option<Requester>, OperationError> {
    if resolved.keeps_spec {
        return Ok(Some(writer::parse_writer(&resolved.record().metadata)));
    }
    match is_writer_judged(resolved) {
        true => Ok(Some(ctx.requester().await?.clone())),
        false => Ok(None),
    }
}

/// Records the caller as the writer if a policy names installers. The webhook does this for every record (semantics 19.3).
async fn record_writer(ctx: &Context, resolved: &mut Resolved) -> Result<(), OperationError> {
    if !is_writer_judged(resolved) || resolved.wanted.spec.core_addon {
        return Ok(());
    }
    let policies = match ctx.policies().await {
        Err(error) if error.is_forbidden() => return Ok(()),
        policies => policies?,
    };
    if restricts_installers(policies) {
        let text = writer::format_writer(ctx.requester().await?);
        let annotations = resolved.wanted.annotations_mut();
        annotations.insert(ANNOTATION_WRITTEN_BY.to_owned(), text);
    }
    Ok(())
}

/// Whether the webhook would judge who writes the record (semantics 19.3).
fn is_writer_judged(resolved: &Resolved) -> bool {
    let existing = resolved.existing.as_ref().map(|record| &record.spec);
    !resolved.keeps_spec && validate::is_policy_relevant(&resolved.wanted.spec, existing)
}

fn restricts_installers<'a>(policies: impl IntoIterator<Item = &'a AddonPolicy>) -> bool {
    let mut policies = policies.into_iter();
    policies.any(|one| one.spec.installers.is_some())
}

fn restricts_images(policies: &[&AddonPolicy]) -> bool {
    let restricts = |allowed: &AllowedContent| !allowed.image_registries.is_empty();
    let mut all = policies.iter();
    all.any(|one| one.spec.allowed.as_ref().is_some_and(restricts))
}

/// Returns the images of the rendered objects or, if helm itself installs the chart, of what it will render.
async fn collect_images(
    ctx: &Context,
    resolved: &Resolved,
    rendered: &Rendered,
) -> Result<BTreeSet<String>, OperationError> {
    let mut found = BTreeSet::new();
    for manifest in &rendered.manifests {
        found.extend(find_images(&manifest.object));
    }
    if let Some(chart) = &rendered.release {
        let text = chart::render_for_release(ctx, resolved, &rendered.inputs, chart).await;
        let text = within(text, || resolved.place())?;
        let request = RenderRequest {
            source: RenderSource::from_text(text),
            location: rendered.location.clone(),
            method: Method::Helm,
            // Hooks that helm runs on other occasions count as well.
            occasion: None,
            duplicate_keys: DuplicateKeys::LastWins,
            registry: None,
            // Helm installs what it renders: patches of such an installation are refused.
            patches: Vec::new(),
            namespace: resolved.target_namespace().to_owned(),
        };
        let parsed = render::parse_objects(ctx, resolved, &request, &chart.mask).await;
        for manifest in within(parsed, || resolved.place())?.manifests {
            found.extend(find_images(&manifest.object));
        }
    }
    Ok(found)
}
