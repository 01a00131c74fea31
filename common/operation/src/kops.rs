//! kops: the add-ons that kops' own tool also manages, and its indexes ("channels").
//!
//! kops records each add-on in an annotation of a namespace. The annotation says what is installed, and is written after each of our
//! operations (semantics 11.3). The stages of an operation do not know this module: they get a [`SharedRecord`] from it.
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | kops' record of one add-on, and whether the add-on is due by it |
//! | [`index`] | every add-on of an index: installs it, and finds those that have left the index |

pub mod index;
pub mod record;

use addons_engine::kops;
use addons_plan::InstallationPlan;
use addons_plan::closing::{AnnotationChange, ClosingStep};
use addons_plan::kops::{NodeRole, prune_rules};
use common::api::installation::AddonInstallation;
use common::api::names::ANNOTATION_KOPS_RECORD;
use common::catalogue::channel::{ChannelVersion, DEFAULT_NAMESPACE, annotation};
use common::catalogue::due::{DueVerdict, compare};
use common::catalogue::select::SelectionRules;
use common::catalogue::{CatalogueEntry, Origin};
use kube::ResourceExt as _;

use self::record::KopsState;
use crate::context::Context;
use crate::error::OperationError;
use crate::event::Finding;
use crate::resolve::resolved::{Resolved, SharedRecord, UnrecordedSearch};
use crate::tools::{OtherTool, PlannedRemoval, Work};

/// The annotation of nodes that kops replaces in the next rolling update.
const NEEDS_UPDATE: &str = "kops.k8s.io/needs-update";

/// The field manager of kops' own tool.
const MANAGER: &str = "kops";

/// kops' own tool.
#[derive(Debug)]
pub struct Kops;

impl OtherTool for Kops {
    fn complete<'a>(&'a self, ctx: &'a Context, resolved: &'a mut Resolved) -> Work<'a> {
        Box::pin(async move {
            if has_record(&resolved.wanted) {
                attach(ctx, resolved).await?;
            }
            Ok(())
        })
    }

    fn plan_removal<'a>(
        &'a self,
        ctx: &'a Context,
        removal: PlannedRemoval<'a>,
        plan: &'a mut InstallationPlan,
    ) -> Work<'a> {
        Box::pin(async move {
            if !removal.gives_back {
                let removed = record_to_remove(ctx, removal.record).await?;
                plan.close(removed.map(ClosingStep::Annotate));
            }
            Ok(())
        })
    }
}

/// Returns `NAMESPACE/NAME` of kops' record for an installation.
pub(crate) fn record_place(record: &AddonInstallation) -> Option<&String> {
    record.annotations().get(ANNOTATION_KOPS_RECORD)
}

/// Whether kops' own tool has a record for an installation.
pub(crate) fn has_record(record: &AddonInstallation) -> bool {
    record_place(record).is_some()
}

/// Reads kops' record of an add-on, and marks our record as having one.
///
/// # Errors
/// The namespace cannot be read.
pub(crate) async fn attach(ctx: &Context, resolved: &mut Resolved) -> Result<(), OperationError> {
    let Origin::Index { location } = &*resolved.entry.origin else {
        return Ok(());
    };
    let addon = &resolved.entry.addon;
    let namespace = resolved.entry.version.default_namespace.as_deref();
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let annotations = ctx.namespace_annotations(namespace).await?;
    let text = annotations.get(&annotation::annotation_key(addon)).cloned();
    let found = match text
        .as_deref()
        .map(|text| ChannelVersion::parse(addon, text))
    {
        None => None,
        Some(Ok(found)) => Some(found),
        Some(Err(error)) => {
            ctx.report_finding(Finding::KopsRecord(format!(
                "namespace {namespace}: {error}"
            )));
            None
        }
    };
    let channel = found.as_ref().and_then(|found| found.channel.as_ref());
    if let Some(channel) = channel.filter(|channel| *channel != location) {
        ctx.report_finding(Finding::OtherChannel {
            addon: addon.clone(),
            channel: channel.clone(),
        });
    }
    let has_no_version = found.as_ref().is_some_and(|found| found.version.is_none());
    let rules = match ctx.settings().rules {
        SelectionRules::Auto if has_no_version => SelectionRules::Channels,
        _ => resolved.rules,
    };
    let place = format!("{namespace}/{addon}");
    let kops = KopsState {
        namespace: namespace.to_owned(),
        channel: location.clone(),
        text,
        found,
        rules,
    };
    let annotations = resolved.wanted.annotations_mut();
    annotations.insert(ANNOTATION_KOPS_RECORD.to_owned(), place);
    // The user of this tool may replace what kops has installed: the records of kops are shared.
    resolved.adopts = kops.found.is_some() && kops.decides(resolved.installed());
    let entry = &resolved.entry;
    let change = kops.change_after(ctx, entry).await?;
    resolved.shared = Some(SharedRecord {
        namespace: kops.namespace.clone(),
        manager: MANAGER,
        due: kops.due(entry, resolved.installed()),
        closing: vec![ClosingStep::Annotate(change)],
        unrecorded: kops.search_unrecorded(resolved),
    });
    Ok(())
}

impl KopsState {
    /// Returns the change of the record after an operation. Nodes are replaced only for an update (kops#11257).
    async fn change_after(
        &self,
        ctx: &Context,
        entry: &CatalogueEntry,
    ) -> Result<AnnotationChange, OperationError> {
        let after = ChannelVersion::from_entry(entry, &self.channel, self.found.as_ref());
        let is_update = self.found.as_ref().is_some_and(|found| {
            compare(found.replacement_key(), entry.replacement_key(), self.rules) != DueVerdict::No
        });
        let nodes = if is_update {
            nodes_to_replace(ctx, entry).await?
        } else {
            Vec::new()
        };
        Ok(AnnotationChange {
            namespace: self.namespace.clone(),
            key: annotation::annotation_key(&entry.addon),
            // The same content with its keys in another order is not written again.
            after: match (&self.text, &self.found) {
                (Some(text), Some(found)) if *found == after => Some(text.clone()),
                _ => Some(after.to_text()),
            },
            before: self.text.clone(),
            node_mark: match nodes.is_empty() {
                true => String::new(),
                false => NEEDS_UPDATE.to_owned(),
            },
            nodes,
        })
    }

    /// Returns how to find the objects that kops' own tool installed before there was an inventory, which are pruned by the rules of the
    /// entry, as kops does, but with the protections of every other deletion (semantics 11.3).
    fn search_unrecorded(&self, resolved: &Resolved) -> Option<UnrecordedSearch> {
        if self.found.is_none() || resolved.installed().is_some() {
            return None;
        }
        let version = &resolved.entry.version;
        let (rules, warnings) = prune_rules(version);
        let selector = version.selector.as_ref();
        let selector = selector.filter(|_| version.prune.is_none());
        Some(UnrecordedSearch {
            rules,
            warnings,
            selector: selector.cloned().unwrap_or_default(),
            whose: "kops'",
        })
    }
}

/// Returns the nodes that an entry asks to replace.
async fn nodes_to_replace(
    ctx: &Context,
    entry: &CatalogueEntry,
) -> Result<Vec<String>, OperationError> {
    let Some(role) = &entry.version.needs_rolling_update else {
        return Ok(Vec::new());
    };
    let nodes = kops::nodes(ctx.cluster().await?, NodeRole::parse(role)).await?;
    Ok(nodes.into_iter().collect())
}

/// Returns the removal of the record, for an uninstallation.
pub(crate) async fn record_to_remove(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<Option<AnnotationChange>, OperationError> {
    let Some((namespace, addon)) = record_place(record).and_then(|place| place.split_once('/'))
    else {
        return Ok(None);
    };
    let annotations = ctx.namespace_annotations(namespace).await?;
    let Some(text) = annotations.get(&annotation::annotation_key(addon)) else {
        return Ok(None);
    };
    let index = record.spec.addon_ref.index.as_ref();
    let found = ChannelVersion::parse(addon, text).unwrap_or_default();
    // If another channel has installed it since, the record belongs to that channel.
    let is_ours = found.channel.is_none() || found.channel.as_ref() == index;
    Ok(is_ours.then(|| AnnotationChange {
        namespace: namespace.to_owned(),
        key: annotation::annotation_key(addon),
        before: Some(text.clone()),
        after: None,
        nodes: Vec::new(),
        node_mark: String::new(),
    }))
}
