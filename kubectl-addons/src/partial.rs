//! Failures of single installations. Commands without names concern all installations, and the failure of one does not stop the others; a
//! command with names or a set changes nothing if one of them fails, and reports all failures at once.

use addons_operation::stage::FailedInstallation;
use addons_operation::{Choices, OperationError, Plan, Resolution, Resolver};
use anyhow::Result;
use common::text::list_first;

use crate::exit::Exit;
use crate::failure;
use crate::output::describe_chain;
use crate::refusal::FailedTogether;
use crate::set_place::{self, SetPlace};

/// How many installations with the same failure are named.
const MOST_NAMED: usize = 5;

/// Returns the plan of a command, and the installations that are left out of it. With named installations or a set, nothing is left out:
/// one failure fails the command.
///
/// # Errors
/// Those of [`Resolver::plan`], or the errors of named installations.
pub async fn plan_partially(
    resolver: &Resolver<'_>,
    resolution: Resolution,
    choices: &Choices,
    is_named: bool,
    set: Option<&SetPlace>,
) -> Result<(Plan, Vec<FailedInstallation>)> {
    if is_named {
        let plan = plan_whole(resolver, resolution, choices, set).await?;
        return Ok((plan, Vec::new()));
    }
    let plan = resolver.plan(resolution, choices).await;
    let mut plan = plan.map_err(|error| set_place::within(set.cloned(), error))?;
    let failed = std::mem::take(&mut plan.failed);
    Ok((plan, failed))
}

/// Returns the plan of a command whose installations are all named, or declared in `set`.
///
/// # Errors
/// Those of [`Resolver::plan`], or the errors of all installations that cannot be resolved, or planned.
pub async fn plan_whole(
    resolver: &Resolver<'_>,
    resolution: Resolution,
    choices: &Choices,
    set: Option<&SetPlace>,
) -> Result<Plan> {
    let resolution = check_resolution(resolution, set)?;
    let plan = resolver.plan(resolution, choices).await;
    let mut plan = plan.map_err(|error| set_place::within(set.cloned(), error))?;
    check_failed(std::mem::take(&mut plan.failed), set)?;
    Ok(plan)
}

/// Returns the resolution if every installation could be resolved.
///
/// # Errors
/// Those of all installations that could not be resolved.
pub fn check_resolution(mut resolution: Resolution, set: Option<&SetPlace>) -> Result<Resolution> {
    check_failed(std::mem::take(&mut resolution.failed), set)?;
    Ok(resolution)
}

fn check_failed(mut failed: Vec<FailedInstallation>, set: Option<&SetPlace>) -> Result<()> {
    if failed.len() == 1 {
        let error = failed.remove(0).error;
        return Err(set_place::within(set.cloned(), error));
    }
    let mut errors = name_errors(failed, set);
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(FailedTogether::new(errors).into()),
    }
}

/// Reports what was left out, each failure once and with its advice. Returns the highest exit code.
pub fn report_failed(failed: Vec<FailedInstallation>) -> Exit {
    let errors = name_errors(failed, None);
    let exits = errors.iter().map(failure::report_failure);
    exits.max().unwrap_or(Exit::Done)
}

/// Reports the failure of an installation under its name.
pub fn report_failure(name: &str, error: OperationError) -> Exit {
    report_failed(vec![FailedInstallation {
        name: name.to_owned(),
        error,
    }])
}

/// Adds their installations to errors that do not name them. Installations with the same error share it; if only its place differs, the
/// place is left out.
fn name_errors(failed: Vec<FailedInstallation>, set: Option<&SetPlace>) -> Vec<anyhow::Error> {
    let mut shared: Vec<(String, Vec<FailedInstallation>)> = Vec::new();
    for one in failed {
        let cause = describe_chain(one.error.root());
        match shared.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, alike)) => alike.push(one),
            None => shared.push((cause, vec![one])),
        }
    }
    let shared = shared.into_iter();
    shared
        .filter_map(|(_, alike)| name_error(alike, set))
        .collect()
}

/// The error that installations share.
fn name_error(alike: Vec<FailedInstallation>, set: Option<&SetPlace>) -> Option<anyhow::Error> {
    let text = describe_chain(&alike.first()?.error);
    let has_one_place = alike.iter().all(|one| describe_chain(&one.error) == text);
    let names: Vec<String> = alike.iter().map(|one| one.name.clone()).collect();
    let error = alike.into_iter().next()?.error;
    let error = if has_one_place {
        error
    } else {
        error.into_root()
    };
    let error = set_place::within(set.cloned(), error);
    Some(match names.as_slice() {
        [name] if names_it(&text, name) => error,
        names => error.context(list_first(names, MOST_NAMED)),
    })
}

/// Whether a text has a name as a word.
fn names_it(text: &str, name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-./".contains(letter);
    let mut words = text.split(|letter| !is_of_name(letter));
    words.any(|word| {
        let word = word.trim_end_matches('.');
        word == name || word.rsplit('/').next() == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_told_once() {
        let unknown = |name: &str| OperationError::UnknownCatalogue {
            name: name.to_owned(),
            near: None,
        };
        let failed = |name: &str, error| FailedInstallation {
            name: name.to_owned(),
            error,
        };
        let error = check_failed(
            vec![
                failed("a", unknown("x1")),
                failed("till", unknown("till")),
                failed("b", unknown("x1")),
                failed("c", unknown("x2")),
            ],
            None,
        );
        let error = error.unwrap_err();
        let together = error.downcast_ref::<FailedTogether>().unwrap();
        assert_eq!(together.errors().len(), 3);
        assert_eq!(
            error.to_string(),
            "a, b: no catalogue named x1\nno catalogue named till\nc: no catalogue named x2"
        );
        let placed = |name: &str| failed(name, unknown("x1").with_place(format!("{name} in team")));
        let error = check_failed(vec![placed("a"), placed("b")], None).unwrap_err();
        assert_eq!(
            describe_chain(error.as_ref()),
            "a, b: no catalogue named x1"
        );
        let error = check_failed(vec![placed("a")], None).unwrap_err();
        assert_eq!(
            describe_chain(error.as_ref()),
            "a in team: no catalogue named x1"
        );
        let one = check_failed(vec![failed("a", unknown("x1"))], None).unwrap_err();
        assert_eq!(one.to_string(), "no catalogue named x1");
        check_failed(Vec::new(), None).unwrap();
    }
}
