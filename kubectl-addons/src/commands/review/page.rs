//! Renders plans as a page: what to decide on, the order as a drawing, and then object by object.

use std::collections::BTreeMap;

use addons_operation::Plan;
use addons_plan::changes::{ObjectChange, ObjectDiff};
use addons_plan::crd_safety::Breakage;
use addons_plan::graph::{Graph, GraphNode, NodeId};
use addons_plan::review::Review;
use addons_plan::summary;
use addons_plan::{InstallationPlan, migration};
use common::manifest::key::ObjectKey;
use jiff::Timestamp;

use super::{ShownPlan, TITLE, take_fitting};
use crate::output::html::graph::{BoxDrawing, DrawnBox};
use crate::output::html::{HtmlPage, HtmlRow, Tone};
use crate::words::plan as words;
use crate::words::review::{self, ListedObject, field::more_lines};

/// How many lines of one object are shown.
const MAX_LINES: usize = 200;
/// How many bytes the lines of all objects may have together: a page has to stay small enough for a pull request.
const MAX_BYTES: usize = 60_000;
/// How many characters of one line are shown.
const MAX_CHARACTERS: usize = 400;

/// Renders the page of one cluster, or of several by name.
pub(crate) fn render_page(plans: &[ShownPlan<'_>]) -> String {
    let mut page = HtmlPage::new(TITLE);
    for shown in plans {
        page.text(&shown.place());
        add_cluster(&mut page, shown.plan);
    }
    page.finish()
}

fn add_cluster(page: &mut HtmlPage, plan: &Plan) {
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
    let headlines: Vec<String> = plan.installations.iter().map(words::headline).collect();
    let installations = plan.installations.iter();
    let changes: Vec<Vec<ObjectDiff>> = installations
        .map(|planned| planned.plan.changes())
        .collect();
    let order = DrawnOrder::new(&plan.graph, &changes);
    let mut room = MAX_BYTES;
    // The drawing is on the first screen, whether one summary comes before it or the headlines of many.
    let is_alone = headlines.len() == 1;
    if !is_alone {
        page.list(&headlines);
        order.add_to(page);
    }
    let all = plan.installations.iter().zip(&headlines).zip(&changes);
    for ((planned, headline), changes) in all {
        let plan = &planned.plan;
        page.section(headline);
        add_summary(page, plan, changes);
        if is_alone {
            order.add_to(page);
        }
        page.part("Objects");
        add_objects(page, plan, changes, &mut room);
    }
    order.add_table_to(page);
}

/// Adds the findings, the counts of objects, and the decisions.
fn add_summary(page: &mut HtmlPage, plan: &InstallationPlan, changes: &[ObjectDiff]) {
    page.list(&list_findings(plan, changes));
    let counts = summary::lines(plan).into_iter().map(|line| {
        let what = format!("{}  {}", words::count_objects(line.objects), line.kinds);
        (line.action.word(), what)
    });
    let decisions = review::list_decisions(&Review::new(plan, changes), plan);
    let decisions = decisions.into_iter().map(|line| (line.word, line.text));
    let rows = counts.chain(decisions).map(|(word, text)| HtmlRow {
        tone: Tone::Plain,
        cells: vec![word.to_owned(), text],
    });
    page.table(&[], &rows.collect::<Vec<_>>());
}

/// Lists what stands in the way, and what the reader should know.
fn list_findings(plan: &InstallationPlan, changes: &[ObjectDiff]) -> Vec<String> {
    let refused = changes.iter().filter_map(|change| {
        let error = change.error.as_ref()?;
        Some(format!("{} is refused: {error}", change.key))
    });
    let warnings = plan.warnings.iter().cloned();
    let breakages = plan.breakages.iter().flat_map(Breakage::lines);
    let migrations = migration::describe(plan.migrations());
    let kept = plan.retained.iter().map(|key| format!("{key} stays"));
    let deletions = plan.refused.iter();
    let deletions = deletions.filter(|refusal| plan.step(&refusal.key).is_none());
    let deletions = deletions.map(|one| format!("{} {}", one.key, one.message));
    let all = refused.chain(deletions).chain(breakages);
    all.chain(warnings).chain(migrations).chain(kept).collect()
}

/// Adds every object that changes, is created or deleted, in the order in which to review them. `room` is how many bytes their lines may
/// still have.
fn add_objects(
    page: &mut HtmlPage,
    plan: &InstallationPlan,
    changes: &[ObjectDiff],
    room: &mut usize,
) {
    if let Some(namespace) = &plan.create_namespace {
        page.fold(Tone::Good, "added", &format!("Namespace {namespace}"), &[]);
    }
    for listed in review::list_objects(plan, changes, false, Timestamp::now()) {
        let ListedObject { change, mut lines } = listed;
        let (tone, word) = change_tone(change.change());
        lines.extend(review::list_schema(plan, change));
        page.fold(tone, word, &change.key.to_string(), &limit(lines, room));
    }
    let word = words::deleted_word(plan);
    for deletion in plan.deletions() {
        page.fold(Tone::Bad, word, &deletion.target.key.to_string(), &[]);
    }
    if let Some(namespace) = &plan.delete_namespace {
        let what = format!("Namespace {namespace}, if nothing else is in it");
        page.fold(Tone::Bad, "deleted", &what, &[]);
    }
}

/// Returns the colour and the word of a change.
fn change_tone(change: ObjectChange) -> (Tone, &'static str) {
    match change {
        ObjectChange::Added => (Tone::Good, "added"),
        ObjectChange::Changed => (Tone::New, "changed"),
        ObjectChange::Recreated => (Tone::Bad, "recreated"),
        ObjectChange::Refused => (Tone::Bad, "refused"),
        ObjectChange::Unchanged => (Tone::Plain, "unchanged"),
    }
}

/// Limits the lines of an object, their length, and the bytes of all of them.
fn limit(mut lines: Vec<String>, room: &mut usize) -> Vec<String> {
    let too_many = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let lines = lines.into_iter();
    let short = lines.map(|line| common::text::shorten(line, MAX_CHARACTERS));
    let (mut shown, left_out) = take_fitting(short.collect(), room);
    shown.extend(more_lines(too_many + left_out));
    shown
}

/// The order of the objects of a cluster.
struct DrawnOrder<'a> {
    graph: &'a Graph,
    levels: Vec<Vec<NodeId>>,
    /// What happens to each object of each installation; those that stay as they are have no colour.
    tones: BTreeMap<(usize, ObjectKey), Tone>,
}

impl<'a> DrawnOrder<'a> {
    /// `changes`: those of each installation.
    fn new(graph: &'a Graph, changes: &[Vec<ObjectDiff>]) -> Self {
        let all = changes.iter().enumerate();
        let all = all.flat_map(|(part, changes)| changes.iter().map(move |it| (part, it)));
        let changed = all.filter(|(_, it)| it.change() != ObjectChange::Unchanged);
        let tones = changed.map(|(part, change)| {
            let (tone, _) = change_tone(change.change());
            ((part, change.key.clone()), tone)
        });
        Self {
            levels: graph.levels(),
            graph,
            tones: tones.collect(),
        }
    }

    /// Adds the drawing, unless nothing waits for anything.
    fn add_to(&self, page: &mut HtmlPage) {
        if self.levels.len() < 2 {
            return;
        }
        page.part("Order");
        page.text(
            "An object waits for those that a line leads from. A dashed object stays as it is.",
        );
        let columns = self.levels.iter().map(|level| {
            let boxes = level.iter().filter_map(|id| self.draw(*id));
            boxes.collect()
        });
        let edges = self.graph.edges.iter();
        page.drawing(&BoxDrawing {
            columns: columns.collect(),
            arrows: edges.map(|edge| (edge.from, edge.to)).collect(),
        });
    }

    fn draw(&self, id: NodeId) -> Option<DrawnBox> {
        Some(match self.graph.nodes.get(id)? {
            GraphNode::Object { part, key } => DrawnBox {
                id,
                kind: key.kind.clone(),
                name: key.name.clone(),
                tone: self.tones.get(&(*part, key.clone())).copied(),
            },
            GraphNode::Gate { title } => DrawnBox {
                id,
                kind: "then".to_owned(),
                name: title.clone(),
                tone: Some(Tone::Plain),
            },
        })
    }

    /// Adds which object waits for which, and why.
    fn add_table_to(&self, page: &mut HtmlPage) {
        if self.levels.len() < 2 {
            return;
        }
        let named = |node: &NodeId| self.graph.nodes.get(*node).map(GraphNode::to_string);
        let waits = self.graph.edges.iter().filter_map(|edge| {
            let cells = vec![
                named(&edge.to)?,
                named(&edge.from)?,
                edge.reason.to_string(),
            ];
            let tone = Tone::Plain;
            Some(HtmlRow { tone, cells })
        });
        page.folded_table(
            "Why objects wait",
            &["Object", "waits for", "because of"],
            &waits.collect::<Vec<_>>(),
        );
    }
}
