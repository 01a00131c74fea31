//! Reads the objects of a request. An object without a namespace or a name gets those of the request.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::marks::GuardMarks;
use crate::object::ObjectWithSpec;
use crate::review::ReviewRequest;
use crate::rules::size;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::installation::{
    AddonInstallation, AddonInstallationSpec, AddonInstallationStatus, HistoryEntry, Installed,
};
use common::entrance::{self, MAX_STORED_DEPTH};

/// Reads the marks of an object.
pub(super) fn read_marks(
    request: &ReviewRequest<'_>,
    object: Option<&RawValue>,
) -> Result<GuardMarks, AdmissionProblem> {
    let raw = object.ok_or_else(|| missing_object(request))?;
    let mut marks =
        GuardMarks::read(raw).map_err(|error| unreadable_object(request, raw, &error))?;
    let metadata = &mut marks.metadata;
    fill_identity(request, &mut metadata.namespace, &mut metadata.name);
    Ok(marks)
}

/// Reads the new object as a catalogue.
pub(super) fn read_catalogue(
    request: &ReviewRequest<'_>,
) -> Result<AddonCatalogue, AdmissionProblem> {
    let (metadata, spec) = read_object(request, request.object)?;
    if let Some(problem) = size::check_text("spec", spec.get()) {
        return Err(problem);
    }
    // The entries are counted before they are parsed, which would take a thousand bytes for each.
    let listed = AddonCatalogueSpec::count_entries(spec.get());
    let listed = listed.map_err(|error| unreadable_object(request, spec, &error))?;
    if let Some(problem) = size::check_entry_count(listed) {
        return Err(problem);
    }
    let read = entrance::from_str(spec.get());
    Ok(AddonCatalogue {
        metadata,
        spec: read.map_err(|error| unreadable_object(request, spec, &error))?,
        status: None,
    })
}

/// Reads an object as an installation. If its spec cannot be read, `spec.unreadable` says so.
pub(super) fn read_installation(
    request: &ReviewRequest<'_>,
    raw: Option<&RawValue>,
) -> Result<AddonInstallation, AdmissionProblem> {
    let (metadata, spec) = read_object(request, raw)?;
    Ok(AddonInstallation {
        metadata,
        spec: AddonInstallationSpec::read(spec.get()),
        status: None,
    })
}

/// Reads the versions that were installed from the old record, if the reference changes: a rollback may name a version that its catalogue
/// has dropped (semantics 12.3). A status that cannot be read counts as empty.
pub(super) fn read_installed_versions(
    request: &ReviewRequest<'_>,
    new: &AddonInstallation,
    old: Option<&mut AddonInstallation>,
) {
    #[derive(Deserialize)]
    struct RecordWithStatus {
        status: EndedStatus,
    }
    #[derive(Deserialize)]
    struct EndedStatus {
        #[serde(default)]
        installed: Option<Installed>,
        #[serde(default)]
        history: Vec<HistoryEntry>,
    }
    let Some(old) = old.filter(|old| old.spec.addon_ref != new.spec.addon_ref) else {
        return;
    };
    let read = request
        .old_object
        .map(|raw| entrance::read_outline(raw.get().as_bytes()));
    if let Some(Ok(RecordWithStatus { status })) = read {
        old.status = Some(AddonInstallationStatus {
            installed: status.installed,
            history: status.history,
            ..AddonInstallationStatus::default()
        });
    }
}

/// Reads the metadata and the text of the spec of an object.
fn read_object<'a>(
    request: &ReviewRequest<'a>,
    object: Option<&'a RawValue>,
) -> Result<(ObjectMeta, &'a RawValue), AdmissionProblem> {
    let raw = object.ok_or_else(|| missing_object(request))?;
    let read: Result<ObjectWithSpec<'a>, _> = entrance::read_outline(raw.get().as_bytes());
    let ObjectWithSpec { mut metadata, spec } =
        read.map_err(|error| unreadable_object(request, raw, &error))?;
    fill_identity(request, &mut metadata.namespace, &mut metadata.name);
    Ok((metadata, spec))
}

/// Reads what rules need of the old catalogue. One that cannot be read as a whole, for example one of an older schema, can thus be
/// corrected and deleted.
pub(super) fn read_old_catalogue(
    request: &ReviewRequest<'_>,
) -> Result<AddonCatalogue, AdmissionProblem> {
    read_catalogue_names(request, request.old_object)
}

/// Reads the same parts of the new object.
pub(super) fn read_new_catalogue(
    request: &ReviewRequest<'_>,
) -> Result<AddonCatalogue, AdmissionProblem> {
    read_catalogue_names(request, request.object)
}

fn read_catalogue_names(
    request: &ReviewRequest<'_>,
    raw: Option<&RawValue>,
) -> Result<AddonCatalogue, AdmissionProblem> {
    let raw = raw.ok_or_else(|| missing_object(request))?;
    let read = AddonCatalogue::read_names(raw.get());
    let mut catalogue = read.map_err(|error| unreadable_object(request, raw, &error))?;
    let metadata = &mut catalogue.metadata;
    fill_identity(request, &mut metadata.namespace, &mut metadata.name);
    Ok(catalogue)
}

/// Returns whether the spec stays unchanged. The API server writes both objects in the same way, so equal specs have equal text.
pub(super) fn keeps_spec(request: &ReviewRequest<'_>) -> bool {
    #[derive(Deserialize)]
    struct SpecOnly<'a> {
        #[serde(borrow)]
        spec: &'a RawValue,
    }
    fn spec(object: Option<&RawValue>) -> Option<&str> {
        let object: SpecOnly<'_> = entrance::read_outline(object?.get().as_bytes()).ok()?;
        Some(object.spec.get())
    }
    spec(request.object).is_some_and(|new| spec(request.old_object) == Some(new))
}

fn fill_identity(
    request: &ReviewRequest<'_>,
    namespace: &mut Option<String>,
    name: &mut Option<String>,
) {
    for (field, given) in [(namespace, &request.namespace), (name, &request.name)] {
        if field.as_deref().unwrap_or_default().is_empty() {
            given.clone_into(field);
        }
    }
}

fn missing_object(request: &ReviewRequest<'_>) -> AdmissionProblem {
    AdmissionProblem::invalid(
        "unreadable",
        "",
        format!(
            "the review of {} {} holds no object",
            request.operation.name(),
            request.kind.kind
        ),
    )
}

/// Returns the problem of an object that cannot be read. It quotes nothing: serde's own message would contain values.
fn unreadable_object(
    request: &ReviewRequest<'_>,
    text: &RawValue,
    error: &serde_json::Error,
) -> AdmissionProblem {
    let reason = entrance::describe_refusal(text.get().as_bytes(), error, MAX_STORED_DEPTH);
    let message = format!(
        "the object cannot be read as {}: {reason}",
        request.kind.kind
    );
    AdmissionProblem::invalid("unreadable", "", message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::AdmissionFacts;
    use crate::fixtures::{addon, catalogue, core_installation, facts, rules_of};
    use crate::review::ReviewRequest;
    use crate::validate::validate;

    fn rules(new: &Value, old: &Value, facts: &AdmissionFacts) -> Vec<String> {
        let review = json!({"request": {
            "uid": "u", "operation": "UPDATE", "namespace": "kubectl-addons",
            "kind": {"group": "kubectl-addons.dev", "version": "v1", "kind": "AddonCatalogue"},
            "resource": {"group": "kubectl-addons.dev", "version": "v1", "resource": "addoncatalogues"},
            "object": new, "oldObject": old,
        }});
        let bytes = review.to_string().into_bytes();
        let verdict = validate(&ReviewRequest::from_slice(&bytes).unwrap(), facts);
        rules_of(&verdict).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn of_a_catalogue_as_it_was_only_the_names_are_read() {
        let mut facts = facts(Vec::new());
        facts.installations = vec![Arc::new(core_installation("coredns").into())];
        let new = json!(catalogue("platform", json!([addon("coredns", &["1.0.0"])])));
        let mut old = new.clone();
        old["spec"]["addons"][0]["versions"][0]["source"] = json!("of an older schema");
        assert_eq!(rules(&new, &old, &facts), [""; 0], "it is mended");
        let mut less = new.clone();
        less["spec"]["addons"] = json!([]);
        assert_eq!(rules(&less, &old, &facts), ["entry-in-use"]);
        old["spec"]["addons"][0]["name"] = json!(1);
        assert_eq!(rules(&new, &old, &facts), ["unreadable"]);
    }

    #[test]
    fn what_was_installed_is_read_of_a_record_as_it_was() {
        let facts = facts(vec![catalogue("custom", json!([addon("web", &["2.0.0"])]))]);
        let record = |version: &str, status: Value| {
            json!({"metadata": {"name": "web"}, "status": status,
                "spec": {"addonRef": {"name": "web", "version": version}}})
        };
        let had = json!({"history": [{"verb": "install", "outcome": "done", "installed": {"version": "1.0.0"}}],
            "inventory": "of a form that is not read"});
        for (status, expected) in [
            (had, &[""; 0][..]),
            (json!({"history": "unreadable"}), &["unknown-version"]),
            (json!(null), &["unknown-version"]),
        ] {
            let review = json!({"request": {
                "uid": "u", "operation": "UPDATE", "namespace": "kubectl-addons", "name": "web",
                "kind": {"group": "kubectl-addons.dev", "version": "v1alpha1", "kind": "AddonInstallation"},
                "resource": {"group": "kubectl-addons.dev", "version": "v1alpha1", "resource": "addoninstallations"},
                "object": record("1.0.0", json!(null)), "oldObject": record("2.0.0", status),
            }});
            let bytes = review.to_string().into_bytes();
            let verdict = validate(&ReviewRequest::from_slice(&bytes).unwrap(), &facts);
            assert_eq!(rules_of(&verdict), expected);
            assert_eq!(verdict.warnings.len(), usize::from(expected.is_empty()));
        }
    }

    #[test]
    fn a_specification_that_stays_is_not_judged_again() {
        let twice = json!([addon("web", &["1.0.0", "v1.0.0"])]);
        let old = json!(catalogue("custom", twice));
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(rules(&new, &old, &AdmissionFacts::default()), [""; 0]);
        new["spec"]["baseURL"] = json!("https://example.test");
        assert_eq!(rules(&new, &old, &AdmissionFacts::default()), ["duplicate"]);
    }
}
