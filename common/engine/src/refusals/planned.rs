//! What a command itself creates, changes and deletes. The server does not know it yet, and may decide differently once it is done.

use std::collections::BTreeSet;

use addons_plan::holder::{ExclusiveResource, exclusive_resources};
use addons_plan::{Action, InstallationPlan, Step};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::defined_kind;
use common::manifest::kinds::traits::is_built_in;

use super::super::error::EngineError;

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// What the server cannot know before the plans of a command are executed.
pub(in super::super) struct CommandPlans<'a> {
    plans: Vec<&'a InstallationPlan>,
    namespaces: BTreeSet<&'a str>,
    /// (group, kind) of CRDs that are created or changed.
    kinds: BTreeSet<(String, String)>,
    /// (group, kind) of CRDs that are created.
    new_kinds: BTreeSet<(String, String)>,
    /// Names of admission webhooks whose configuration is created or changed.
    webhooks: BTreeSet<&'a str>,
}

impl<'a> CommandPlans<'a> {
    pub(in super::super) fn new(plans: &[&'a InstallationPlan]) -> Self {
        let mut planned = Self {
            plans: plans.to_vec(),
            namespaces: BTreeSet::new(),
            kinds: BTreeSet::new(),
            new_kinds: BTreeSet::new(),
            webhooks: BTreeSet::new(),
        };
        for plan in plans {
            planned.namespaces.extend(plan.create_namespace.as_deref());
            for step in &plan.steps {
                let key = &step.target.key;
                let is_new = step.action == Action::Create;
                if is_new && is_namespace(key) {
                    planned.namespaces.insert(&key.name);
                }
                if let Some(kind) = defined_kind(&step.object) {
                    if is_new {
                        planned.new_kinds.insert(kind.clone());
                    }
                    planned.kinds.insert(kind);
                }
                if is_webhook_configuration(key) {
                    let webhooks = step.object["webhooks"].as_array().into_iter().flatten();
                    let names = webhooks.filter_map(|webhook| webhook["name"].as_str());
                    planned.webhooks.extend(names);
                }
            }
        }
        planned
    }

    /// Returns why the server cannot check a step: it is in a namespace, or of a kind, that the command creates.
    pub(super) fn reason_not_checkable(&self, step: &Step) -> Option<String> {
        let key = &step.target.key;
        if let Some(namespace) = &key.namespace
            && self.namespaces.contains(namespace.as_str())
        {
            return Some(format!("namespace {namespace} does not exist yet"));
        }
        let kind = (key.group.clone(), key.kind.clone());
        let is_undefined = step.action == Action::Create && self.new_kinds.contains(&kind);
        is_undefined.then(|| format!("kind {} is not defined yet", key.kind))
    }

    /// Returns why the server refuses a step now that it will accept later: something that the command creates is missing.
    pub(in super::super) fn reason_unjudged(
        &self,
        step: &Step,
        error: &EngineError,
    ) -> Option<String> {
        let key = &step.target.key;
        let is_missing = error.code() == Some(404) && step.action == Action::Create;
        if let Some(namespace) = &key.namespace
            && (self.namespaces.contains(namespace.as_str())
                || is_missing && error.describe().contains("namespaces \""))
        {
            return Some(format!("namespace {namespace} does not exist yet"));
        }
        // The server checks the role that a binding names.
        if let Some(role) = referenced_role(step).filter(|role| self.applies(role))
            && (is_missing || matches!(error, EngineError::Forbidden { .. }))
        {
            return Some(format!("{role} is part of the plan"));
        }
        if is_missing && error.is_unserved() {
            return Some(format!("kind {} is not defined yet", key.kind));
        }
        let kind = (key.group.clone(), key.kind.clone());
        self.kinds
            .contains(&kind)
            .then(|| format!("the definition of {} is part of the plan", key.kind))
    }

    /// Returns why a denial at admission may be lifted before the write: the command changes what denies, or what the denial names. Pruned
    /// objects are deleted after everything is applied.
    pub(super) fn reason_lifted(
        &self,
        key: &ObjectKey,
        error: &EngineError,
        is_deletion: bool,
    ) -> Option<String> {
        let EngineError::Denied { message, .. } = error else {
            return None;
        };
        if let Some(webhook) = denying_webhook(message)
            && (self.webhooks.contains(webhook)
                || self.plans.iter().any(|it| changes_webhook_backend(it)))
        {
            return Some(format!("admission webhook {webhook} is part of the plan"));
        }
        let plans = self.plans.iter();
        let steps = plans.flat_map(|plan| &plan.steps);
        let steps = steps.map(|step| &step.target.key);
        let pruned = self.plans.iter().flat_map(|plan| plan.deletions());
        let pruned = pruned.filter(|_| is_deletion);
        let mut others = steps.chain(pruned.map(|deletion| &deletion.target.key));
        let cause = others.find(|other| *other != key && may_decide(other, key, message));
        cause.map(|cause| format!("{cause} is part of the plan"))
    }

    /// Returns whether the command applies an object.
    pub(super) fn applies(&self, key: &ObjectKey) -> bool {
        self.plans.iter().any(|plan| plan.step(key).is_some())
    }

    /// Returns the installation that prunes an object.
    pub(super) fn find_pruning(&self, key: &ObjectKey) -> Option<&'a InstallationName> {
        let prunes = |plan: &&&InstallationPlan| {
            let mut deletions = plan.deletions();
            deletions.any(|deletion| deletion.target.key == *key)
        };
        self.plans
            .iter()
            .find(prunes)
            .map(|plan| &plan.installation)
    }

    /// Returns another object that the command creates and that asks for the same exclusive thing.
    pub(super) fn find_rival(&self, step: &Step) -> Option<(&'a ObjectKey, ExclusiveResource)> {
        let key = &step.target.key;
        let asked = exclusive_resources(key, &step.object);
        if asked.is_empty() || step.action != Action::Create {
            return None;
        }
        let plans = self.plans.iter();
        let steps = plans.flat_map(|plan| &plan.steps);
        // Only one of the two is refused.
        let mut others =
            steps.filter(|other| other.action == Action::Create && other.target.key < *key);
        others.find_map(|other| {
            let has = exclusive_resources(&other.target.key, &other.object);
            let both = has.intersection(&asked).next().cloned();
            Some((&other.target.key, both?))
        })
    }

    /// Returns the plans of the command.
    pub(super) fn plans(&self) -> &[&'a InstallationPlan] {
        &self.plans
    }
}

/// Returns whether an installation keeps a webhook configuration and changes a workload that may be its backend.
fn changes_webhook_backend(plan: &InstallationPlan) -> bool {
    let has_webhooks = plan.unchanged.iter().any(is_webhook_configuration);
    let mut keys = plan.steps.iter().map(|step| &step.target.key);
    has_webhooks && keys.any(|key| key.group == "apps")
}

fn is_webhook_configuration(key: &ObjectKey) -> bool {
    key.group == ADMISSION && key.kind.ends_with("WebhookConfiguration")
}

fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}

/// Returns the role that a binding refers to.
fn referenced_role(step: &Step) -> Option<ObjectKey> {
    let key = &step.target.key;
    let text = |field: &str| step.object["roleRef"][field].as_str().map(str::to_owned);
    if key.group != RBAC {
        return None;
    }
    let kind = text("kind")?;
    Some(ObjectKey {
        group: RBAC.to_owned(),
        namespace: key.namespace.clone().filter(|_| kind == "Role"),
        kind,
        name: text("name")?,
    })
}

/// Returns the webhook that denied a request.
fn denying_webhook(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("admission webhook \"")?;
    rest.split('"').next()
}

/// Returns whether another object of the command may be the cause of a denial.
fn may_decide(other: &ObjectKey, denied: &ObjectKey, message: &str) -> bool {
    let is_beside = other.namespace == denied.namespace;
    match (other.group.as_str(), other.kind.as_str()) {
        // Its labels decide what is allowed in it (Pod Security), and which policies and webhooks apply.
        ("", "Namespace") => denied.namespace.as_ref() == Some(&other.name),
        // `maximum cpu usage per Container is 1, but limit is 2`
        ("", "LimitRange") => is_beside && message.contains(" per "),
        // `exceeded quota: compute, requested: pods=1`
        ("", "ResourceQuota") => is_beside && has_word(message, &other.name),
        (ADMISSION, _) => has_word(message, &other.name),
        // Policies of admission controllers, whose names may be ordinary words.
        (group, _) if !is_built_in(group) => is_quoted(message, &other.name),
        _ => is_named(message, other),
    }
}

/// Returns whether a text contains the kind and the name of an object.
pub(super) fn is_named(text: &str, key: &ObjectKey) -> bool {
    let text = text.to_lowercase();
    let kind = key.kind.to_lowercase();
    let kinds = [kind.clone(), format!("{kind}s"), format!("{kind}es")];
    has_word(&text, &key.name) && kinds.iter().any(|kind| has_word(&text, kind))
}

fn has_word(text: &str, word: &str) -> bool {
    word_positions(text, word).next().is_some()
}

/// Returns whether a text contains a name that is marked as one: in quotes or brackets, after a slash, or at the beginning of a line.
fn is_quoted(text: &str, name: &str) -> bool {
    word_positions(text, name).any(|at| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|before| "\"'`[/\n".contains(before))
    })
}

/// Returns the positions of a word in a text, except as part of a longer name.
fn word_positions<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let found = text.match_indices(word).filter(|_| !word.is_empty());
    let found = found.filter(move |(at, word)| {
        let before = text
            .get(..*at)
            .and_then(|before| before.chars().next_back());
        let mut after = text.get(at + word.len()..).unwrap_or_default().chars();
        let next = after.next();
        // A full stop ends a sentence or is part of a name.
        let is_longer = next == Some('.') && after.next().is_some_and(is_of_name);
        !before.is_some_and(|before| is_of_name(before) || before == '.')
            && !next.is_some_and(is_of_name)
            && !is_longer
    });
    found.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_denial_is_laid_to_what_it_names() {
        let denied = key("apps", "Deployment", "web");
        let kyverno = "admission webhook \"validate.kyverno.svc\" denied the request: \n\nresource Deployment/shop/web was blocked \
                       due to the following policies \n\nrequire-team:\n  team: no label";
        let policy = "ValidatingAdmissionPolicy 'team' with binding 'team-shop' denied request: every Service has a team";
        let account = "error looking up service account shop/web: serviceaccount \"web\" not found";
        for (other, message, expected) in [
            (
                key("kyverno.io", "ClusterPolicy", "require-team"),
                kyverno,
                true,
            ),
            (
                key("kyverno.io", "ClusterPolicy", "require-tea"),
                kyverno,
                false,
            ),
            // The name is that of the denied object.
            (key("", "Service", "web"), kyverno, false),
            (
                key(ADMISSION, "ValidatingAdmissionPolicyBinding", "team-shop"),
                policy,
                true,
            ),
            (
                key(ADMISSION, "ValidatingAdmissionPolicy", "tea"),
                policy,
                false,
            ),
            (key("example.com", "Team", "every"), policy, false),
            (key("", "ServiceAccount", "web"), account, true),
            (key("", "ServiceAccount", "we"), account, false),
            (key("", "ConfigMap", "web"), account, false),
            (
                key("", "ResourceQuota", "all"),
                "exceeded quota: all, requested: pods=1",
                true,
            ),
            (
                key("", "ResourceQuota", "quota"),
                "exceeded quota: all.b, requested: pods=1",
                true,
            ),
            (
                key("", "ResourceQuota", "all"),
                "exceeded quota: all.b, requested: pods=1",
                false,
            ),
        ] {
            assert_eq!(
                may_decide(&other, &denied, message),
                expected,
                "{other}: {message}"
            );
        }
        let mut namespace = key("", "Namespace", "shop");
        namespace.namespace = None;
        assert!(may_decide(
            &namespace,
            &denied,
            "violates PodSecurity \"restricted:latest\""
        ));
    }
}
