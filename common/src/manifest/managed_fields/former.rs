//! The fields of the tool that an object is taken over from (semantics 12).

use serde_json::Value;

use super::{BEFORE_FIRST_APPLY, CLIENT_SIDE_APPLY, has_last_applied, text, transfer};

/// Managers of tools that write whole objects, by updates and by server-side apply. What people change in single fields
/// (`kubectl-edit`, `kubectl-patch`) is not among them.
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
/// Server-side apply of kubectl. Old versions of other commands update under the same name.
const KUBECTL: &str = "kubectl";

/// The entries after the fields of every such tool, and what `to` itself updated, were transferred to the apply manager `to`; `None`
/// where there are none.
#[must_use]
pub fn adopt(live: &[Value], to: &str) -> Option<Vec<Value>> {
    transfer(live, to, |entry| {
        let (manager, operation) = (text(entry, "manager"), text(entry, "operation"));
        match manager {
            KUBECTL => operation == "Apply",
            BEFORE_FIRST_APPLY => has_last_applied(entry),
            _ if manager == to => operation == "Update",
            _ => TOOLS.contains(&manager),
        }
    })
}

/// The tool behind a field manager, as people call it.
#[must_use]
pub fn tool(manager: &str) -> &str {
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
    }
}
