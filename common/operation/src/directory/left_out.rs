//! Plans a directory. A file that cannot be applied is left out, and the other files of its add-on are applied (semantics 21.3).

use std::collections::{BTreeMap, BTreeSet};

use addons_plan::choices::Choices;
use addons_plan::inventory::Inventory;
use addons_plan::refusal;
use common::api::names::InstallationName;
use common::directory::NAMESPACE;
use common::manifest::key::ObjectKey;

use crate::error::OperationError;
use crate::event::Finding;
use crate::plan::{Plan, PlannedInstallation};
use crate::resolve::resolved::{GivenObjects, Resolved};
use crate::resolve::{Resolution, Resolver};
use crate::stage::FailedInstallation;

/// The files of one add-on that cannot be applied, and why.
struct BadFiles {
    files: BTreeSet<String>,
    error: OperationError,
}

impl Resolver<'_> {
    /// Plans the installations of a directory. Objects that cannot be planned, or that the server refuses, leave their file out; its
    /// error is among the failures of the plan.
    ///
    /// # Errors
    /// Those of [`Resolver::plan`].
    pub async fn plan_directory(
        &self,
        resolution: Resolution,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        let mut failed = resolution.failed;
        let mut installations = resolution.installations;
        loop {
            let again = Resolution {
                installations: installations.clone(),
                failed: Vec::new(),
                to_uninstall: resolution.to_uninstall.clone(),
                leaving: resolution.leaving.clone(),
            };
            let mut plan = self.plan(again, choices).await?;
            let bad = find_bad_files(&mut plan, &installations);
            if bad.is_empty() {
                failed.append(&mut plan.failed);
                plan.failed = failed;
                return Ok(plan);
            }
            for (name, BadFiles { files, error }) in bad {
                installations
                    .retain_mut(|resolved| resolved.name != name || leave_out(resolved, &files));
                let mut rest = installations.iter();
                if rest.any(|resolved| resolved.name == name) {
                    let files: Vec<String> = files.iter().cloned().collect();
                    self.ctx.report_finding(Finding::LeftOut(files.join(", ")));
                }
                failed.push(FailedInstallation {
                    name: files.into_iter().next().unwrap_or_default(),
                    error,
                });
            }
        }
    }
}

/// Returns the files that keep a plan from being executed, by installation, and takes their errors out of the plan.
fn find_bad_files(
    plan: &mut Plan,
    installations: &[Resolved],
) -> BTreeMap<InstallationName, BadFiles> {
    let mut found = BTreeMap::new();
    let mut rest = Vec::new();
    for one in std::mem::take(&mut plan.failed) {
        let mut all = installations.iter();
        let of = all.find(|resolved| path(resolved) == Some(one.name.as_str()));
        match of.zip(files_of_error(&one.error)) {
            Some((resolved, files)) => {
                let error = one.error;
                found.insert(resolved.name.clone(), BadFiles { files, error });
            }
            None => rest.push(one),
        }
    }
    plan.failed = rest;
    for planned in &plan.installations {
        let mut all = installations.iter();
        let of = all.find(|resolved| resolved.name == planned.plan.installation);
        if let Some((given, bad)) = of.and_then(|of| {
            let given = of.given.as_ref()?;
            Some((of, refused_files(planned, given)?))
        }) {
            found.insert(given.name.clone(), bad);
        }
    }
    found
}

/// Returns the file or folder of the add-on.
fn path(resolved: &Resolved) -> Option<&str> {
    resolved.given.as_ref().map(|given| given.path.as_str())
}

/// Returns the files with the objects that cannot be planned; `None` if the error is another one.
fn files_of_error(error: &OperationError) -> Option<BTreeSet<String>> {
    match error {
        OperationError::InDirectory { error, .. } => files_of_error(error),
        OperationError::Desired(error) => {
            let problems = error.problems.iter();
            Some(problems.map(|it| it.place().file.clone()).collect())
        }
        _ => None,
    }
}

/// Returns the files with the objects that the server refuses to apply; `None` if there are none, or if it refuses something else.
fn refused_files(planned: &PlannedInstallation, given: &GivenObjects) -> Option<BadFiles> {
    let plan = &planned.plan;
    let error = refusal::check([plan]).err()?;
    let file_of = |key: &ObjectKey| {
        let mut manifests = given.manifests.iter();
        let manifest = manifests.find(|manifest| {
            let written = ObjectKey::from_object(&manifest.object);
            written.is_some_and(|written| key.is_described_by(&written, NAMESPACE))
        })?;
        Some(manifest.place.file.clone())
    };
    let refused = plan.refused.iter();
    let files: Option<BTreeSet<String>> = refused.map(|write| file_of(&write.key)).collect();
    Some(BadFiles {
        files: files?,
        error: planned.in_directory(error.into()),
    })
}

/// Leaves files out. Nothing of the add-on is pruned then, because they may define it. Returns whether the add-on is to be planned again:
/// something was left out, and something is left of it.
fn leave_out(resolved: &mut Resolved, files: &BTreeSet<String>) -> bool {
    let inventory = Inventory::from_status(resolved.status());
    let Some(given) = &resolved.given else {
        return false;
    };
    let mut given = GivenObjects::clone(given);
    let before = given.manifests.len();
    given
        .manifests
        .retain(|manifest| !files.contains(&manifest.place.file));
    given.superseded.clear();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let why = format!("{} cannot be applied, and may define it", names.join(", "));
    for key in inventory.objects.into_keys() {
        given.kept.entry(key).or_insert_with(|| why.clone());
    }
    let after = given.manifests.len();
    resolved.given = Some(given.into());
    after > 0 && after < before
}
