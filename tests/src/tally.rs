//! How many cases a test ran and how many it could not, printed past the capture of the test runner.

use std::io::Write as _;

/// Counts the cases of one test and prints the counts when it goes out of scope.
pub struct Tally {
    name: &'static str,
    ran: usize,
    left_out: Vec<String>,
    notes: Vec<String>,
}

impl Tally {
    /// A tally for the test `name` (`module::what`).
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            ran: 0,
            left_out: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// One case ran.
    pub fn ran(&mut self) {
        self.ran += 1;
    }

    /// How many cases ran so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ran
    }

    /// One case could not run, and why.
    pub fn left_out(&mut self, why: impl Into<String>) {
        self.left_out.push(why.into());
    }

    /// What was measured.
    pub fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let mut text = format!(
            "{}: {} cases ran, {} left out\n",
            self.name,
            self.ran,
            self.left_out.len()
        );
        for why in &self.left_out {
            text.push_str(&format!("  left out: {why}\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("  {note}\n"));
        }
        // A closed stderr is no reason to fail a test.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
