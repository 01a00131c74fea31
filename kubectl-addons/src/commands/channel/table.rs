//! Shows what is due in the columns of kops' tool: NAME, CURRENT, UPDATE, PKI.

use addons_engine::authority::secret_name;
use addons_operation::{Plan, PlannedInstallation};
use common::api::rules::RuleSet;
use common::catalogue::channel::{ChannelVersion, annotation};
use common::catalogue::due::{DueVerdict, compare};
use common::catalogue::select::SelectionRules;
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
    let read = |text: &Option<String>| ChannelVersion::parse(&name, text.as_deref()?).ok();
    let (before, after) = (read(&record.before), read(&record.after));
    // A version that is only added for tools from before kops 1.22 is not an update.
    let is_same = match (&before, &after) {
        (Some(before), Some(after)) => {
            let rules = SelectionRules::Channels;
            let is_other = before.version.is_some() && before.version != after.version;
            !is_other
                && compare(before.replacement_key(), after.replacement_key(), rules)
                    == DueVerdict::No
        }
        _ => false,
    };
    let secret = secret_name(&name);
    let mut creations = plan.steps.iter().map(|step| &step.target.key);
    Some(ChannelRow {
        current: before.as_ref().map(RecordedVersion::new),
        update: after
            .as_ref()
            .filter(|_| !is_same)
            .map(RecordedVersion::new),
        installs_pki: creations.any(|key| key.is_secret() && key.name == secret),
        namespace: record.namespace.clone(),
        nodes: record.nodes.clone(),
        is_documented: plan.to.as_ref().and_then(|to| to.rules) == Some(RuleSet::Documented),
        name,
    })
}

/// Renders the table. As in kops, it shows versions if these are compared, and hashes otherwise; both columns show the same field.
pub(super) fn render_table(rows: &[ChannelRow]) -> Table {
    let mut table = Table::new(&["NAME", "CURRENT", "UPDATE", "PKI"]);
    for row in rows {
        let field = row.shown_field();
        let cell = |version: &Option<RecordedVersion>| match version {
            None => "-".to_owned(),
            Some(version) => field(version).cloned().unwrap_or_else(|| "?".to_owned()),
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

/// Reads a field of a record.
type RecordedField = fn(&RecordedVersion) -> Option<&String>;

impl ChannelRow {
    /// Returns the field that both columns show: the first one that every record of the row has, and that differs if there are two.
    fn shown_field(&self) -> RecordedField {
        const VERSION: RecordedField = |record| record.version.as_ref();
        const HASH: RecordedField = |record| record.manifest_hash.as_ref();
        const ID: RecordedField = |record| record.id.as_ref();
        let fields: &[RecordedField] = match self.is_documented {
            true => &[VERSION, HASH, ID],
            false => &[HASH, ID, VERSION],
        };
        let records: Vec<&RecordedVersion> = [&self.current, &self.update]
            .into_iter()
            .flatten()
            .collect();
        let is_recorded =
            |field: &&RecordedField| records.iter().all(|record| field(record).is_some());
        let differs = |field: &&RecordedField| match records.as_slice() {
            [current, update] => field(current) != field(update),
            _ => true,
        };
        let mut recorded = fields.iter().filter(is_recorded);
        let first = recorded.clone().next();
        let shown = recorded.find(differs).or(first);
        shown.copied().unwrap_or(HASH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Columns = [&'static str; 3];

    fn record([version, id, hash]: Columns) -> RecordedVersion {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        RecordedVersion {
            version: text(version),
            id: text(id),
            manifest_hash: text(hash),
        }
    }

    #[test]
    fn both_columns_show_the_same_field() {
        // (current, update: version, id, hash; CURRENT and UPDATE under the documented and under the channels rules)
        let rows: [(Option<Columns>, Option<Columns>, _, _); 7] = [
            (None, Some(["1.0.0", "a", "h"]), "- 1.0.0", "- h"),
            (None, Some(["", "a", ""]), "- a", "- a"),
            // kops 1.22 and later record no version, and their indexes have one.
            (
                Some(["", "a", "h"]),
                Some(["9.99.0", "a", "i"]),
                "h i",
                "h i",
            ),
            (
                Some(["1.0.0", "a", "h"]),
                Some(["1.1.0", "a", "i"]),
                "1.0.0 1.1.0",
                "h i",
            ),
            (
                Some(["1.0.0", "a", "h"]),
                Some(["1.0.0", "b", "h"]),
                "a b",
                "a b",
            ),
            (Some(["1.0.0", "a", ""]), Some(["", "", "h"]), "? h", "? h"),
            (Some(["1.0.0", "a", "h"]), None, "1.0.0 -", "h -"),
        ];
        for (current, update, documented, channels) in rows {
            for (is_documented, expected) in [(true, documented), (false, channels)] {
                let row = ChannelRow {
                    name: "dns".to_owned(),
                    namespace: "kube-system".to_owned(),
                    current: current.map(record),
                    update: update.map(record),
                    installs_pki: false,
                    nodes: Vec::new(),
                    is_documented,
                };
                let text = render_table(&[row]).render();
                let cells: Vec<&str> = text.split_whitespace().skip(5).collect();
                assert_eq!(
                    cells.get(..2).unwrap_or_default().join(" "),
                    expected,
                    "{current:?} {update:?}"
                );
            }
        }
    }
}
