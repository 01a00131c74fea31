//! Shows the events of operations: findings as warnings, work that takes long, and the progress of a plan.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons_operation::{Event, Plan, Work};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::AbortHandle;

use crate::events;
use crate::output::{self, of_cluster};
use crate::progress::Progress;
use crate::words;

/// How long work takes before a terminal shows it. Its line disappears afterwards.
const TERMINAL: Duration = Duration::from_secs(1);
/// How long work takes before a log shows it. Its line stays.
const LOG: Duration = Duration::from_secs(2);
/// How often the line on a terminal is updated.
const TICK: Duration = Duration::from_secs(1);

/// Shows what happens while a command runs. Clones share their state.
#[derive(Clone, Default)]
pub struct Display(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    progress: Option<Progress>,
    under_way: Vec<UnderWay>,
    /// The warnings that were already shown, because each is shown once.
    warned: BTreeSet<String>,
}

/// Work that has not ended.
struct UnderWay {
    work: Work,
    /// The task that shows the work once it takes long.
    patience: Option<AbortHandle>,
    bar: Option<ProgressBar>,
}

impl Display {
    /// Begins to show the execution of a plan. `brief` shows a single line per installation on a terminal.
    pub fn begin(&self, plan: &Arc<Plan>, brief: bool) {
        events::started(plan);
        self.state().progress = Some(Progress::new(output::live(), brief, plan));
    }

    /// Ends the display of a plan. The report names what is unfinished.
    pub fn end(&self) {
        if let Some(progress) = self.state().progress.take() {
            progress.finish();
        }
    }

    /// Shows an event.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Began(work) => self.began(work),
            Event::Ended(work) => self.state().ended(work),
            Event::Found(finding) => {
                let text = words::finding::text(finding);
                if self.state().warned.insert(text.clone()) {
                    output::note(&text);
                    let message = text.trim_start_matches("warning: ");
                    events::emit(&events::Event::Finding { message });
                }
            }
            Event::Defined { definition, done } => {
                let message = words::definition(definition, done);
                output::note(&message);
                events::emit(&events::Event::Defined {
                    object: definition,
                    message: &message,
                });
            }
            Event::GoingBack { part, plan } => {
                events::planned(plan);
                events::started(plan);
                let text = words::plan::atomic::going_back(plan);
                if let Some(progress) = &mut self.state().progress {
                    progress.goes_back(*part, text.trim_end());
                }
            }
            Event::Executing { part, event } => {
                if let Some(progress) = &mut self.state().progress {
                    progress.show(*part, event);
                }
            }
        }
    }

    fn began(&self, work: &Work) {
        let live = output::live();
        let mut state = self.state();
        // Show types that are waited for at once, and again whenever fewer are missing.
        if let Work::Types { .. } = work {
            state.waits(work, live);
            return;
        }
        let patience = of_cluster::spawn(patience(self.clone(), work.clone(), live));
        state.under_way.push(UnderWay {
            work: work.clone(),
            patience: Some(patience.abort_handle()),
            bar: None,
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows work that takes long: on a terminal in a line that counts and disappears, elsewhere once.
async fn patience(display: Display, work: Work, live: bool) {
    tokio::time::sleep(if live { TERMINAL } else { LOG }).await;
    let mut state = display.state();
    let Some(under_way) = state.under_way.iter_mut().find(|it| it.work == work) else {
        return;
    };
    let text = format!("… {}", words::work(&work));
    if live {
        let bar = counting().with_elapsed(TERMINAL);
        bar.set_message(output::plain(&text));
        under_way.bar = Some(bar);
    } else {
        output::note(&format!("  {text}"));
    }
}

impl State {
    fn waits(&mut self, work: &Work, live: bool) {
        let text = format!("… {}", words::work(work));
        if !live {
            output::note(&format!("  {text}"));
            return;
        }
        let same = self.under_way.iter().position(|it| is_same(&it.work, work));
        let at = same.unwrap_or_else(|| {
            self.under_way.push(UnderWay {
                work: work.clone(),
                patience: None,
                bar: Some(counting()),
            });
            self.under_way.len() - 1
        });
        if let Some(bar) = self.under_way.get(at).and_then(|it| it.bar.as_ref()) {
            bar.set_message(output::plain(&text));
        }
    }

    fn ended(&mut self, work: &Work) {
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
fn is_same(a: &Work, b: &Work) -> bool {
    match (a, b) {
        (Work::Types { addon: a, .. }, Work::Types { addon: b, .. }) => a == b,
        (a, b) => a == b,
    }
}

/// Returns a line on a terminal that counts the elapsed time.
fn counting() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // The template is constant. Without it, the default style shows the same text.
    if let Ok(style) = ProgressStyle::with_template("  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
