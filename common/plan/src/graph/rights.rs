//! Edges for rights: a role comes before its bindings, and bindings before the workloads of their accounts.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::template::{list, text, workloads};
use super::{NodeId, Reason, Until};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Namespace and name of a ServiceAccount.
type Account<'a> = (&'a str, &'a str);

/// Adds two kinds of edges. Role → binding: the API server resolves the role for users who are not cluster admins, and does not retry.
/// Binding → workloads whose ServiceAccount it names: a pod that starts without its rights fails and is backed off. Bindings of groups
/// (`system:serviceaccounts`) add no edges, because every account is bound.
pub(super) fn rights(draft: &mut Draft<'_>) {
    let mut roles: Vec<(NodeId, NodeId)> = Vec::new();
    let mut bindings: BTreeMap<Account<'_>, Vec<NodeId>> = BTreeMap::new();
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        for (id, item) in draft.of_kind(RBAC, kind) {
            let namespace = item.key.namespace.as_deref();
            let role = text(item.object, "/roleRef/name").and_then(|name| {
                match text(item.object, "/roleRef/kind")? {
                    "ClusterRole" => draft.named(RBAC, "ClusterRole", None, name),
                    "Role" => draft.named(RBAC, "Role", namespace, name),
                    _ => None,
                }
            });
            roles.extend(role.map(|role| (role, id)));
            for subject in list(item.object, "/subjects") {
                if text(subject, "/kind") != Some("ServiceAccount") {
                    continue;
                }
                let namespace = text(subject, "/namespace").or(namespace);
                if let (Some(namespace), Some(name)) = (namespace, text(subject, "/name")) {
                    bindings.entry((namespace, name)).or_default().push(id);
                }
            }
        }
    }
    let mut users: BTreeMap<Account<'_>, Vec<NodeId>> = BTreeMap::new();
    for (id, template) in workloads(draft) {
        let account = (template.namespace, template.account());
        users.entry(account).or_default().push(id);
    }
    for (role, binding) in roles {
        draft.edge(role, binding, Until::Applied, Reason::Rights);
    }
    for (account, bindings) in bindings {
        let Some(users) = users.get(&account) else {
            continue;
        };
        draft.connect(&bindings, users, Until::Applied, Reason::Rights, || {
            let (namespace, name) = account;
            format!("{namespace}/ServiceAccount {name} has its rights")
        });
    }
}
