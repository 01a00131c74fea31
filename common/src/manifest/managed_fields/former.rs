//! Transfers the fields of the tool from which an object is adopted (semantics 12.10).

use serde_json::{Map, Value};

use super::{
    BEFORE_FIRST_APPLY, CLIENT_SIDE_APPLY, has_last_applied, is_by, is_same_manager, merge_entry,
    set_text, text, transfer,
};

/// Field managers of tools that write whole objects, by updates and by server-side apply. Managers of edits by people (`kubectl-edit`,
/// `kubectl-patch`) are not included.
const TOOLS: &[&str] = &[
    "kops",
    "helm",
    "helm-controller",
    "kustomize-controller",
    "argocd-controller",
    "argocd-application-controller",
    "kapp",
    "kapp-server-side-apply",
    "kubectl-create",
    "kubectl-replace",
    "kubectl-last-applied",
    CLIENT_SIDE_APPLY,
    BEFORE_FIRST_APPLY,
];
/// The field manager of kubectl's server-side apply. Old versions of other kubectl commands update under the same name.
const KUBECTL: &str = "kubectl";

/// The marks of a Helm release, and `.` for the map that contains them.
const MARKS: [&str; 4] = [
    ".",
    "f:meta.helm.sh/release-name",
    "f:meta.helm.sh/release-namespace",
    "f:app.kubernetes.io/managed-by",
];

/// Prefix of kapp's labels and annotations. They are also in pod templates, and in selectors, which never change.
const KAPP: &str = "f:kapp.k14s.io/";

/// Returns the entries after the fields of all such tools, and updates by `to` itself, were transferred to the apply manager `to`; `None`
/// if there are none.
///
/// Fields that kapp adds to the manifest stay fields of kapp, so that our applies do not remove them: a label in pod templates, whose
/// removal would restart the pods, and one in selectors, which cannot change.
#[must_use]
pub fn adopt(live: &[Value], to: &str) -> Option<Vec<Value>> {
    let mut kept = Vec::new();
    let mut rest = Vec::new();
    for entry in live {
        let (own, other) = split_entry(entry);
        kept.extend(own);
        rest.extend(other);
    }
    let mut adopted = transfer(&rest, to, |entry| is_adopted(entry, to))?;
    adopted.extend(kept);
    Some(adopted)
}

fn is_adopted(entry: &Value, to: &str) -> bool {
    let (manager, operation) = (text(entry, "manager"), text(entry, "operation"));
    match manager {
        KUBECTL => operation == "Apply",
        BEFORE_FIRST_APPLY => has_last_applied(entry),
        _ if manager == to => operation == "Update",
        _ => TOOLS.contains(&manager),
    }
}

/// Returns the manager and operation from which [`adopt`] takes the fields, if any: the one with most fields; if equal, the last one. A
/// tool may have a second entry with only the marks that it sets in a separate request.
#[must_use]
pub fn former_manager(live: &[Value], to: &str) -> Option<String> {
    let theirs = live.iter().filter(|entry| {
        text(entry, "subresource").is_empty()
            && text(entry, "manager") != to
            && is_adopted(entry, to)
    });
    let theirs = theirs.max_by_key(|entry| entry.get("fieldsV1").map_or(0, count_fields))?;
    Some(match text(theirs, "manager") {
        BEFORE_FIRST_APPLY => format!("{CLIENT_SIDE_APPLY} Update"),
        manager => format!("{manager} {}", text(theirs, "operation")),
    })
}

/// Returns the number of fields in a set.
fn count_fields(set: &Value) -> usize {
    set.as_object().map_or(0, |fields| {
        fields
            .values()
            .map(|below| 1 + count_fields(below))
            .sum::<usize>()
    })
}

/// Returns the entries after the fields of the manager `ours` became those of `to` (`MANAGER OPERATION`). Without `to`, they belong to no
/// manager.
#[must_use]
pub fn release_fields(live: &[Value], ours: &str, to: Option<&str>) -> Vec<Value> {
    let is_ours = |entry: &&Value| text(entry, "manager") == ours;
    let mut entries: Vec<Value> = live
        .iter()
        .filter(|entry| !is_ours(entry))
        .cloned()
        .collect();
    let to = to.and_then(|to| to.split_once(' '));
    for entry in live.iter().filter(|entry| is_ours(entry)) {
        let Some((manager, operation)) = to else {
            continue;
        };
        let mut theirs = entry.clone();
        set_text(&mut theirs, "manager", manager);
        set_text(&mut theirs, "operation", operation);
        // The marks that were just restored for it.
        entries.retain(|entry| {
            let is_part =
                is_by(entry, manager, "Update") && operation == "Apply" && has_only_marks(entry);
            if is_part {
                merge_entry(&mut theirs, entry);
            }
            !is_part
        });
        match entries
            .iter_mut()
            .find(|entry| is_same_manager(entry, &theirs))
        {
            Some(entry) => merge_entry(entry, &theirs),
            None => entries.push(theirs),
        }
    }
    // The server would ignore an empty list.
    if entries.is_empty() {
        entries.push(Value::Object(Map::new()));
    }
    entries
}

/// Returns whether an entry contains only the marks of a Helm release.
fn has_only_marks(entry: &Value) -> bool {
    let is_mark = |name: &String| MARKS.contains(&name.as_str());
    let are_marks = |maps: &Map<String, Value>| {
        maps.iter().all(|(name, below)| {
            let is_map = name == "f:annotations" || name == "f:labels";
            is_map
                && below
                    .as_object()
                    .is_some_and(|below| below.keys().all(is_mark))
        })
    };
    text(entry, "subresource").is_empty()
        && entry["fieldsV1"].as_object().is_some_and(|fields| {
            fields.len() == 1
                && fields
                    .get("f:metadata")
                    .and_then(Value::as_object)
                    .is_some_and(are_marks)
        })
}

/// Splits an entry of kapp into the fields that kapp keeps and those to transfer. Other entries are only transferred.
fn split_entry(entry: &Value) -> (Option<Value>, Option<Value>) {
    let fields = entry.get("fieldsV1").and_then(Value::as_object);
    let is_kapp = is_by(entry, "kapp", "Update") && text(entry, "subresource").is_empty();
    let Some(fields) = fields.filter(|_| is_kapp) else {
        return (None, Some(entry.clone()));
    };
    let (own, other) = split_set(fields, &[]);
    let with = |fields: Map<String, Value>| {
        let mut part = entry.clone();
        part["fieldsV1"] = Value::Object(fields);
        part
    };
    let part = |fields: Map<String, Value>| (!fields.is_empty()).then(|| with(fields));
    (part(own), part(other))
}

/// Splits a set of fields. Recursion ends with the depth of the object.
fn split_set(set: &Map<String, Value>, path: &[&str]) -> (Map<String, Value>, Map<String, Value>) {
    let (mut own, mut other) = (Map::new(), Map::new());
    for (name, below) in set {
        if name.starts_with(KAPP) || (path == ["f:spec"] && name == "f:selector") {
            own.insert(name.clone(), below.clone());
            continue;
        }
        let Some(fields) = below.as_object().filter(|fields| !fields.is_empty()) else {
            other.insert(name.clone(), below.clone());
            continue;
        };
        let (below_own, below_other) = split_set(fields, &[path, &[name]].concat());
        for (part, below) in [(&mut own, below_own), (&mut other, below_other)] {
            if !below.is_empty() {
                part.insert(name.clone(), Value::Object(below));
            }
        }
    }
    (own, other)
}

/// Returns the common name of the tool behind a field manager.
#[must_use]
pub fn tool_name(manager: &str) -> &str {
    match manager {
        "helm" => "Helm",
        "helm-controller" | "kustomize-controller" => "Flux",
        "argocd-controller" | "argocd-application-controller" => "Argo CD",
        "kapp-server-side-apply" => "kapp",
        BEFORE_FIRST_APPLY => KUBECTL,
        manager if manager.starts_with("kubectl-") => KUBECTL,
        manager => manager,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, field: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {field: {}}}})
    }

    #[test]
    fn tools_lose_their_fields_and_people_keep_theirs() {
        let ours = |field: &str| entry("ours", "Apply", field);
        for (manager, operation, moves) in [
            ("kops", "Apply", true),
            ("kops", "Update", true),
            ("helm", "Update", true),
            ("helm", "Apply", true),
            ("kapp", "Update", true),
            ("kapp-server-side-apply", "Apply", true),
            ("kubectl-client-side-apply", "Update", true),
            ("kubectl", "Apply", true),
            ("kubectl", "Update", false),
            ("ours", "Update", true),
            ("kubectl-create", "Update", true),
            ("kubectl-edit", "Update", false),
            ("kubectl-patch", "Update", false),
            ("kubectl-rollout", "Update", false),
            ("before-first-apply", "Update", false),
            ("kube-controller-manager", "Update", false),
            ("someone", "Apply", false),
        ] {
            let live = [entry(manager, operation, "f:a")];
            let wanted = moves.then(|| vec![ours("f:a")]);
            assert_eq!(adopt(&live, "ours"), wanted, "{manager} {operation}");
            let mut scaled = live;
            scaled[0]["subresource"] = json!("scale");
            assert_eq!(adopt(&scaled, "ours"), None, "{manager} through scale");
        }
        let both = json!({"manager": "ours", "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}});
        let live = [
            entry("kubectl-edit", "Update", "f:c"),
            entry("helm", "Update", "f:a"),
            entry("kops", "Apply", "f:b"),
        ];
        let wanted = vec![entry("kubectl-edit", "Update", "f:c"), both];
        assert_eq!(adopt(&live, "ours"), Some(wanted.clone()));
        assert_eq!(adopt(&wanted, "ours"), None, "again");
        assert_eq!(former_manager(&live, "ours").as_deref(), Some("kops Apply"));
        assert_eq!(former_manager(&wanted, "ours"), None);
    }

    #[test]
    fn kapp_keeps_what_it_writes_beside_the_manifest() {
        let of = |manager: &str, operation: &str, fields: Value| {
            json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        let live = [of(
            "kapp",
            "Update",
            json!({"f:metadata": {"f:labels": {".": {}, "f:kapp.k14s.io/app": {}, "f:app": {}}},
                "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:metadata": {"f:labels": {"f:kapp.k14s.io/app": {}}}}}}),
        )];
        let kept = json!({"f:metadata": {"f:labels": {"f:kapp.k14s.io/app": {}}},
            "f:spec": {"f:selector": {}, "f:template": {"f:metadata": {"f:labels": {"f:kapp.k14s.io/app": {}}}}}});
        let moved = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}}});
        let wanted = vec![of("ours", "Apply", moved), of("kapp", "Update", kept)];
        assert_eq!(adopt(&live, "ours"), Some(wanted.clone()));
        assert_eq!(adopt(&wanted, "ours"), None, "again");
        assert_eq!(
            release_fields(&wanted, "ours", Some("kapp Update")),
            live,
            "and back"
        );
    }

    #[test]
    fn fields_return_to_the_tool_that_they_came_from() {
        let ours = entry("ours", "Apply", "f:a");
        let edit = entry("kubectl-edit", "Update", "f:b");
        for (to, wanted) in [
            (
                Some("helm Apply"),
                vec![edit.clone(), entry("helm", "Apply", "f:a")],
            ),
            (None, vec![edit.clone()]),
        ] {
            assert_eq!(
                release_fields(&[ours.clone(), edit.clone()], "ours", to),
                wanted
            );
        }
        let updated = entry("ours", "Update", "f:c");
        let both = json!({"manager": "helm", "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}, "f:c": {}}}});
        assert_eq!(
            release_fields(&[ours.clone(), updated], "ours", Some("helm Apply")),
            [both]
        );
        assert_eq!(release_fields(&[ours], "ours", None), [json!({})]);
    }

    /// Helm would refuse its own fields in two entries, and the second adoption would take the smaller one for all.
    #[test]
    fn marks_that_return_are_fields_of_the_same_apply() {
        let ours = entry("ours", "Apply", "f:a");
        let marks = json!({"f:annotations": {"f:meta.helm.sh/release-name": {}, "f:meta.helm.sh/release-namespace": {}}});
        let mut returned = entry("helm", "Update", "f:x");
        returned["fieldsV1"] = json!({"f:metadata": marks});
        let mut helm = entry("helm", "Apply", "f:a");
        helm["fieldsV1"]["f:metadata"] = marks;
        let given = release_fields(
            &[ours.clone(), returned.clone()],
            "ours",
            Some("helm Apply"),
        );
        assert_eq!(given, [helm.clone()]);
        // A release of helm 3 has one entry of this kind.
        let mut updated = helm.clone();
        updated["operation"] = json!("Update");
        let given = release_fields(&[ours, returned.clone()], "ours", Some("helm Update"));
        assert_eq!(given, [updated]);
        for live in [[helm.clone(), returned.clone()], [returned, helm]] {
            assert_eq!(former_manager(&live, "me").as_deref(), Some("helm Apply"));
        }
    }
}
