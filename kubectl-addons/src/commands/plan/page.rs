//! Renders a plan as a page for a pull request: what happens, in which order, field by field, and what to review.

use addons_plan::changes::{Change, ObjectDiff};
use addons_plan::crd_safety::Breakage;
use addons_plan::graph::{Graph, Node, NodeId};
use addons_plan::{InstallationPlan, Verb, summary};

use super::Made;
use crate::commands::diff::text::{is_description, side};
use crate::output::html::graph::Drawing;
use crate::output::html::{Page, Row, Tone};
use crate::words::plan as words;

/// How many characters of a value are shown.
const SHOWN: usize = 400;

/// Renders the page of one cluster, or of several by name.
pub(super) fn page(plans: &[(Option<&str>, &Made)]) -> String {
    let mut page = Page::new("Plan of add-ons");
    for (name, made) in plans {
        let facts = &made.file.cluster;
        let at = name.map_or_else(String::new, |name| format!("Cluster {name}, "));
        let version = &facts.version;
        page.text(&format!("{at}Kubernetes {version}"));
        of_cluster(&mut page, made);
    }
    page.finish()
}

fn of_cluster(page: &mut Page, made: &Made) {
    let plan = &made.plan;
    if plan.is_empty() {
        page.text("There is nothing to do.");
        return;
    }
    let first = words::first(plan);
    page.list(
        &first
            .lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>(),
    );
    for (planned, text) in plan.installations.iter().zip(words::plans(plan)) {
        let plan = &planned.plan;
        page.section(text.lines().next().unwrap_or(&plan.installation.name));
        let counts = summary::lines(plan).into_iter().map(|line| Row {
            tone: Tone::Plain,
            cells: vec![line.word.to_owned(), line.objects.to_string(), line.kinds],
        });
        page.table(&["Action", "Objects", "Kinds"], &counts.collect::<Vec<_>>());
        let of_plan = made.file.changes.iter();
        let changes: Vec<&ObjectDiff> = of_plan
            .filter(|change| plan.step(&change.key).is_some())
            .collect();
        let findings = findings(plan, &changes);
        if !findings.is_empty() {
            page.part("Findings");
            page.list(&findings);
        }
        page.part("Changes");
        page.table(
            &["Change", "Object", "Field", "Now", "Then", "Other owners"],
            &rows(plan, &changes),
        );
    }
    order(page, &plan.graph);
}

/// Lists what the reader should review.
fn findings(plan: &InstallationPlan, changes: &[&ObjectDiff]) -> Vec<String> {
    let refused = changes.iter().filter_map(|change| {
        let error = change.error.as_ref()?;
        Some(format!("{} is refused: {error}", change.key))
    });
    let warnings = plan.warnings.iter().cloned();
    let breakages = plan.breakages.iter().flat_map(Breakage::lines);
    let migrations = plan.migrations.iter().map(ToString::to_string);
    let kept = plan.retained.iter().map(|key| format!("{key} stays"));
    let deletions = plan.refused.iter();
    let deletions = deletions.filter(|refusal| plan.step(&refusal.key).is_none());
    let deletions = deletions.map(|one| format!("{} {}", one.key, one.message));
    let all = warnings.chain(breakages).chain(migrations);
    all.chain(refused).chain(deletions).chain(kept).collect()
}

/// Returns a row for every field that changes, and for every object that is created or deleted.
fn rows(plan: &InstallationPlan, changes: &[&ObjectDiff]) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(namespace) = &plan.create_namespace {
        rows.push(row(
            Tone::Good,
            ["added", &format!("Namespace {namespace}")],
        ));
    }
    for change in changes {
        let key = change.key.to_string();
        let (tone, word) = match change.change() {
            Change::Added => (Tone::Good, "added"),
            Change::Changed => (Tone::New, "changed"),
            Change::Recreated => (Tone::Bad, "recreated"),
            Change::Refused => (Tone::Bad, "refused"),
            Change::Unchanged => continue,
        };
        let is_folded = |field: &&_| is_description(&change.key, field);
        let (folded, fields): (Vec<_>, Vec<_>) = change.fields.iter().partition(is_folded);
        if fields.is_empty() {
            let what = match folded.len() {
                0 => String::new(),
                count => format!("{count} descriptions"),
            };
            rows.push(row(tone, [word, &key, &what]));
        }
        for field in fields {
            let owners: Vec<&str> = field.owners.iter().map(|it| it.manager.as_str()).collect();
            let sides = [field.old.as_ref(), field.new.as_ref()];
            let [old, new] = sides.map(|value| side(value).chars().take(SHOWN).collect::<String>());
            let cells = [word, &key, &field.path, &old, &new, &owners.join(", ")];
            rows.push(row(tone, cells));
        }
    }
    let word = match plan.verb {
        Verb::Uninstall => "deleted",
        _ => "pruned",
    };
    let gone = plan.prune.iter().flatten();
    rows.extend(gone.map(|it| row(Tone::Bad, [word, &it.target.key.to_string()])));
    if let Some(namespace) = &plan.delete_namespace {
        let what = format!("Namespace {namespace}, if nothing else is in it");
        rows.push(row(Tone::Bad, ["deleted", &what]));
    }
    rows
}

fn row<const N: usize>(tone: Tone, cells: [&str; N]) -> Row {
    let mut cells: Vec<String> = cells.map(str::to_owned).into();
    cells.resize(cells.len().max(6), String::new());
    Row { tone, cells }
}

/// Shows the order of the objects as a drawing and as a table.
fn order(page: &mut Page, graph: &Graph) {
    let levels = graph.levels();
    if levels.len() < 2 {
        return;
    }
    let named = |node: &NodeId| graph.nodes.get(*node).map(Node::to_string);
    page.section("Order");
    page.text("Objects of a column wait for those that a line leads from; everything else is applied at the same time.");
    let columns = levels.iter().map(|level| {
        let boxes = level.iter().filter_map(|node| Some((*node, named(node)?)));
        boxes.collect()
    });
    page.drawing(&Drawing {
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
        Some(Row { tone, cells })
    });
    page.table(
        &["Object", "waits for", "because of"],
        &waits.collect::<Vec<_>>(),
    );
}
