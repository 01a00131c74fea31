//! Advice for a record that the plugin's own rules refuse.

use addons_admission::rules::installation::TARGET_NAMESPACE;
use addons_operation::error::VerdictRefusal;

use super::line::set_flag;
use super::typed;

/// Advice for values that a form requires, and for policies.
pub fn refused_hints(refused: &VerdictRefusal) -> Vec<String> {
    let mut lines = Vec::new();
    if !refused.policies.is_empty() {
        let names = refused.policies.join(" ");
        lines.push(format!("look:   kubectl get addonpolicy {names} -o yaml"));
    }
    if let Some(questions) = &refused.questions {
        let fields = questions.fields.iter();
        let flags: Vec<String> = fields.map(|field| set_flag(&field.internal_name)).collect();
        lines.push(format!("look:   kubectl addons show {}", questions.addon));
        lines.push(format!("fix:    {}", flags.join(" ")));
    }
    if refused.rules.contains(&TARGET_NAMESPACE) && typed::takes_flag("--target-namespace") {
        lines.push("fix:    add --target-namespace NAMESPACE".to_owned());
    }
    lines.extend(group_hint(&refused.message));
    lines
}

/// Advice for changes that only a group may make. The plugin and the webhook name the group in the same words.
pub fn group_hint(message: &str) -> Option<String> {
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
        let fix = group_hint(message).unwrap();
        assert!(
            fix.starts_with("fix:    add --as USER --as-group kubectl-addons:core "),
            "{fix}"
        );
        assert_eq!(group_hint("only one of them"), None);
    }
}
