//! Offers to install what the named add-ons require and nothing has.

use addons_operation::resolve::Answers;
use addons_operation::resolve::required::RequiredAddon;
use addons_operation::{Intent, NewInstallation, Resolution, Resolver};
use anyhow::Result;

use crate::output;
use crate::prompt::{confirm, resolve_with_answers};

/// Resolves new installations and, one after the other, the add-ons that they require and that are missing: with `with_required` all of
/// them, else those that the user agrees to on a terminal. Without an answer nothing is added, and the plan says what is missing.
///
/// # Errors
/// Those of [`resolve_with_answers`].
pub async fn resolve_with_required(
    resolver: &Resolver<'_>,
    mut new: Vec<NewInstallation>,
    with_required: bool,
    yes: bool,
) -> Result<Resolution> {
    let mut answers = Answers::new();
    loop {
        let intent = Intent::Install(new.clone());
        let resolution = resolve_with_answers(resolver, &intent, yes, &mut answers).await?;
        if !with_required && (yes || !output::can_ask()) {
            return Ok(resolution);
        }
        let required = resolver.find_required(&resolution).await?;
        if required.is_empty() {
            return Ok(resolution);
        }
        for one in required {
            if !with_required && confirm(&question(&one)).is_err() {
                return Ok(resolution);
            }
            new.push(NewInstallation {
                addon: one.addon,
                ..NewInstallation::default()
            });
        }
    }
}

/// `cert-manager is required by web, and catalogue custom has 1.16.2: install it first? [y/N] `
fn question(required: &RequiredAddon) -> String {
    let RequiredAddon {
        addon,
        by,
        version,
        found_in,
    } = required;
    format!(
        "{} is required by {by}, and {found_in} has {version}: install it first? [y/N] ",
        addon.name
    )
}
