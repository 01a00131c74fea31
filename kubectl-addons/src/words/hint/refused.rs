//! Advice for a record that the plugin's own rules refuse.

use addons_admission::rules::installation::TARGET_NAMESPACE;
use addons_operation::error::Refused;

use super::{set, typed};

/// Advice for values that a form requires, and for policies.
pub fn of(refused: &Refused) -> Vec<String> {
    let mut lines = Vec::new();
    if !refused.policies.is_empty() {
        let names = refused.policies.join(" ");
        lines.push(format!("look:   kubectl get addonpolicy {names} -o yaml"));
    }
    if let Some(questions) = &refused.questions {
        let fields = questions.fields.iter();
        let flags: Vec<String> = fields.map(|field| set(&field.internal_name)).collect();
        lines.push(format!("look:   kubectl addons show {}", questions.addon));
        lines.push(format!("fix:    {}", flags.join(" ")));
    }
    if refused.rules.contains(&TARGET_NAMESPACE) && typed::takes("--target-namespace") {
        lines.push("fix:    add --target-namespace NAMESPACE".to_owned());
    }
    lines.extend(of_group(&refused.message));
    lines
}

/// Advice for changes that only a group may make. The plugin and the webhook name the group in the same words.
pub fn of_group(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("only group ")?;
    let verbs = ["installs", "releases", "changes"];
    let mut ends = verbs.iter().map(|verb| format!(" {verb} core add-ons"));
    let (groups, _) = ends.find_map(|end| rest.split_once(&end))?;
    let group = groups.split(", ").next()?;
    Some(format!(
        "fix:    add --as USER --as-group {group} --as-group system:masters, if you may impersonate them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_may_do_is_done_as_one_of_it() {
        let message =
            "web: metadata.annotations: only group kubectl-addons:core releases core add-ons";
        let fix = of_group(message).unwrap();
        assert!(
            fix.starts_with("fix:    add --as USER --as-group kubectl-addons:core "),
            "{fix}"
        );
        assert_eq!(of_group("only one of them"), None);
    }
}
