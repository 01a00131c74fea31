//! Shows what is due in the columns of kops' tool: NAME, CURRENT, UPDATE, PKI.

use addons_engine::authority::secret_name;
use addons_operation::{Plan, PlannedInstallation};
use common::api::rules::RuleSet;
use common::catalogue::channel::{ChannelVersion, annotation};
use serde::Serialize;

use crate::output::table::Table;

/// An add-on that is due.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChannelRow {
    /// The name of the add-on.
    pub(super) name: String,
    namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<RecordedVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<RecordedVersion>,
    #[serde(rename = "installsPKI")]
    installs_pki: bool,
    /// Nodes that will be marked for a rolling update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
    /// Whether versions are compared, and not only hashes.
    #[serde(skip)]
    is_documented: bool,
}

/// The fields of a kops record that decide whether an update is due.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordedVersion {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) manifest_hash: Option<String>,
}

impl RecordedVersion {
    pub(super) fn new(found: &ChannelVersion) -> Self {
        Self {
            version: found.version.clone(),
            id: found.id.clone(),
            manifest_hash: found.manifest_hash.clone(),
        }
    }
}

/// Returns a row for each add-on of a plan, sorted by name.
pub(super) fn channel_rows(plan: &Plan) -> Vec<ChannelRow> {
    let mut rows: Vec<ChannelRow> = plan.installations.iter().filter_map(channel_row).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn channel_row(planned: &PlannedInstallation) -> Option<ChannelRow> {
    let plan = &planned.plan;
    let record = plan.annotation()?;
    let name = annotation::parse_annotation_key(&record.key)?.to_owned();
    let read = |text: &Option<String>| {
        let found = ChannelVersion::parse(&name, text.as_deref()?).ok()?;
        Some(RecordedVersion::new(&found))
    };
    let secret = secret_name(&name);
    let mut creations = plan.steps.iter().map(|step| &step.target.key);
    Some(ChannelRow {
        current: read(&record.before),
        update: read(&record.after).filter(|_| record.before != record.after),
        installs_pki: creations.any(|key| key.is_secret() && key.name == secret),
        namespace: record.namespace.clone(),
        nodes: record.nodes.clone(),
        is_documented: plan.to.as_ref().and_then(|to| to.rules) == Some(RuleSet::Documented),
        name,
    })
}

/// Renders the table. As in kops, it shows versions if these are compared, and hashes otherwise.
pub(super) fn render_table(rows: &[ChannelRow]) -> Table {
    let mut table = Table::new(&["NAME", "CURRENT", "UPDATE", "PKI"]);
    for row in rows {
        let cell = |version: &Option<RecordedVersion>| {
            let text = version.as_ref().map(|version| {
                let text = if row.is_documented {
                    version.version.as_ref().or(version.manifest_hash.as_ref())
                } else {
                    version.manifest_hash.as_ref().or(version.id.as_ref())
                };
                text.cloned().unwrap_or_else(|| "?".to_owned())
            });
            text.unwrap_or_else(|| "-".to_owned())
        };
        let pki = if row.installs_pki { "yes" } else { "no" };
        table.add_row(vec![
            row.name.clone(),
            cell(&row.current),
            cell(&row.update),
            pki.to_owned(),
        ]);
    }
    table
}
