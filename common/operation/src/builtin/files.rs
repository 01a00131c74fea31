//! The files of `deploy/` that are compiled in. The kustomizations among them define which files make up an add-on.

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../deploy/", $path)))),*]
    };
}

/// The path below `deploy/`, and the content.
const FILES: &[(&str, &str)] = files![
    "base/deployment.yaml",
    "base/kustomization.yaml",
    "base/rbac.yaml",
    "base/namespace.yaml",
    "base/secret.yaml",
    "base/service.yaml",
    "base/webhooks.yaml",
    "crds/addoncatalogues.kubectl-addons.dev.yaml",
    "crds/addoninstallations.kubectl-addons.dev.yaml",
    "crds/addonpolicies.kubectl-addons.dev.yaml",
    "crds/kustomization.yaml",
    "policies/core.yaml",
    "policies/enforce.yaml",
    "policies/guards.yaml",
    "policies/installations.yaml",
    "policies/keys.yaml",
    "policies/kustomization.yaml",
    "policies/labels.yaml",
    "policies/namespaces.yaml",
    "policies/status.yaml",
    "policies/warn.yaml",
];

/// Returns the content of a file.
pub(super) fn get(path: &str) -> Option<&'static str> {
    let found = FILES.iter().find(|(name, _)| *name == path);
    found.map(|(_, content)| *content)
}
