//! Renders plans as Markdown for a pull request, as GitHub and GitLab read it: the text of the confirmation, and below a fold object by object.

use addons_plan::changes::ObjectChange;
use jiff::Timestamp;

use super::{ShownPlan, TITLE};
use crate::output::markdown::MarkdownPage;
use crate::words::dry_run::describe_unchecked;
use crate::words::plan as words;
use crate::words::{review, typed};

/// The most bytes of the lines of all objects: a comment on GitHub has at most 65,536 characters.
const MAX_BYTES: usize = 40_000;

/// Renders the plans of one cluster, or of several by name.
pub(crate) fn render_markdown(plans: &[ShownPlan<'_>]) -> String {
    let mut page = MarkdownPage::new(TITLE);
    let mut room = MAX_BYTES;
    for shown in plans {
        page.text(&shown.place());
        if shown.plan.is_empty() {
            page.text("There is nothing to do.");
            continue;
        }
        page.code("", words::describe_preparation(shown.plan).trim_end());
        let texts = words::describe_plans(shown.plan);
        for (planned, text) in shown.plan.installations.iter().zip(texts) {
            let (headline, rest) = text.split_once('\n').unwrap_or((&text, ""));
            let rest = format!("{rest}{}", describe_unchecked(&planned.plan));
            if rest.is_empty() {
                // Its operation only waits.
                continue;
            }
            page.heading(headline);
            page.code("", rest.trim_end());
            let lines = list_objects(&planned.plan);
            let (lines, left_out) = limit(lines, &mut room);
            page.fold("Objects", "diff", &lines.join("\n"));
            if left_out > 0 {
                page.text(&format!("{left_out} lines are left out here."));
            }
        }
    }
    let command = typed::complete_commands(&typed::same_command(), None);
    page.code_line("Made by", &command);
    page.finish()
}

/// Lists the objects with their fields, in the order in which to review them.
fn list_objects(plan: &addons_plan::InstallationPlan) -> Vec<String> {
    let mut changes = plan.changes();
    changes.sort_by_key(review::review_rank);
    let mut text = Vec::new();
    for change in &changes {
        let lines = review::describe_object(plan, change, false, Timestamp::now());
        let mark = match change.change() {
            ObjectChange::Added => '+',
            ObjectChange::Changed if lines.is_empty() && change.unjudged.is_none() => continue,
            ObjectChange::Changed => '~',
            ObjectChange::Recreated => '±',
            ObjectChange::Refused => '!',
            ObjectChange::Unchanged => continue,
        };
        text.push(format!("{mark} {}", change.key));
        let why = change.recreated.as_ref().or(change.error.as_ref());
        text.extend(why.map(|why| format!("    {why}")));
        text.extend(lines.into_iter().map(|line| format!("    {line}")));
    }
    let deletions = plan.deletions();
    text.extend(deletions.map(|deletion| format!("- {}", deletion.target.key)));
    text
}

/// Returns the lines that fit, and how many do not.
fn limit(lines: Vec<String>, room: &mut usize) -> (Vec<String>, usize) {
    let all = lines.len();
    let mut shown = Vec::new();
    for line in lines {
        let Some(rest) = room.checked_sub(line.len() + 1) else {
            break;
        };
        *room = rest;
        shown.push(line);
    }
    let left_out = all - shown.len();
    (shown, left_out)
}
