//! A small add-on in two versions.

use anyhow::Result;

use crate::stage::{Stage, config_map};

/// What its Secret holds, which nobody may read anywhere else.
pub const PASSWORD: &str = "correct-horse-battery";

/// Nine objects of three ranks.
pub fn first() -> String {
    [
        common("kept", "one").as_str(),
        &config_map("dropped-a", "1"),
        &config_map("dropped-b", "1"),
        &secret("dropped-secret"),
    ]
    .concat()
}

/// One object changes, one comes, three go.
pub fn second() -> String {
    [common("kept", "two").as_str(), &config_map("added", "1")].concat()
}

/// A Secret.
pub fn secret(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{password: {PASSWORD}}}\n---\n"
    )
}

/// The add-on `small` in a version, as an index of its own.
pub fn index(stage: &Stage, version: &str, manifest: &str) -> Result<String> {
    stage.index(
        &format!("{version}/index.yaml"),
        &[("small", version, manifest)],
    )
}

fn common(name: &str, value: &str) -> String {
    let rest = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: small}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: small}\nrules: [{apiGroups: [''], resources: \
         [pods], verbs: [get]}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: small}\nroleRef: {apiGroup: \
         rbac.authorization.k8s.io, kind: Role, name: small}\nsubjects: [{kind: ServiceAccount, name: small}]\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {name: small}\nspec: {ports: [{port: 80}]}\n---\n";
    [rest, &secret("small"), &config_map(name, value)].concat()
}
