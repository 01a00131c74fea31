//! Advice for a single object that the server refuses to change.

use addons_plan::changes::RefusalRemedy;
use addons_plan::immutable::RecreationObstacle;
use addons_plan::prune::KeptKind;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

use super::plan::advise_without_recreation;
use super::{command, typed};

/// Advice for an object of an installation.
pub fn object_hints(
    remedy: &RefusalRemedy,
    key: &ObjectKey,
    installation: &InstallationName,
) -> Vec<String> {
    let upgrade = command("upgrade", installation);
    let way_out = match remedy {
        RefusalRemedy::Upgrade => format!("fix:    {upgrade}"),
        RefusalRemedy::TakeOrYield => {
            let accept = extend_command(&["--conflicts", "take"], &upgrade);
            format!("accept: {accept}    (or yield, which leaves them)")
        }
        RefusalRemedy::Annotation => {
            "fix:    give the live field the wanted value, or change the annotation".to_owned()
        }
        RefusalRemedy::Recreate => {
            let object = format!("{}/{}", key.kind, key.name);
            format!(
                "accept: {}",
                extend_command(&["--recreate", &object], &upgrade)
            )
        }
        RefusalRemedy::ByHand => {
            let obstacle = KeptKind::from_key(key)
                .map_or(RecreationObstacle::Preexisting, RecreationObstacle::Kept);
            format!("fix:    {}", advise_without_recreation(key, obstacle))
        }
        RefusalRemedy::DeleteWebhooks(configuration) => {
            let ObjectKey { kind, name, .. } = &**configuration;
            let kind = kind.to_lowercase();
            return vec![
                format!("look:   kubectl describe {kind} {name}"),
                format!("fix:    kubectl delete {kind} {name}    (then run the command again)"),
            ];
        }
    };
    if typed::is_verb("diff") {
        return vec![way_out];
    }
    let look = typed::diff_command().unwrap_or_else(|| command("diff", installation));
    vec![format!("look:   {look}"), way_out]
}

/// Returns the typed command with `flags`, or else the upgrade with them.
fn extend_command(flags: &[&str], upgrade: &str) -> String {
    let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    typed::with_flags(&flags).unwrap_or_else(|| format!("{upgrade} {}", flags.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remedy_has_a_way_out() {
        let installation = InstallationName {
            namespace: "shop".to_owned(),
            name: "till".to_owned(),
        };
        let key = ObjectKey {
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            ..ObjectKey::default()
        };
        let upgrade = "kubectl addons upgrade till -n shop";
        for (remedy, way_out) in [
            (RefusalRemedy::Upgrade, format!("fix:    {upgrade}")),
            (
                RefusalRemedy::TakeOrYield,
                format!("accept: {upgrade} --conflicts take    (or yield, which leaves them)"),
            ),
            (
                RefusalRemedy::Annotation,
                "fix:    give the live field the wanted value, or change the annotation".to_owned(),
            ),
            (
                RefusalRemedy::Recreate,
                format!("accept: {upgrade} --recreate Deployment/web"),
            ),
            (
                RefusalRemedy::ByHand,
                "fix:    take the change out of the manifest".to_owned(),
            ),
        ] {
            let look = "look:   kubectl addons diff till -n shop".to_owned();
            assert_eq!(object_hints(&remedy, &key, &installation), [look, way_out]);
        }
        let webhooks = ObjectKey {
            group: "admissionregistration.k8s.io".to_owned(),
            kind: "ValidatingWebhookConfiguration".to_owned(),
            name: "judges".to_owned(),
            ..ObjectKey::default()
        };
        assert_eq!(
            object_hints(
                &RefusalRemedy::DeleteWebhooks(Box::new(webhooks)),
                &key,
                &installation
            ),
            [
                "look:   kubectl describe validatingwebhookconfiguration judges",
                "fix:    kubectl delete validatingwebhookconfiguration judges    (then run the command again)",
            ]
        );
    }
}
