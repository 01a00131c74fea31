//! Shows the events of operations: findings as warnings, work that takes long, and the progress of a plan.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addons_operation::{Activity, OperationEvent, Plan};
use addons_plan::InstallationPlan;
use tokio::task::AbortHandle;

use crate::events;
use crate::output::live::{self, ScreenSize};
use crate::output::{self, of_cluster};
use crate::progress::{ProgressDisplay, ShownFailures, format_live_work};
use crate::words;

/// How long work takes before a terminal shows it. Its line disappears afterwards.
const TERMINAL: Duration = Duration::from_secs(1);
/// How long work takes before a log shows it. Its line stays.
const LOG: Duration = Duration::from_secs(2);
/// How often lines with the elapsed time are drawn again.
const TICK: Duration = Duration::from_secs(1);
/// The shortest time between two drawings, unless lines are removed.
const DRAW_PAUSE: Duration = Duration::from_millis(50);

/// Shows what happens while a command runs. Clones share their state.
#[derive(Clone, Default)]
pub struct Display(Arc<Mutex<DisplayState>>);

#[derive(Default)]
struct DisplayState {
    progress: Option<ProgressDisplay>,
    /// The plan that is executed.
    plan: Option<Arc<Plan>>,
    under_way: Vec<RunningWork>,
    /// The warnings that were already shown, because each is shown once.
    warned: BTreeSet<String>,
    /// The task that draws the live lines again while there are any.
    ticker: Option<AbortHandle>,
    drawn: Option<Instant>,
}

/// Work that has not ended.
struct RunningWork {
    work: Activity,
    began: Instant,
    /// The task that shows the work once it takes long.
    patience: Option<AbortHandle>,
    /// Whether it has a line on the terminal.
    is_live: bool,
}

impl Display {
    /// Begins to show the execution of a plan, which may take as long as `timeout`. `brief` shows a single line per installation on a
    /// terminal.
    pub fn begin(&self, plan: &Arc<Plan>, brief: bool, timeout: Duration) {
        events::emit_started(plan);
        let terminal = output::can_move_cursor().then(ScreenSize::current);
        let plans = plan.installations.iter().map(|planned| &planned.plan);
        let plans: Vec<&InstallationPlan> = plans.collect();
        let mut state = self.state();
        state.progress = Some(ProgressDisplay::new(terminal, brief, &plans, timeout));
        state.plan = Some(Arc::clone(plan));
    }

    /// Ends the display of a plan. Returns the failures that were shown. The report names what is unfinished.
    pub fn end(&self) -> ShownFailures {
        let mut state = self.state();
        let ended = state.progress.take().map(ProgressDisplay::finish);
        state.draw(self, true);
        let (lines, failures) = ended.unwrap_or_default();
        print_lines(&lines);
        failures
    }

    /// Shows an event.
    pub fn show(&self, event: &OperationEvent) {
        match event {
            OperationEvent::Began(work) => self.begin_work(work),
            OperationEvent::Ended(work) => {
                let mut state = self.state();
                state.end_work(work);
                state.draw(self, true);
            }
            OperationEvent::Finding(finding) => {
                let text = words::finding::describe_finding(finding);
                if self.state().warned.insert(text.clone()) {
                    match words::finding::shared_warning(finding) {
                        Some((addon, why)) => output::warn_of_addon(addon, &why),
                        None => output::note(&text),
                    }
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
                self.show_progress(|progress, _| progress.begin_rollback(*part, text.trim_end()));
            }
            OperationEvent::Executing { part, event } => {
                self.show_progress(|progress, plan| {
                    let planned = plan.installations.get(*part);
                    let line = planned.and_then(|one| progress.show(*part, &one.plan, event));
                    line.into_iter().collect()
                });
            }
        }
    }

    /// Prints the lines that the progress returns, and draws the live lines again.
    fn show_progress(&self, show: impl FnOnce(&mut ProgressDisplay, &Plan) -> Vec<String>) {
        let mut state = self.state();
        let DisplayState { progress, plan, .. } = &mut *state;
        let (Some(progress), Some(plan)) = (progress, plan) else {
            return;
        };
        progress.resize(ScreenSize::current());
        let lines = show(progress, plan);
        state.draw(self, !lines.is_empty());
        print_lines(&lines);
    }

    fn begin_work(&self, work: &Activity) {
        let live = output::can_move_cursor();
        let mut state = self.state();
        // Show types that are waited for at once, and again whenever fewer are missing.
        if let Activity::Types { .. } = work {
            state.show_missing(work, live);
            state.draw(self, true);
            return;
        }
        let patience = of_cluster::spawn_labelled(show_when_slow(self.clone(), work.clone(), live));
        state.under_way.push(RunningWork {
            work: work.clone(),
            began: Instant::now(),
            patience: Some(patience.abort_handle()),
            is_live: false,
        });
    }

    fn state(&self) -> MutexGuard<'_, DisplayState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints lines that stay.
fn print_lines(lines: &[String]) {
    for line in lines {
        output::note(&format!("  {}", line.trim_end()));
    }
}

/// Shows work that takes long: on a terminal in a line that counts and disappears, elsewhere once.
async fn show_when_slow(display: Display, work: Activity, live: bool) {
    tokio::time::sleep(if live { TERMINAL } else { LOG }).await;
    let mut state = display.state();
    let Some(under_way) = state.under_way.iter_mut().find(|it| it.work == work) else {
        return;
    };
    if live {
        under_way.is_live = true;
        state.draw(&display, true);
    } else {
        output::note(&format!("  … {}", words::describe_work(&work)));
    }
}

/// Draws the live lines again, because they count the time.
async fn draw_regularly(display: Display) {
    loop {
        tokio::time::sleep(TICK).await;
        display.state().draw(&display, true);
    }
}

impl DisplayState {
    /// Draws the lines at the bottom of the terminal. `now`: even if they were drawn a moment ago.
    fn draw(&mut self, display: &Display, now: bool) {
        if !output::can_move_cursor() {
            return;
        }
        let is_fresh = self.drawn.is_some_and(|at| at.elapsed() < DRAW_PAUSE);
        if is_fresh && !now {
            return;
        }
        self.drawn = Some(Instant::now());
        let lines = self.live_lines(ScreenSize::current());
        match &self.ticker {
            Some(ticker) if lines.is_empty() => {
                ticker.abort();
                self.ticker = None;
            }
            None if !lines.is_empty() => {
                let ticker = of_cluster::spawn_labelled(draw_regularly(display.clone()));
                self.ticker = Some(ticker.abort_handle());
            }
            Some(_) | None => {}
        }
        live::draw(lines);
    }

    fn live_lines(&mut self, size: ScreenSize) -> Vec<String> {
        let works = self.under_way.iter().filter(|it| it.is_live);
        let mut lines: Vec<String> = works
            .flat_map(|it| {
                let work = words::describe_work(&it.work);
                format_live_work(&work, it.began.elapsed(), size.width)
            })
            .collect();
        if let Some(progress) = &mut self.progress {
            progress.resize(size);
            let rows = size.height.saturating_sub(lines.len());
            lines.extend(progress.live_lines(Instant::now(), rows));
        }
        lines
    }

    fn show_missing(&mut self, work: &Activity, live: bool) {
        if !live {
            output::note(&format!("  … {}", words::describe_work(work)));
            return;
        }
        match self.under_way.iter_mut().find(|it| is_same(&it.work, work)) {
            Some(known) => known.work = work.clone(),
            None => self.under_way.push(RunningWork {
                work: work.clone(),
                began: Instant::now(),
                patience: None,
                is_live: true,
            }),
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
    }
}

/// Whether two events are about the same work. Types that are waited for become fewer.
fn is_same(a: &Activity, b: &Activity) -> bool {
    match (a, b) {
        (Activity::Types { addon: a, .. }, Activity::Types { addon: b, .. }) => a == b,
        (a, b) => a == b,
    }
}
