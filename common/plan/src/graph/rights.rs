//! Edges for rights: a role comes before its bindings, and bindings before the workloads of their accounts.

use std::collections::BTreeMap;

use super::draft::GraphDraft;
use super::template::workloads;
use super::{EdgeReason, NodeId, Until};
use crate::references::{RBAC, accounts_of_binding, role_of_binding};

/// Namespace and name of a ServiceAccount.
type Account<'a> = (&'a str, &'a str);

/// Adds two kinds of edges. Role → binding: the API server resolves the role for users who are not cluster admins, and does not retry.
/// Binding → workloads whose ServiceAccount it names: a pod that starts without its rights fails and is backed off. Bindings of groups
/// (`system:serviceaccounts`) add no edges, because every account is bound.
pub(super) fn add_rights_edges(draft: &mut GraphDraft<'_>) {
    let mut roles: Vec<(NodeId, NodeId)> = Vec::new();
    let mut bindings: BTreeMap<Account<'_>, Vec<NodeId>> = BTreeMap::new();
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        for (id, item) in draft.objects_of_kind(RBAC, kind) {
            let role = role_of_binding(item.key, item.object);
            let role = role.and_then(|role| {
                draft.find_named(role.group, role.kind, role.namespace, role.name)
            });
            roles.extend(role.map(|role| (role, id)));
            for account in accounts_of_binding(item.key, item.object) {
                if let Some(namespace) = account.namespace {
                    let bindings = bindings.entry((namespace, account.name));
                    bindings.or_default().push(id);
                }
            }
        }
    }
    let mut users: BTreeMap<Account<'_>, Vec<NodeId>> = BTreeMap::new();
    for (id, template) in workloads(draft) {
        let account = (template.namespace, template.service_account());
        users.entry(account).or_default().push(id);
    }
    for (role, binding) in roles {
        draft.add_edge(role, binding, Until::Applied, EdgeReason::Rights);
    }
    for (account, bindings) in bindings {
        let Some(users) = users.get(&account) else {
            continue;
        };
        draft.connect(&bindings, users, Until::Applied, EdgeReason::Rights, || {
            let (namespace, name) = account;
            format!("{namespace}/ServiceAccount {name} has its rights")
        });
    }
}
