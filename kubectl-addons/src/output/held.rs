//! Warnings about one add-on each, which are held until something else is printed: those with the same text become one line.

use std::sync::{Mutex, PoisonError};

use common::text::join_equal;

/// The warnings that are not printed yet: what the line begins with, the add-on, and the text.
static HELD: Mutex<Vec<(String, String, String)>> = Mutex::new(Vec::new());

/// Holds a warning. `label` is the beginning of its line.
pub(super) fn hold(label: String, addon: &str, text: &str) {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.push((label, addon.to_owned(), text.to_owned()));
}

/// Returns the lines of all warnings that are held, and holds none any more.
pub(super) fn take_lines() -> Vec<String> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    join_lines(std::mem::take(&mut *held))
}

fn join_lines(held: Vec<(String, String, String)>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = held.as_slice();
    while let [(label, ..), ..] = rest {
        let count = rest.iter().take_while(|(other, ..)| other == label).count();
        let (now, later) = rest.split_at(count);
        let joined = join_equal(now.iter().map(|(_, addon, text)| (addon, text)));
        lines.extend(joined.iter().map(|line| format!("{label}warning: {line}")));
        rest = later;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_warnings_of_a_cluster_are_one_line() {
        let held = [
            ("[a] ", "dns", "no"),
            ("[a] ", "web", "no"),
            ("[a] ", "till", "yes"),
            ("[b] ", "dns", "no"),
        ];
        let held = held.map(|(label, addon, text)| (label.into(), addon.into(), text.into()));
        assert_eq!(
            join_lines(held.to_vec()),
            [
                "[a] warning: dns, web: no",
                "[a] warning: till: yes",
                "[b] warning: dns: no"
            ]
        );
    }
}
