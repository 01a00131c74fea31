//! What the fields of kops' entries mean: which nodes an update replaces, and which objects of a former version are pruned.

use common::api::catalogue::{AddonVersion, PruneKind};

/// The nodes that an update of an add-on asks to replace (`needsRollingUpdate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Nodes of the control plane, by the current label or by that of kops before 1.24.
    ControlPlane,
    /// All other nodes.
    Workers,
    /// Every node.
    All,
}

impl NodeRole {
    /// Parses `needsRollingUpdate`. As in kops, an unknown value means every node.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "control-plane" | "master" => Self::ControlPlane,
            "workers" | "worker" => Self::Workers,
            _ => Self::All,
        }
    }

    /// Returns the alternative selectors for these nodes, each as query parameters. A node matches if any of them matches.
    #[must_use]
    pub fn selectors(self) -> &'static [&'static [(&'static str, &'static str)]] {
        match self {
            Self::ControlPlane => &[
                &[("labelSelector", "node-role.kubernetes.io/control-plane")],
                &[("labelSelector", "node-role.kubernetes.io/master")],
            ],
            Self::Workers => &[&[("labelSelector", "node-role.kubernetes.io/node")]],
            Self::All => &[&[]],
        }
    }
}

/// The kinds that kops itself prunes. Old objects of an entry without `prune` are searched in them with its `selector`.
const SELECTED: [(&str, &str); 13] = [
    ("", "ConfigMap"),
    ("", "Service"),
    ("", "ServiceAccount"),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
    ),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];
/// Kinds that controllers derive from Services, with their labels.
const DERIVED: [(&str, &str); 2] = [("", "Endpoints"), ("discovery.k8s.io", "EndpointSlice")];

/// Returns the rules to find objects of an add-on that were installed before it had an inventory, and warnings. A rule without an
/// equality (`a=b`, `a in (b)`, or the name of an object) is left out because it would match foreign objects (semantics 11.3).
#[must_use]
pub fn prune_rules(version: &AddonVersion) -> (Vec<PruneKind>, Vec<String>) {
    let mut warnings = Vec::new();
    let Some(prune) = &version.prune else {
        return (selected(version), warnings);
    };
    let rules = prune.kinds.iter().filter(|rule| {
        let labels = rule.label_selector.as_deref().unwrap_or_default();
        let fields = rule.field_selector.as_deref().unwrap_or_default();
        let is_open = !equalities(labels) && !names_an_object(fields);
        if is_open {
            let selectors = [labels, fields].map(str::trim);
            let what = match selectors.iter().all(|selector| selector.is_empty()) {
                true => "has no selector",
                false => "has a selector without an equality (KEY=VALUE)",
            };
            warnings.push(format!(
                "prune.kinds: {} {what}, and nothing of it is pruned",
                rule.kind
            ));
        }
        !is_open && !DERIVED.contains(&(&*rule.group, &*rule.kind))
    });
    (rules.cloned().collect(), warnings)
}

/// Whether a label selector requires a certain value of a label.
fn equalities(selector: &str) -> bool {
    // The values of a set are in parentheses and separated by commas, too.
    let mut depth = 0_usize;
    let requirements = selector.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let mut requirements = requirements.map(str::trim);
    requirements.any(|requirement| match requirement.split_once('(') {
        Some((head, _)) => head.split_whitespace().nth(1) == Some("in"),
        None => requirement.contains('=') && !requirement.contains("!="),
    })
}

/// Whether a field selector names one object. One with only a namespace matches everything in it.
fn names_an_object(selector: &str) -> bool {
    let mut requirements = selector.split(',').filter_map(|one| one.split_once('='));
    requirements.any(|(field, _)| field.trim() == "metadata.name")
}

fn selected(version: &AddonVersion) -> Vec<PruneKind> {
    let labels = version.selector.iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if labels.is_empty() {
        return Vec::new();
    }
    let rules = SELECTED.iter().map(|(group, kind)| PruneKind {
        group: (*group).to_owned(),
        kind: (*kind).to_owned(),
        namespaces: Vec::new(),
        label_selector: Some(labels.join(",")),
        field_selector: None,
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::api::catalogue::PruneSpec;

    #[test]
    fn a_rule_without_a_selector_matches_nothing() {
        let rule = |kind: &str, label: Option<&str>, field: Option<&str>| PruneKind {
            kind: kind.to_owned(),
            label_selector: label.map(str::to_owned),
            field_selector: field.map(str::to_owned),
            ..PruneKind::default()
        };
        let version = AddonVersion {
            prune: Some(PruneSpec {
                kinds: vec![
                    rule("ConfigMap", None, None),
                    rule("Service", Some(" "), None),
                    rule("Secret", Some("a=b"), None),
                    rule("Pod", None, Some("metadata.name=a")),
                    rule("Endpoints", Some("a=b"), None),
                    rule("Role", Some("!a,b!=c, d notin (e,f=g)"), None),
                    rule(
                        "Job",
                        Some("a"),
                        Some("metadata.namespace=a,metadata.name!=b"),
                    ),
                    rule("Lease", Some("!a, b in (c, d)"), None),
                ],
            }),
            ..AddonVersion::default()
        };
        let (rules, warnings) = prune_rules(&version);
        let kinds: Vec<&str> = rules.iter().map(|rule| rule.kind.as_str()).collect();
        assert_eq!(kinds, ["Secret", "Pod", "Lease"]);
        assert_eq!(
            warnings,
            [
                "prune.kinds: ConfigMap has no selector, and nothing of it is pruned",
                "prune.kinds: Service has no selector, and nothing of it is pruned",
                "prune.kinds: Role has a selector without an equality (KEY=VALUE), and nothing of it is pruned",
                "prune.kinds: Job has a selector without an equality (KEY=VALUE), and nothing of it is pruned",
            ]
        );
    }

    #[test]
    fn without_rules_the_selector_of_the_entry_finds_the_kinds_of_kops() {
        let labels = [("k8s-addon", "a"), ("tier", "b")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let with = |selector| AddonVersion {
            selector,
            ..AddonVersion::default()
        };
        let (rules, warnings) = prune_rules(&with(Some(labels.into())));
        assert!(warnings.is_empty());
        assert_eq!(rules.len(), 13);
        assert!(
            rules
                .iter()
                .all(|rule| rule.label_selector.as_deref() == Some("k8s-addon=a,tier=b"))
        );
        for none in [None, Some([].into())] {
            assert!(prune_rules(&with(none)).0.is_empty());
        }
    }

    #[test]
    fn an_unknown_role_is_every_node() {
        for (text, expected) in [
            ("control-plane", NodeRole::ControlPlane),
            ("worker", NodeRole::Workers),
            ("workers", NodeRole::Workers),
            ("all", NodeRole::All),
            ("spot", NodeRole::All),
        ] {
            assert_eq!(NodeRole::parse(text), expected, "{text}");
        }
    }
}
