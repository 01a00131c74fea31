//! Add-ons that kops' own tool also manages: its annotation says what is installed, and is written after each of our operations (semantics
//! 11.3).

pub mod record;

use addons_engine::kops::{self as annotations, Annotation};
use addons_plan::kops::{KopsRecord, NodeRole};
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
use crate::resolved::Resolved;

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
    let all = ctx.kops.of(ctx.cluster().await?, namespace).await?;
    let text = all.iter().find(|one| one.addon == *addon);
    let text = text.map(|one| one.text.clone());
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
        ctx.report_finding(Finding::KopsRecord(format!(
            "{addon} was installed from another channel, {channel}"
        )));
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
    resolved.kops = Some(kops);
    Ok(())
}

impl KopsState {
    /// Returns the record to write after an operation. Nodes are replaced only for an update (kops#11257).
    pub(crate) async fn record_to_write(
        &self,
        ctx: &Context,
        resolved: &Resolved,
    ) -> Result<KopsRecord, OperationError> {
        let entry = &resolved.entry;
        let after = ChannelVersion::from_entry(entry, &self.channel, self.found.as_ref());
        let is_update = self.found.as_ref().is_some_and(|found| {
            compare(found.replacement_key(), entry.replacement_key(), self.rules) != DueVerdict::No
        });
        let nodes = if is_update {
            nodes_to_replace(ctx, entry).await?
        } else {
            Vec::new()
        };
        Ok(KopsRecord {
            namespace: self.namespace.clone(),
            key: annotation::annotation_key(&entry.addon),
            // The same content with its keys in another order is not written again.
            after: match (&self.text, &self.found) {
                (Some(text), Some(found)) if *found == after => Some(text.clone()),
                _ => Some(after.to_text()),
            },
            before: self.text.clone(),
            nodes,
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
    let nodes = annotations::nodes(ctx.cluster().await?, NodeRole::parse(role)).await?;
    Ok(nodes.into_iter().collect())
}

/// Whether the certificate authority that the entry asks for exists, or the entry asks for none.
pub(crate) async fn has_authority(
    ctx: &Context,
    resolved: &Resolved,
) -> Result<bool, OperationError> {
    let entry = &resolved.entry;
    if !entry.version.needs_pki {
        return Ok(true);
    }
    Ok(annotations::has_authority(ctx.cluster().await?, &entry.addon).await?)
}

/// Returns the removal of the record, for an uninstallation.
pub(crate) async fn record_to_remove(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<Option<KopsRecord>, OperationError> {
    let Some((namespace, addon)) = record_place(record).and_then(|place| place.split_once('/'))
    else {
        return Ok(None);
    };
    let all = ctx.kops.of(ctx.cluster().await?, namespace).await?;
    let Some(Annotation { text, .. }) = all.iter().find(|one| one.addon == addon) else {
        return Ok(None);
    };
    let index = record.spec.addon_ref.index.as_ref();
    let found = ChannelVersion::parse(addon, text).unwrap_or_default();
    // If another channel has installed it since, the record belongs to that channel.
    let is_ours = found.channel.is_none() || found.channel.as_ref() == index;
    Ok(is_ours.then(|| KopsRecord {
        namespace: namespace.to_owned(),
        key: annotation::annotation_key(addon),
        before: Some(text.clone()),
        after: None,
        nodes: Vec::new(),
    }))
}
