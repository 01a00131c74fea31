//! Defaults and verdicts as the webhook computes them, so that the result is the same without a webhook (semantics 10.3).

use std::sync::Arc;

use addons_admission::installation_facts::InstallationFacts;
use addons_admission::marks::GuardMarks;
use addons_admission::rules;
use addons_admission::verdict::{AdmissionProblem, Verdict};
use addons_admission::{
    AdmissionFacts, AdmissionSettings, NamespaceFacts, Requester, mutate, validate,
};
use addons_engine::EngineError;
use common::api::catalogue::FormField;
use common::api::installation::{AddonInstallation, format};
use common::api::policy::PolicyAction;
use common::catalogue::Origin;
use common::catalogue::select::ClusterVersions;
use common::values::form;
use common::values::layers::Layers;

use super::resolved::Resolved;
use crate::context::Context;
use crate::error::{OperationError, Questions, VerdictRefusal};
use crate::event::Finding;
use crate::records::Records;

/// Returns the facts for verdicts: what was already read, and the catalogues if installations name them.
///
/// # Errors
/// The catalogues cannot be read.
pub async fn collect_facts(
    ctx: &Context,
    records: &Records,
    cluster: ClusterVersions,
    catalogues: bool,
) -> Result<AdmissionFacts, OperationError> {
    let catalogues = if catalogues {
        ctx.contents().await?.objects
    } else {
        &[]
    };
    let installations = records.all.iter().map(InstallationFacts::from);
    Ok(AdmissionFacts {
        catalogues: catalogues
            .iter()
            .map(|catalogue| Arc::new(catalogue.clone().into()))
            .collect(),
        installations: installations.map(Arc::new).collect(),
        are_incomplete: false,
        // The plan evaluates them when sources and images are known.
        policies: Vec::new(),
        cluster,
        namespaces: records
            .local
            .iter()
            .map(|name| (name.clone(), local_namespace_facts()))
            .collect(),
        settings: AdmissionSettings {
            system_namespace: ctx.settings().system_namespace.clone(),
            ..AdmissionSettings::default()
        },
    })
}

fn local_namespace_facts() -> NamespaceFacts {
    NamespaceFacts {
        local: true,
        ..NamespaceFacts::default()
    }
}

/// Fills in the defaults and validates the result.
///
/// # Errors
/// The defaults do not fit, or the verdict is a denial.
pub async fn complete_and_check(
    ctx: &Context,
    resolved: &mut Resolved,
    facts: &AdmissionFacts,
) -> Result<(), OperationError> {
    if let Some(existing) = &resolved.existing {
        format::check(existing).map_err(EngineError::from)?;
    }
    let questions = find_questions(resolved);
    fill_in_defaults(resolved, facts)?;
    let requester = requester(ctx, &resolved.wanted).await?;
    let existing = resolved.existing.as_ref();
    let mut verdict =
        validate::validate_installation(&resolved.wanted, existing, &requester, facts);
    // Differences to the record are used for rendering and are not written (semantics 20.1).
    if resolved.keeps_spec {
        let is_of_written =
            |problem: &AdmissionProblem| problem.rule != rules::installation::guards::CORE_SPEC;
        verdict.problems.retain(is_of_written);
        // Without a webhook, no one has judged what the record names itself.
        let from = resolved.wanted.spec.addon_ref.from.as_ref();
        let hash = resolved.installed().map(|it| it.manifest_hash.as_str());
        if from.is_some_and(|from| hash != Some(&*from.manifest_hash)) {
            let named = rules::installation::named_content(&resolved.wanted, None, facts);
            verdict.problems.extend(named);
        }
    }
    // The webhook does not have the entries of an index; here the chosen one is known.
    if matches!(*resolved.entry.origin, Origin::Index { .. }) {
        let values = rules::installation::values(&resolved.wanted, &resolved.entry);
        verdict.problems.extend(values);
    }
    let what = format!("installation {}", resolved.name);
    conclude(ctx, &what, &verdict).map_err(|refused| {
        OperationError::Refused(VerdictRefusal {
            questions: questions.map(Box::new),
            ..refused
        })
    })
}

/// Fills in the defaults as the webhook would.
///
/// # Errors
/// [`OperationError::Defaults`].
pub fn fill_in_defaults(
    resolved: &mut Resolved,
    facts: &AdmissionFacts,
) -> Result<(), OperationError> {
    let json = |error: serde_json::Error| OperationError::Defaults(error.into());
    // Exclude the status, which is most of a record and has no defaults.
    let status = resolved.wanted.status.take();
    let object = serde_json::to_value(&resolved.wanted).map_err(json);
    resolved.wanted.status = status;
    let mut object = object?;
    let patch = mutate::defaults(&object, Some(&resolved.name.namespace), facts).patch;
    if !patch.0.is_empty() {
        json_patch::patch(&mut object, &patch)
            .map_err(|error| OperationError::Defaults(error.into()))?;
        let filled: AddonInstallation = serde_json::from_value(object).map_err(json)?;
        resolved.wanted.metadata = filled.metadata;
        resolved.wanted.spec = filled.spec;
    }
    if resolved.wanted.spec.target_namespace.is_none() {
        resolved.wanted.spec.target_namespace = Some(resolved.target_namespace().to_owned());
    }
    Ok(())
}

/// Returns the fields that require a value and have none in any layer. With `valuesFrom` it returns none, because a Secret may have the
/// value (semantics 10.3).
fn find_questions(resolved: &Resolved) -> Option<Questions> {
    let (entry, wanted) = (&resolved.entry, &resolved.wanted);
    if !wanted.spec.values_from.is_empty() {
        return None;
    }
    let merged = Layers::for_installation(entry, wanted).merge_all();
    let fields = form::missing_fields(&entry.version.template.form_spec, &merged);
    let fields: Vec<FormField> = fields.into_iter().cloned().collect();
    let problems = rules::installation::values(wanted, entry).len();
    (!fields.is_empty()).then(|| Questions {
        installation: resolved.name.clone(),
        addon: entry.addon.clone(),
        version: entry.version.version.clone(),
        are_all: problems <= fields.len(),
        fields,
    })
}

/// Validates the deletion of an installation.
pub(crate) async fn check_deletion(
    ctx: &Context,
    record: &AddonInstallation,
    facts: &AdmissionFacts,
) -> Result<(), OperationError> {
    let marks = GuardMarks::from_installation(record);
    let requester = requester(ctx, record).await?;
    let mut verdict = validate::validate_installation_deletion(&marks, &requester, facts);
    // The warnings describe what this operation is about to do.
    verdict.warnings.clear();
    let name = record.metadata.name.as_deref().unwrap_or_default();
    Ok(conclude(ctx, &format!("uninstalling {name}"), &verdict)?)
}

/// Returns the requester, which only verdicts on core add-ons need.
async fn requester(ctx: &Context, record: &AddonInstallation) -> Result<Requester, OperationError> {
    if record.spec.core_addon {
        Ok(ctx.requester().await?.clone())
    } else {
        Ok(Requester::default())
    }
}

/// Returns the policies that deny, each once.
fn denying_policies(verdict: &Verdict) -> Vec<String> {
    let all = verdict.breaches.iter();
    let denying = all.filter(|breach| breach.action == PolicyAction::Enforce);
    let mut names: Vec<String> = denying.map(|breach| breach.policy.clone()).collect();
    names.dedup();
    names
}

/// Returns the denial of a verdict as an error, and reports its warnings as findings.
///
/// # Errors
/// [`VerdictRefusal`].
pub fn conclude(ctx: &Context, what: &str, verdict: &Verdict) -> Result<(), VerdictRefusal> {
    for warning in &verdict.warnings {
        ctx.report_finding(Finding::Verdict(warning.clone()));
    }
    match verdict.denial() {
        Some(denial) => Err(VerdictRefusal {
            what: what.to_owned(),
            message: denial.message,
            questions: None,
            policies: denying_policies(verdict),
            rules: verdict.problems.iter().map(|it| it.rule).collect(),
        }),
        None => Ok(()),
    }
}
