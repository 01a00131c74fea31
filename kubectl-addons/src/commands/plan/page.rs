//! Renders a plan as a page for a pull request: what happens, in which order, field by field, and what to review.

use addons_plan::changes::{ObjectChange, ObjectDiff};
use addons_plan::crd_safety::Breakage;
use addons_plan::graph::{Graph, GraphNode, NodeId};
use addons_plan::{InstallationPlan, summary};

use super::MadePlan;
use crate::commands::diff::text::{format_value, is_description};
use crate::output::html::graph::BoxDrawing;
use crate::output::html::{HtmlPage, HtmlRow, Tone};
use crate::words::plan as words;

/// How many characters of a value are shown.
const MAX_CHARACTERS: usize = 400;

/// Renders the page of one cluster, or of several by name.
pub(crate) fn render_page(plans: &[(Option<&str>, &MadePlan)]) -> String {
    let mut page = HtmlPage::new("Plan of add-ons");
    for (name, made) in plans {
        let facts = &made.file.cluster;
        let at = name.map_or_else(String::new, |name| format!("Cluster {name}, "));
        let version = &facts.version;
        page.text(&format!("{at}Kubernetes {version}"));
        add_cluster(&mut page, made);
    }
    page.finish()
}

fn add_cluster(page: &mut HtmlPage, made: &MadePlan) {
    let plan = &made.plan;
    if plan.is_empty() {
        page.text("There is nothing to do.");
        return;
    }
    let first = words::describe_preparation(plan);
    page.list(
        &first
            .lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>(),
    );
    for (planned, text) in plan.installations.iter().zip(words::describe_plans(plan)) {
        let plan = &planned.plan;
        page.section(text.lines().next().unwrap_or(&plan.installation.name));
        let counts = summary::lines(plan).into_iter().map(|line| HtmlRow {
            tone: Tone::Plain,
            cells: vec![
                line.action.word().to_owned(),
                line.objects.to_string(),
                line.kinds,
            ],
        });
        page.table(&["Action", "Objects", "Kinds"], &counts.collect::<Vec<_>>());
        let of_plan = made.file.changes.iter();
        let changes: Vec<&ObjectDiff> = of_plan
            .filter(|change| plan.step(&change.key).is_some())
            .collect();
        let findings = list_findings(plan, &changes);
        if !findings.is_empty() {
            page.part("Findings");
            page.list(&findings);
        }
        page.part("Changes");
        page.table(
            &["Change", "Object", "Field", "Now", "Then", "Other owners"],
            &change_rows(plan, &changes),
        );
    }
    add_order(page, &plan.graph);
}

/// Lists what the reader should review.
fn list_findings(plan: &InstallationPlan, changes: &[&ObjectDiff]) -> Vec<String> {
    let refused = changes.iter().filter_map(|change| {
        let error = change.error.as_ref()?;
        Some(format!("{} is refused: {error}", change.key))
    });
    let warnings = plan.warnings.iter().cloned();
    let breakages = plan.breakages.iter().flat_map(Breakage::lines);
    let migrations = plan.migrations().map(ToString::to_string);
    let kept = plan.retained.iter().map(|key| format!("{key} stays"));
    let deletions = plan.refused.iter();
    let deletions = deletions.filter(|refusal| plan.step(&refusal.key).is_none());
    let deletions = deletions.map(|one| format!("{} {}", one.key, one.message));
    let all = warnings.chain(breakages).chain(migrations);
    all.chain(refused).chain(deletions).chain(kept).collect()
}

/// Returns a row for every field that changes, and for every object that is created or deleted.
fn change_rows(plan: &InstallationPlan, changes: &[&ObjectDiff]) -> Vec<HtmlRow> {
    let mut rows = Vec::new();
    if let Some(namespace) = &plan.create_namespace {
        rows.push(html_row(
            Tone::Good,
            ["added", &format!("Namespace {namespace}")],
        ));
    }
    for change in changes {
        let key = change.key.to_string();
        let (tone, word) = match change.change() {
            ObjectChange::Added => (Tone::Good, "added"),
            ObjectChange::Changed => (Tone::New, "changed"),
            ObjectChange::Recreated => (Tone::Bad, "recreated"),
            ObjectChange::Refused => (Tone::Bad, "refused"),
            ObjectChange::Unchanged => continue,
        };
        let is_folded = |field: &&_| is_description(&change.key, field);
        let (folded, fields): (Vec<_>, Vec<_>) = change.fields.iter().partition(is_folded);
        if fields.is_empty() {
            let what = match folded.len() {
                0 => String::new(),
                count => format!("{count} descriptions"),
            };
            rows.push(html_row(tone, [word, &key, &what]));
        }
        for field in fields {
            let owners: Vec<&str> = field.owners.iter().map(|it| it.manager.as_str()).collect();
            let sides = [field.old.as_ref(), field.new.as_ref()];
            let [old, new] = sides.map(|value| {
                format_value(value)
                    .chars()
                    .take(MAX_CHARACTERS)
                    .collect::<String>()
            });
            let cells = [word, &key, &field.path, &old, &new, &owners.join(", ")];
            rows.push(html_row(tone, cells));
        }
    }
    let word = words::deleted_word(plan);
    let gone = plan.deletions();
    rows.extend(gone.map(|it| html_row(Tone::Bad, [word, &it.target.key.to_string()])));
    if let Some(namespace) = &plan.delete_namespace {
        let what = format!("Namespace {namespace}, if nothing else is in it");
        rows.push(html_row(Tone::Bad, ["deleted", &what]));
    }
    rows
}

fn html_row<const N: usize>(tone: Tone, cells: [&str; N]) -> HtmlRow {
    let mut cells: Vec<String> = cells.map(str::to_owned).into();
    cells.resize(cells.len().max(6), String::new());
    HtmlRow { tone, cells }
}

/// Shows the order of the objects as a drawing and as a table.
fn add_order(page: &mut HtmlPage, graph: &Graph) {
    let levels = graph.levels();
    if levels.len() < 2 {
        return;
    }
    let named = |node: &NodeId| graph.nodes.get(*node).map(GraphNode::to_string);
    page.section("Order");
    page.text("Objects of a column wait for those that a line leads from; everything else is applied at the same time.");
    let columns = levels.iter().map(|level| {
        let boxes = level.iter().filter_map(|node| Some((*node, named(node)?)));
        boxes.collect()
    });
    page.drawing(&BoxDrawing {
        columns: columns.collect(),
        arrows: graph
            .edges
            .iter()
            .map(|edge| (edge.from, edge.to))
            .collect(),
    });
    let waits = graph.edges.iter().filter_map(|edge| {
        let cells = vec![
            named(&edge.to)?,
            named(&edge.from)?,
            edge.reason.to_string(),
        ];
        let tone = Tone::Plain;
        Some(HtmlRow { tone, cells })
    });
    page.table(
        &["Object", "waits for", "because of"],
        &waits.collect::<Vec<_>>(),
    );
}
