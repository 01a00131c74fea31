//! Charts and manifests that the user names by a reference: each becomes the entry that `catalogue create` would list, and its record holds
//! it (semantics 4).

use common::api::catalogue::Method;
use common::api::installation::{AddonFrom, AddonInstallation, AddonInstallationSpec, AddonRef};
use common::catalogue::CatalogueEntry;
use common::catalogue::author::Author;

use super::policies;
use super::resolved::Resolved;
use crate::catalogue::scaffold::{ScaffoldError, ScaffoldRequest, read_source};
use crate::context::Context;
use crate::error::OperationError;
use crate::event::Finding;
use crate::records::name_of;

/// The entry for a reference.
#[derive(Clone, Debug)]
pub struct NamedEntry {
    /// The entry, with fixed content.
    pub entry: CatalogueEntry,
    /// The only namespace that its objects name.
    pub target_namespace: Option<String>,
}

/// Reads a chart or manifest by reference. A tag becomes the digest that it names now, and the content gets its sha256. `name` is that of
/// the installation, if the user gives one: a manifest says no other name for certain. AddonPolicies judge the source before it is read
/// (semantics 19.2).
///
/// # Errors
/// [`ScaffoldError`]: a policy refuses the source, or it cannot be read.
pub async fn read_reference(
    ctx: &Context,
    wanted: &ScaffoldRequest<'_>,
    name: Option<&str>,
    core: bool,
) -> Result<NamedEntry, ScaffoldError> {
    policies::check_source(ctx, &unread_record(ctx, wanted, name, core)).await?;
    let found = read_source(ctx, wanted).await?;
    let is_chart = found.version.template.method == Method::Helm;
    let reference = AddonRef {
        name: match name.filter(|_| !is_chart) {
            Some(name) => name.to_owned(),
            None => found.addon,
        },
        from: Some(Box::new(AddonFrom::from_version(&found.version))),
        ..AddonRef::default()
    };
    let from = wanted.from.to_string();
    let entry = CatalogueEntry::from_installation(&reference);
    let mut entry = entry.ok_or(ScaffoldError::Empty { from })?;
    entry.author = Author::Typed(wanted.from.clone());
    Ok(NamedEntry {
        entry,
        target_namespace: found.version.default_namespace,
    })
}

/// Returns the record of a reference as far as it is known before anything is read.
fn unread_record(
    ctx: &Context,
    wanted: &ScaffoldRequest<'_>,
    name: Option<&str>,
    core: bool,
) -> AddonInstallation {
    let from = wanted.unread();
    let chart = from.helm.as_ref().map(|helm| helm.chart.as_str());
    let name = name.or(chart).unwrap_or(wanted.from);
    let mut record = AddonInstallation::new(name, AddonInstallationSpec::default());
    record.metadata.namespace = Some(ctx.settings().records_namespace().to_owned());
    record.spec.core_addon = core;
    record.spec.addon_ref.name = name.to_owned();
    record.spec.addon_ref.from = Some(Box::new(from));
    record
}

/// Returns that a reference has other content than the installation recorded for it: a tag moved, or a file was replaced.
pub(super) fn find_moved(resolved: &Resolved) -> Option<Finding> {
    let existing = resolved.existing.as_ref()?;
    let before = existing.spec.addon_ref.from.as_ref()?;
    let now = resolved.wanted.spec.addon_ref.from.as_ref()?;
    let is_moved = before.location() == now.location() && before.manifest_hash != now.manifest_hash;
    is_moved.then(|| Finding::Moved {
        location: now.location(),
        before: before.digest(),
        now: now.digest(),
    })
}

/// Returns the named entry for an existing installation: a manifest has the name of its add-on, and a chart must be the same add-on.
pub(super) fn named_entry(
    entry: &CatalogueEntry,
    record: &AddonInstallation,
) -> Result<CatalogueEntry, OperationError> {
    let addon = &record.spec.addon_ref.name;
    let is_chart = entry.version.template.method == Method::Helm;
    if is_chart && entry.addon != *addon {
        return Err(OperationError::OtherAddon {
            location: entry.origin.to_string(),
            found: entry.addon.clone(),
            installation: name_of(record),
            addon: addon.clone(),
        });
    }
    Ok(CatalogueEntry {
        addon: addon.clone(),
        ..entry.clone()
    })
}
