//! The admission policies and the configuration of the webhook match what the trust model says that they guard.

use std::path::Path;

use addons_admission::trust::{GUARDS, GuardVerb};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The rules of all objects of this kind in a folder of `deploy`, by which the API server asks.
fn rules(folder: &str, kind: &str, pointer: &str) -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(folder);
    let mut rules = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let read: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| path.display().to_string())?;
        for object in read.iter().filter(|object| object["kind"] == kind) {
            let found = match pointer {
                "" => object["webhooks"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .collect(),
                _ => vec![object],
            };
            for one in found {
                let of_one = one.pointer(if pointer.is_empty() {
                    "/rules"
                } else {
                    pointer
                });
                rules.extend(
                    of_one
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
            }
        }
    }
    ensure!(rules.len() > 2, "{}: {rules:?}", folder.display());
    Ok(rules)
}

fn is_asked(rules: &[Value], (group, plural): (&str, &str), verb: GuardVerb) -> bool {
    let verb = format!("{verb:?}").to_uppercase();
    let has = |list: &Value, wanted: &str| {
        list.as_array()
            .is_some_and(|all| all.iter().any(|it| it == wanted))
    };
    rules.iter().any(|rule| {
        has(&rule["apiGroups"], group)
            && has(&rule["resources"], plural)
            && has(&rule["operations"], &verb)
    })
}

#[test]
fn each_layer_is_asked_about_what_it_guards() -> Result<()> {
    let policies = rules(
        "policies",
        "ValidatingAdmissionPolicy",
        "/spec/matchConstraints/resourceRules",
    )?;
    let webhook = rules("base", "ValidatingWebhookConfiguration", "")?;
    let mut missing = Vec::new();
    for guard in GUARDS {
        for (resource, verb) in guard
            .resources
            .iter()
            .flat_map(|it| guard.verbs.iter().map(move |verb| (*it, *verb)))
        {
            // What has no such verb is not asked about it.
            let (_, plural) = resource;
            if plural.contains('/') && verb == GuardVerb::Delete {
                continue;
            }
            let layers = [
                (guard.policy, &policies, "a policy"),
                (guard.webhook, &webhook, "the webhook"),
            ];
            for (is_guarded, rules, layer) in layers {
                if is_guarded && !is_asked(rules, resource, verb) {
                    missing.push(format!(
                        "{layer} is not asked about {verb:?} of {resource:?}: {}",
                        guard.part
                    ));
                }
            }
        }
    }
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}
