//! Shows the events of operations: findings as warnings, work that takes long, and the progress of a plan.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons_operation::{Activity, OperationEvent, Plan};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::AbortHandle;

use crate::events;
use crate::output::{self, of_cluster};
use crate::progress::ProgressDisplay;
use crate::words;

/// How long work takes before a terminal shows it. Its line disappears afterwards.
const TERMINAL: Duration = Duration::from_secs(1);
/// How long work takes before a log shows it. Its line stays.
const LOG: Duration = Duration::from_secs(2);
/// How often the line on a terminal is updated.
const TICK: Duration = Duration::from_secs(1);

/// Shows what happens while a command runs. Clones share their state.
#[derive(Clone, Default)]
pub struct Display(Arc<Mutex<DisplayState>>);

#[derive(Default)]
struct DisplayState {
    progress: Option<ProgressDisplay>,
    under_way: Vec<RunningWork>,
    /// The warnings that were already shown, because each is shown once.
    warned: BTreeSet<String>,
}

/// Work that has not ended.
struct RunningWork {
    work: Activity,
    /// The task that shows the work once it takes long.
    patience: Option<AbortHandle>,
    bar: Option<ProgressBar>,
}

impl Display {
    /// Begins to show the execution of a plan. `brief` shows a single line per installation on a terminal.
    pub fn begin(&self, plan: &Arc<Plan>, brief: bool) {
        events::emit_started(plan);
        self.state().progress = Some(ProgressDisplay::new(output::can_move_cursor(), brief, plan));
    }

    /// Ends the display of a plan. The report names what is unfinished.
    pub fn end(&self) {
        if let Some(progress) = self.state().progress.take() {
            progress.finish();
        }
    }

    /// Shows an event.
    pub fn show(&self, event: &OperationEvent) {
        match event {
            OperationEvent::Began(work) => self.begin_work(work),
            OperationEvent::Ended(work) => self.state().end_work(work),
            OperationEvent::Finding(finding) => {
                let text = words::finding::describe_finding(finding);
                if self.state().warned.insert(text.clone()) {
                    output::note(&text);
                    let message = text.trim_start_matches("warning: ");
                    events::emit(&events::PrintedEvent::Finding { message });
                }
            }
            OperationEvent::Defined { definition, done } => {
                let message = words::describe_definition(definition, done);
                output::note(&message);
                events::emit(&events::PrintedEvent::Defined {
                    object: definition,
                    message: &message,
                });
            }
            OperationEvent::RollingBack { part, plan } => {
                events::emit_planned(plan);
                events::emit_started(plan);
                let text = words::plan::atomic::announce_going_back(plan);
                if let Some(progress) = &mut self.state().progress {
                    progress.begin_rollback(*part, text.trim_end());
                }
            }
            OperationEvent::Executing { part, event } => {
                if let Some(progress) = &mut self.state().progress {
                    progress.show(*part, event);
                }
            }
        }
    }

    fn begin_work(&self, work: &Activity) {
        let live = output::can_move_cursor();
        let mut state = self.state();
        // Show types that are waited for at once, and again whenever fewer are missing.
        if let Activity::Types { .. } = work {
            state.show_waiting(work, live);
            return;
        }
        let patience = of_cluster::spawn_labelled(show_when_slow(self.clone(), work.clone(), live));
        state.under_way.push(RunningWork {
            work: work.clone(),
            patience: Some(patience.abort_handle()),
            bar: None,
        });
    }

    fn state(&self) -> MutexGuard<'_, DisplayState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows work that takes long: on a terminal in a line that counts and disappears, elsewhere once.
async fn show_when_slow(display: Display, work: Activity, live: bool) {
    tokio::time::sleep(if live { TERMINAL } else { LOG }).await;
    let mut state = display.state();
    let Some(under_way) = state.under_way.iter_mut().find(|it| it.work == work) else {
        return;
    };
    let text = format!("… {}", words::describe_work(&work));
    if live {
        let bar = counting_bar().with_elapsed(TERMINAL);
        bar.set_message(output::escape_text(&text));
        under_way.bar = Some(bar);
    } else {
        output::note(&format!("  {text}"));
    }
}

impl DisplayState {
    fn show_waiting(&mut self, work: &Activity, live: bool) {
        let text = format!("… {}", words::describe_work(work));
        if !live {
            output::note(&format!("  {text}"));
            return;
        }
        let same = self.under_way.iter().position(|it| is_same(&it.work, work));
        let at = same.unwrap_or_else(|| {
            self.under_way.push(RunningWork {
                work: work.clone(),
                patience: None,
                bar: Some(counting_bar()),
            });
            self.under_way.len() - 1
        });
        if let Some(bar) = self.under_way.get(at).and_then(|it| it.bar.as_ref()) {
            bar.set_message(output::escape_text(&text));
        }
    }

    fn end_work(&mut self, work: &Activity) {
        let Some(at) = self.under_way.iter().position(|it| is_same(&it.work, work)) else {
            return;
        };
        let ended = self.under_way.swap_remove(at);
        if let Some(patience) = ended.patience {
            patience.abort();
        }
        if let Some(bar) = ended.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether two events are about the same work. Types that are waited for become fewer.
fn is_same(a: &Activity, b: &Activity) -> bool {
    match (a, b) {
        (Activity::Types { addon: a, .. }, Activity::Types { addon: b, .. }) => a == b,
        (a, b) => a == b,
    }
}

/// Returns a line on a terminal that counts the elapsed time.
fn counting_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // The template is constant. Without it, the default style shows the same text.
    if let Ok(style) = ProgressStyle::with_template("  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
