//! Shows what the engine does while it does it: a live list on a terminal, plain lines elsewhere (product.md 2).
//!
//! Everything goes to stderr. A line is printed once its wave or object is settled, with the same words that the plan used;
//! on a terminal the unsettled ones stand below, each with why it is waiting.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::engine::Event;
use common::manifest::key::ObjectKey;
use common::readiness::{Readiness, Status};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Receives the events of one operation.
pub struct Progress {
    state: Mutex<State>,
}

struct State {
    began: Instant,
    /// `None` where stderr is no terminal.
    live: Option<MultiProgress>,
    /// `pruned` or `deleted`, as the report says.
    deleted: &'static str,
    wave: Option<WaveLine>,
    waiting: BTreeMap<ObjectKey, Option<ProgressBar>>,
}

struct WaveLine {
    title: &'static str,
    steps: usize,
    done: usize,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `live`: whether stderr is a terminal that can move its cursor; `deleted`: the word for what goes.
    pub fn new(live: bool, deleted: &'static str) -> Self {
        let state = State {
            began: Instant::now(),
            live: live.then(MultiProgress::new),
            deleted,
            wave: None,
            waiting: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Shows one event.
    pub fn show(&self, event: &Event) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .show(event);
    }

    /// Ends the live list; what is unsettled is told by the report.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end_wave();
        for bar in std::mem::take(&mut state.waiting).into_values().flatten() {
            bar.finish_and_clear();
        }
    }
}

impl State {
    fn show(&mut self, event: &Event) {
        match event {
            Event::WaitingForLock { holder } => {
                self.line(&format!("… waiting for {holder} to finish"))
            }
            Event::Wave { title, steps } => {
                self.end_wave();
                let bar = self.bar();
                self.wave = Some(WaveLine {
                    title,
                    steps: *steps,
                    done: 0,
                    began: Instant::now(),
                    bar,
                });
            }
            Event::Applied { .. } => self.applied(),
            Event::Waiting { key, readiness } => self.waiting(key, readiness),
            Event::Pruned { key } => {
                self.end_wave();
                let deleted = self.deleted;
                self.line(&format!("- {key}  {deleted}"));
            }
            Event::Warning { key, message } => self.line(&format!("careful: {key}: {message}")),
            // The report lists them with both values.
            Event::Settled(_) => {}
            Event::Failed { key, message } => {
                self.settle(key);
                self.line(&format!("✗ {key}  {message}"));
            }
        }
    }

    fn applied(&mut self) {
        let Some(wave) = &mut self.wave else { return };
        wave.done += 1;
        if let Some(bar) = &wave.bar {
            bar.set_message(format!("… {:<40} {}/{}", wave.title, wave.done, wave.steps));
        }
        if wave.done >= wave.steps {
            self.end_wave();
        }
    }

    fn end_wave(&mut self) {
        let Some(wave) = self.wave.take() else { return };
        if let Some(bar) = &wave.bar {
            bar.finish_and_clear();
        }
        let mark = if wave.done >= wave.steps {
            '✓'
        } else {
            '✗'
        };
        self.line(&format!(
            "{mark} {:<40} {}/{}  {}",
            wave.title,
            wave.done,
            wave.steps,
            seconds(wave.began.elapsed())
        ));
    }

    fn waiting(&mut self, key: &ObjectKey, readiness: &Readiness) {
        self.end_wave();
        let elapsed = seconds(self.began.elapsed());
        let name = key.to_string();
        match readiness.status {
            Status::Current => {
                self.settle(key);
                self.line(&format!("✓ {name:<40} {}  {elapsed}", readiness.message));
            }
            Status::InProgress | Status::Failed | Status::Terminating => {
                let text = format!("… {name:<40} {}", readiness.message);
                if !self.waiting.contains_key(key) {
                    let bar = self.bar();
                    self.waiting.insert(key.clone(), bar);
                }
                match self.waiting.get(key) {
                    Some(Some(bar)) => bar.set_message(text),
                    _ => self.line(&text),
                }
            }
        }
    }

    fn settle(&mut self, key: &ObjectKey) {
        if let Some(Some(bar)) = self.waiting.remove(key) {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> Option<ProgressBar> {
        let style = ProgressStyle::with_template("  {wide_msg}").ok()?;
        Some(
            self.live
                .as_ref()?
                .add(ProgressBar::new_spinner().with_style(style)),
        )
    }

    fn line(&self, text: &str) {
        let text = format!("  {}", text.trim_end());
        // A closed stderr is no reason to stop an operation.
        match &self.live {
            Some(live) => drop(live.println(text)),
            None => crate::output::note(&text),
        }
    }
}

/// `0.1s`, `12.3s`, `2m5s`: as long as somebody waited.
pub fn seconds(elapsed: Duration) -> String {
    let total = elapsed.as_secs();
    if total < 60 {
        format!("{:.1}s", elapsed.as_secs_f64())
    } else {
        format!("{}m{}s", total / 60, total % 60)
    }
}
