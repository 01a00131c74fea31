//! Marks on live objects that forbid their deletion: ours and those of other tools.

use std::collections::BTreeMap;

use common::api::names::{ANNOTATION_PRUNE, PRUNE_NEVER};

/// Annotations that keep an object if they have this value.
const MARKS: [(&str, &str); 6] = [
    (ANNOTATION_PRUNE, PRUNE_NEVER),
    ("helm.sh/resource-policy", "keep"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("client.lifecycle.config.k8s.io/deletion", "detach"),
    ("cli-utils.sigs.k8s.io/on-remove", "keep"),
    ("kapp.k14s.io/delete-strategy", "orphan"),
];
/// Argo CD's annotation, whose value is a list; [`ARGO_OPTIONS`] are the items that keep an object. `confirm` keeps it, too, because
/// the user cannot be asked here.
const ARGO: &str = "argocd.argoproj.io/sync-options";
const ARGO_OPTIONS: [&str; 4] = [
    "Prune=false",
    "Delete=false",
    "Prune=confirm",
    "Delete=confirm",
];

/// Returns the mark that keeps an object, as it is written: `helm.sh/resource-policy: keep`.
#[must_use]
pub fn mark(annotations: &BTreeMap<String, String>) -> Option<String> {
    let marks = MARKS.iter().filter(|(name, value)| {
        let found = annotations.get(*name);
        found.is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
    });
    let mut marks = marks.map(|(name, value)| format!("{name}: {value}"));
    marks.next().or_else(|| {
        let options = annotations.get(ARGO)?.split(',').map(str::trim);
        let mut kept = options.filter(|option| ARGO_OPTIONS.contains(option));
        kept.next().map(|option| format!("{ARGO}: {option}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_all_tools() {
        for (name, value, kept) in [
            (
                "kubectl-addons.dev/prune",
                "false",
                Some("kubectl-addons.dev/prune: false"),
            ),
            ("kubectl-addons.dev/prune", "true", None),
            (
                "helm.sh/resource-policy",
                "keep",
                Some("helm.sh/resource-policy: keep"),
            ),
            // Helm trims and lowers, too.
            (
                "helm.sh/resource-policy",
                " Keep ",
                Some("helm.sh/resource-policy: keep"),
            ),
            ("helm.sh/resource-policy", "delete", None),
            (
                "argocd.argoproj.io/sync-options",
                "Validate=false, Prune=false",
                Some("argocd.argoproj.io/sync-options: Prune=false"),
            ),
            (
                "argocd.argoproj.io/sync-options",
                "Delete=confirm",
                Some("argocd.argoproj.io/sync-options: Delete=confirm"),
            ),
            ("argocd.argoproj.io/sync-options", "PruneLast=true", None),
            (
                "kustomize.toolkit.fluxcd.io/prune",
                "disabled",
                Some("kustomize.toolkit.fluxcd.io/prune: disabled"),
            ),
            (
                "client.lifecycle.config.k8s.io/deletion",
                "detach",
                Some("client.lifecycle.config.k8s.io/deletion: detach"),
            ),
            (
                "cli-utils.sigs.k8s.io/on-remove",
                "keep",
                Some("cli-utils.sigs.k8s.io/on-remove: keep"),
            ),
            (
                "kapp.k14s.io/delete-strategy",
                "orphan",
                Some("kapp.k14s.io/delete-strategy: orphan"),
            ),
            ("kapp.k14s.io/owned-for-deletion", "", None),
        ] {
            let annotations = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert_eq!(mark(&annotations).as_deref(), kept, "{name}: {value}");
        }
    }
}
