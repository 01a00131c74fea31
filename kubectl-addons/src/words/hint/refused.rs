//! What to do about a verdict of our own.

use addons_operation::verdict::Refused;

use super::set;

/// For values that a form requires, and for policies.
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
    lines
}
