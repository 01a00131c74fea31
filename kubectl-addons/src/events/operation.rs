//! The events of a plan, its execution and its reports.

use addons_engine::{Back, Report, Settled, StepEnd};
use addons_operation::Plan;
use addons_plan::readiness::ReadinessStatus;
use addons_plan::refusal::RefusedWrite;
use addons_plan::summary::PlannedAction;
use addons_plan::{Action, InstallationPlan, Verb, summary};

use super::{
    EventVersion, PlannedCounts, PrintedEvent, PrintedSettlement, ReportCounts, emit, is_on,
};
use crate::exit::{Exit, exit_of_report};

/// Prints what will be done to each installation, the warnings of its plan, and what the API server refuses.
pub fn emit_planned(plan: &Plan) {
    for planned in &plan.installations {
        let plan = &planned.plan;
        let installation = &plan.installation;
        emit(&PrintedEvent::Planned {
            installation,
            addon: &plan.addon,
            verb: plan.verb,
            from: plan.from.as_ref().map(EventVersion::new),
            to: plan.to.as_ref().map(EventVersion::new),
            counts: PlannedCounts::new(plan),
        });
        for message in &plan.warnings {
            let object = None;
            emit(&PrintedEvent::Warning {
                installation,
                object,
                message,
            });
        }
        for RefusedWrite { key, message, .. } in &plan.refused {
            emit(&PrintedEvent::Failed {
                installation,
                object: key,
                message,
            });
        }
    }
}

/// Prints the installations that are up to date.
pub fn emit_up_to_date(plan: &Plan) {
    for resolved in &plan.up_to_date {
        emit(&PrintedEvent::UpToDate {
            installation: &resolved.name,
            addon: &resolved.entry.addon,
        });
    }
}

/// Prints that the operation on each installation begins.
pub fn emit_started(plan: &Plan) {
    for planned in &plan.installations {
        emit(&PrintedEvent::Started {
            installation: &planned.plan.installation,
            verb: planned.plan.verb,
        });
    }
}

/// Prints an event of the engine for an installation.
pub fn emit_executing(plan: &InstallationPlan, event: &addons_engine::Event) {
    use addons_engine::Event as Done;
    let installation = &plan.installation;
    emit(&match event {
        Done::WaitingForLock { holder } => PrintedEvent::WaitingForLock {
            installation,
            holder,
        },
        Done::Applied { key, action } => PrintedEvent::Applied {
            installation,
            object: key,
            action: *action,
        },
        Done::Waiting { key, readiness } if readiness.status == ReadinessStatus::Current => {
            PrintedEvent::Ready {
                installation,
                object: key,
                message: &readiness.message,
            }
        }
        Done::Waiting { key, readiness } => PrintedEvent::Waiting {
            installation,
            object: key,
            status: readiness.status,
            message: &readiness.message,
        },
        Done::Refused { key, message, .. } => PrintedEvent::Waiting {
            installation,
            object: key,
            status: ReadinessStatus::InProgress,
            message,
        },
        Done::Pruned { key } => PrintedEvent::Deleted {
            installation,
            object: key,
        },
        Done::Warning { key, message } => PrintedEvent::Warning {
            installation,
            object: Some(key),
            message,
        },
        // The values are left out, because those of other managers may be secret.
        Done::Settled(Settled { key, conflict, .. }) => PrintedEvent::Conflict {
            installation,
            object: key,
            field: &conflict.field,
            manager: &conflict.manager,
            settlement: printed_settlement(event),
        },
        Done::Failed { key, message, .. } => PrintedEvent::Failed {
            installation,
            object: key,
            message,
        },
    });
}

fn printed_settlement(event: &addons_engine::Event) -> PrintedSettlement {
    match event {
        addons_engine::Event::Settled(settled) if settled.is_left() => PrintedSettlement::Left,
        _ => PrintedSettlement::Taken,
    }
}

/// Prints the result of an installation. Without a report nothing was done, and the error was already printed.
pub fn emit_reported(plan: &InstallationPlan, report: Option<&Report>, exit: Exit) {
    if !is_on() {
        return;
    }
    let nothing = Report::default();
    let report = report.unwrap_or(&nothing);
    emit_finished(plan, plan.verb, report, exit);
    match &report.back {
        Some(Back::Executed(back)) => {
            emit_finished(plan, Verb::Rollback, back, exit_of_report(back))
        }
        Some(Back::Impossible(why)) => emit(&PrintedEvent::Warning {
            installation: &plan.installation,
            object: None,
            message: &format!("it did not go back: {why}"),
        }),
        None => {}
    }
}

/// Prints the end of an operation, or of its rollback.
fn emit_finished(plan: &InstallationPlan, verb: Verb, report: &Report, exit: Exit) {
    let installation = &plan.installation;
    for (object, message) in report.skipped() {
        emit(&PrintedEvent::Skipped {
            installation,
            object,
            message,
        });
    }
    for (object, readiness) in report.not_ready() {
        emit(&PrintedEvent::NotReady {
            installation,
            object,
            message: &readiness.message,
        });
    }
    emit(&PrintedEvent::Finished {
        installation,
        verb,
        outcome: exit,
        exit_code: exit as u8,
        seconds: (report.elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
        counts: ReportCounts::new(report),
    });
}

impl PlannedCounts {
    fn new(plan: &InstallationPlan) -> Self {
        use PlannedAction::{Apply, Prune, Recreate, Release, Retain};
        let lines = summary::lines(plan);
        let count = |action| {
            let line = lines.iter().find(|line| line.action == action);
            line.map_or(0, |line| line.objects)
        };
        Self {
            create: count(Apply(Action::Create)),
            adopt: count(Apply(Action::Adopt)),
            update: count(Apply(Action::Update)),
            restore: count(Apply(Action::Restore)),
            refresh: count(Apply(Action::Refresh)),
            recreate: count(Recreate),
            prune: count(Prune),
            release: count(Release),
            retain: count(Retain),
            unchanged: plan.unchanged.len(),
        }
    }
}

impl ReportCounts {
    /// Counts the steps of a report.
    pub(crate) fn new(report: &Report) -> Self {
        let mut done = Self::default();
        for step in &report.ended {
            let count = match &step.end {
                StepEnd::Created => &mut done.created,
                StepEnd::Adopted => &mut done.adopted,
                StepEnd::Changed => &mut done.changed,
                StepEnd::Recreated => &mut done.recreated,
                StepEnd::Rewritten(objects) => {
                    done.migrated += objects;
                    continue;
                }
                StepEnd::Deleted | StepEnd::Held(_) => &mut done.pruned,
                StepEnd::Retained => &mut done.retained,
                StepEnd::Unchanged => &mut done.unchanged,
                StepEnd::Failed(_) => &mut done.failed,
                StepEnd::Skipped(_) => &mut done.skipped,
                StepEnd::NotReady(_) => &mut done.not_ready,
                StepEnd::Forgotten | StepEnd::Done | StepEnd::Ran(_) => continue,
            };
            *count += 1;
        }
        done
    }
}
