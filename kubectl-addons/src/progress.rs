//! Shows the progress of the engine: a live list on a terminal, plain lines elsewhere.
//!
//! Everything goes to stderr. A command for one installation shows its objects (`objects`). One for several shows a line for each
//! installation (`installations`), except in a log or with `-v`.

mod installations;
mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_engine::Event;
use addons_plan::InstallationPlan;
use addons_plan::changes::RefusalRemedy;
use common::manifest::key::ObjectKey;
use common::text::and_more;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use installations::InstallationLines;
use objects::ObjectLines;

use crate::words::hint::{indent_lines, object_hints};
use crate::{events, output};

/// The progress of a plan.
pub struct ProgressDisplay {
    plan: Arc<addons_operation::Plan>,
    screen: Screen,
    form: ProgressForm,
    /// The warnings of the server, with the objects that they concern.
    warnings: BTreeMap<String, Vec<ObjectKey>>,
}

/// Whether objects or installations have lines.
enum ProgressForm {
    Objects(ObjectLines),
    Installations(InstallationLines),
}

/// Where lines are printed.
struct Screen {
    /// `None` if stderr is not a terminal.
    live: Option<MultiProgress>,
}

impl ProgressDisplay {
    /// Creates the display. `live` says that stderr is a terminal that can move its cursor, `brief` that an installation has a single line.
    pub fn new(live: bool, brief: bool, plan: &Arc<addons_operation::Plan>) -> Self {
        let form = if live && brief {
            ProgressForm::Installations(InstallationLines::new(plan))
        } else {
            ProgressForm::Objects(ObjectLines::new(plan))
        };
        Self {
            plan: Arc::clone(plan),
            screen: Screen {
                live: live.then(MultiProgress::new),
            },
            form,
            warnings: BTreeMap::new(),
        }
    }

    /// Ends the live list. The report names what is unfinished.
    pub fn finish(mut self) {
        match &mut self.form {
            ProgressForm::Objects(objects) => objects.finish(&self.screen),
            ProgressForm::Installations(installations) => installations.finish(),
        }
        for (message, keys) in &self.warnings {
            if let [first, others @ ..] = keys.as_slice() {
                let others = and_more(others.len());
                self.screen
                    .line(&format!("warning: {first}{others}: {message}"));
            }
        }
    }

    /// Shows that an installation failed and is rolled back. `text` describes the rollback.
    pub fn begin_rollback(&mut self, part: usize, text: &str) {
        match &mut self.form {
            ProgressForm::Objects(objects) => objects.begin_rollback(&self.screen, part),
            ProgressForm::Installations(installations) => installations.begin_rollback(part),
        }
        for line in text.lines() {
            self.screen.line(line);
        }
    }

    /// Shows an event of an installation.
    pub fn show(&mut self, part: usize, event: &Event) {
        let Some(planned) = self.plan.installations.get(part) else {
            return;
        };
        let plan = &planned.plan;
        events::emit_executing(plan, event);
        let screen = &self.screen;
        match event {
            Event::WaitingForLock { holder } => {
                screen.line(&format!("… waiting for {holder} to finish"));
            }
            Event::Applied { key, .. } => match &mut self.form {
                ProgressForm::Objects(objects) => objects.count_applied(screen, part, key, plan),
                ProgressForm::Installations(_) if is_target_namespace(plan, key) => {}
                ProgressForm::Installations(installations) => {
                    installations.count(screen, part, key)
                }
            },
            Event::Waiting { key, readiness } => {
                let (status, message) = (readiness.status, &readiness.message);
                match &mut self.form {
                    ProgressForm::Objects(objects) => {
                        objects.show_waiting(screen, key, status, message)
                    }
                    ProgressForm::Installations(installations) => {
                        installations.show_waiting(screen, part, key, status, message);
                    }
                }
            }
            Event::Pruned { key } => match &mut self.form {
                ProgressForm::Objects(objects) => objects.show_pruned(screen, part, key),
                ProgressForm::Installations(installations) => {
                    installations.count(screen, part, key)
                }
            },
            // One warning may concern hundreds of objects.
            Event::Warning { key, message } => {
                let keys = self.warnings.entry(message.clone()).or_default();
                keys.push(key.clone());
            }
            Event::Refused {
                key,
                message,
                remedy,
            } => screen.line(&format!(
                "… {key}  {message}{}",
                remedy_text(remedy, key, plan)
            )),
            // The report lists conflicts with both values.
            Event::Settled(_) => {}
            Event::Failed {
                key,
                message,
                remedy,
            } => {
                match &mut self.form {
                    ProgressForm::Objects(objects) => objects.end_wait(key),
                    ProgressForm::Installations(installations) => {
                        installations.count_failure(screen, part, key)
                    }
                }
                let way_out = remedy.as_ref().map(|remedy| remedy_text(remedy, key, plan));
                let way_out = way_out.unwrap_or_default();
                screen.line(&format!("✗ {key}  {message}{way_out}"));
            }
        }
    }
}

/// Whether an object is the target namespace, which is created outside of the counted steps.
fn is_target_namespace(plan: &InstallationPlan, key: &ObjectKey) -> bool {
    key.kind == "Namespace" && plan.step(key).is_none()
}

/// Formats the advice for an object, below its failure.
fn remedy_text(remedy: &RefusalRemedy, key: &ObjectKey, plan: &InstallationPlan) -> String {
    indent_lines(&object_hints(remedy, key, &plan.installation))
}

impl Screen {
    fn line(&self, text: &str) {
        let text = format!("  {}", text.trim_end());
        // A closed stderr does not stop an operation.
        match &self.live {
            Some(live) => drop(live.println(output::escape_text(&text))),
            None => output::note(&text),
        }
    }

    /// Creates a line that changes. `None` if the cursor cannot move.
    fn bar(&self) -> Option<ProgressBar> {
        let style = ProgressStyle::with_template("  {wide_msg}").ok()?;
        let bar = ProgressBar::new_spinner().with_style(style);
        Some(self.live.as_ref()?.add(bar))
    }
}

#[cfg(test)]
mod tests {
    use common::api::names::InstallationName;

    use super::*;

    #[test]
    fn the_target_namespace_is_not_one_of_the_steps() {
        let name = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "web".to_owned(),
        };
        let plan = InstallationPlan {
            create_namespace: Some("shop".to_owned()),
            ..InstallationPlan::nothing(name, "web")
        };
        let key = |kind: &str| ObjectKey {
            kind: kind.to_owned(),
            name: "shop".to_owned(),
            ..ObjectKey::default()
        };
        assert!(is_target_namespace(&plan, &key("Namespace")));
        assert!(!is_target_namespace(&plan, &key("ConfigMap")));
    }
}
