//! Reports an error: on stderr with the advice below it, and as an event.

use crate::events;
use crate::exit::Exit;
use crate::output::{describe_chain, note};
use crate::refusal::{AnnouncedRefusal, FailedTogether};
use crate::words::hint;

/// Prints an error with its causes and the advice, once. Returns its exit code.
pub fn report_failure(error: &anyhow::Error) -> Exit {
    if let Some(together) = error.downcast_ref::<FailedTogether>() {
        let exits = together.errors().iter().map(report_failure);
        return exits.max().unwrap_or(Exit::Failed);
    }
    let way_out = hint::indent_lines(&hint::hint_lines(error.as_ref()));
    let text = match error.downcast_ref::<AnnouncedRefusal>() {
        Some(announced) => format!("error: {announced}"),
        None => format_error(error.as_ref()),
    };
    note(&format!("{text}{way_out}"));
    let exit = Exit::from_error(error);
    events::emit(&events::PrintedEvent::Error {
        message: &describe_chain(error.as_ref()),
        exit_code: exit as u8,
    });
    exit
}

/// Formats `error: WHAT: CAUSE: CAUSE`. Further lines of a message (several problems) are indented to its first word.
fn format_error(error: &(dyn std::error::Error + 'static)) -> String {
    format!("error: {}", describe_chain(error)).replace('\n', "\n       ")
}

#[cfg(test)]
mod tests {
    use addons_operation::OperationError;
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_a_plan_listed_is_only_counted() {
        let error = OperationError::from(addons_plan::refusal::RefusalError { plans: Vec::new() });
        let whole = error.to_string();
        let announced = AnnouncedRefusal::wrap(error);
        assert_eq!(
            announced.to_string(),
            "the server refuses 0 objects of ; nothing was changed"
        );
        assert_eq!(Exit::from_error(&announced), Exit::Failed);
        assert!(announced.chain().any(|cause| cause.is::<OperationError>()));
        assert!(whole.lines().count() > 1 || whole.ends_with(":\n"));
        assert_eq!(describe_chain(announced.as_ref()), whole.trim());
    }

    #[test]
    fn a_chain_is_one_line_and_further_problems_are_below() {
        let error = anyhow!("connection refused").context("the server cannot be reached");
        assert_eq!(
            format_error(error.as_ref()),
            "error: the server cannot be reached: connection refused"
        );
        let error = anyhow!("refused").context("it was refused: refused");
        assert_eq!(
            format_error(error.as_ref()),
            "error: it was refused: refused"
        );
        let error = anyhow!("a requires b\nc requires d");
        assert_eq!(
            format_error(error.as_ref()),
            "error: a requires b\n       c requires d"
        );
    }
}
