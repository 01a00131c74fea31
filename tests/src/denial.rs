//! Policies that deny requests about ConfigMaps and Deployments of a stage.

use anyhow::Result;
use serde_json::json;

use crate::stage::Stage;
use crate::until::until;

const KIND: [&str; 2] = [
    "validatingadmissionpolicybinding",
    "validatingadmissionpolicy",
];

/// When requests are denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Also as dry runs.
    Always,
    /// Not as dry runs: what a plan cannot know.
    Executed,
}

/// Denies these operations (`CREATE`, `UPDATE`, `DELETE`) on ConfigMaps and Deployments of the namespace whose name begins so, with this
/// message. In force when this returns, until [`allow`].
pub async fn deny(
    stage: &Stage,
    when: When,
    operations: &[&str],
    prefix: &str,
    message: &str,
) -> Result<()> {
    deny_saying(stage, when, operations, prefix, &format!("'{message}'")).await
}

/// The same with a message that is an expression (CEL).
pub async fn deny_saying(
    stage: &Stage,
    when: When,
    operations: &[&str],
    prefix: &str,
    message: &str,
) -> Result<()> {
    let namespace = &stage.namespace;
    let is_dry = match when {
        When::Always => "false",
        When::Executed => "request.dryRun",
    };
    let denied =
        format!("request.name.startsWith('{prefix}') && request.operation in {operations:?}");
    // The probe is denied as soon as the policy is in force.
    let expression = format!("request.name != 'probe' && ({is_dry} || !({denied}))");
    let policy = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": namespace},
         "spec": {"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": ["", "apps"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["configmaps", "deployments"]}]},
            "validations": [{"expression": expression, "messageExpression": message}]}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": namespace},
         "spec": {"policyName": namespace, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}}},
    ]});
    stage.apply(&policy.to_string()).await?;
    until("the policy denies", async || {
        Ok(match probe(stage).await? {
            false => Ok(()),
            true => Err("it allows".to_owned()),
        })
    })
    .await
}

/// Takes the policy away; it denies nothing any more when this returns.
pub async fn allow(stage: &Stage) -> Result<()> {
    for kind in KIND {
        stage.kubectl(&["delete", kind, &stage.namespace]).await?;
    }
    until("the policy is gone", async || {
        Ok(match probe(stage).await? {
            true => Ok(()),
            false => Err("it still denies".to_owned()),
        })
    })
    .await
}

/// Whether the probe could be created.
async fn probe(stage: &Stage) -> Result<bool> {
    let create = ["create", "configmap", "probe", "--dry-run=server", "-n"];
    let create = [&create[..], &[&stage.namespace]].concat();
    Ok(stage.plugin.kubectl(&create).await?.code == 0)
}
