//! The plans of many installations on a terminal: a line each, and below it what the user must know before agreeing.

use std::fmt::Write as _;

use addons_plan::review::Review;
use addons_plan::summary::PlannedAction;
use addons_plan::{InstallationPlan, Verb, summary};

use addons_operation::{Plan, PlannedInstallation};

use super::{MAX_LISTED_OBJECTS, add_acceptable, add_deletions, add_line, add_warnings, headline};
use crate::output::pad_text;
use crate::words::review;

/// Describes the plans of a command. `unjudged` describes the writes that the server could not judge.
pub fn describe_briefly(all: &Plan, unjudged: fn(&InstallationPlan) -> String) -> String {
    let headlines: Vec<String> = all.installations.iter().map(headline).collect();
    let width = headlines.iter().map(|text| text.chars().count()).max();
    let width = width.unwrap_or_default();
    let deleted = all.installations.iter();
    let deleted: usize = deleted.map(|item| item.plan.deletions().count()).sum();
    let mut text = String::new();
    for (item, headline) in all.installations.iter().zip(headlines) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}  {}",
            pad_text(&headline, width),
            format_plan_counts(item)
        );
        if deleted <= MAX_LISTED_OBJECTS {
            add_deletions(&mut text, &item.plan);
        }
        if let Some(namespace) = &item.plan.create_namespace {
            add_line(&mut text, "create", &format!("Namespace {namespace}"));
        }
        if let Some(namespace) = &item.plan.delete_namespace {
            let what = format!("Namespace {namespace}, if nothing else is in it");
            add_line(&mut text, "delete", &what);
        }
        add_acceptable(&mut text, &item.plan);
        let review = Review::new(&item.plan, &item.plan.changes());
        let decisions = review::list_decisions(&review, &item.plan).into_iter();
        for line in decisions.filter(|line| line.word == "rights") {
            add_line(&mut text, line.word, &line.text);
        }
        add_warnings(&mut text, &item.plan);
        text.push_str(&unjudged(&item.plan));
    }
    text.push_str("to see every object and the order, add -v 1\n");
    text
}

/// Formats the counts of a plan: `create 4, update 2, prune 1`.
fn format_plan_counts(item: &PlannedInstallation) -> String {
    let plan = &item.plan;
    let word = |action: PlannedAction| match (action, plan.verb) {
        (PlannedAction::Prune, Verb::Uninstall) => "delete",
        (PlannedAction::Retain, _) => "keep",
        _ => action.word(),
    };
    let counts = summary::lines(plan);
    let counts: Vec<String> = counts
        .iter()
        .map(|line| format!("{} {}", word(line.action), line.objects))
        .collect();
    match (counts.as_slice(), plan.helm_release()) {
        ([], Some(_)) => "by helm".to_owned(),
        ([], None) => "only its record".to_owned(),
        (counts, _) => counts.join(", "),
    }
}
