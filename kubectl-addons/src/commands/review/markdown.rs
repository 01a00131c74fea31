//! Renders plans as Markdown for a pull request, as GitHub and GitLab read it: the text of the confirmation, and below a fold object by object.

use addons_plan::InstallationPlan;
use jiff::Timestamp;

use super::{ShownPlan, TITLE, take_fitting};
use crate::output::markdown::MarkdownPage;
use crate::words::dry_run::describe_unchecked;
use crate::words::plan as words;
use crate::words::review::{ListedObject, change_mark, list_objects};
use crate::words::typed;

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
            let (lines, left_out) = take_fitting(list_lines(&planned.plan), &mut room);
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
fn list_lines(plan: &InstallationPlan) -> Vec<String> {
    let changes = plan.changes();
    let mut text = Vec::new();
    for ListedObject { change, lines } in list_objects(plan, &changes, false, Timestamp::now()) {
        text.push(format!("{} {}", change_mark(change.change()), change.key));
        let why = change.recreated.as_ref().or(change.error.as_ref());
        let below = why.into_iter().chain(&lines);
        text.extend(below.map(|line| format!("    {line}")));
    }
    let deletions = plan.deletions();
    text.extend(deletions.map(|deletion| format!("- {}", deletion.target.key)));
    text
}
