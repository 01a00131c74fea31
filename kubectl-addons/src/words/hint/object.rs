//! Advice for a single object that the server refuses to change.

use addons_plan::changes::Remedy;
use addons_plan::immutable::Obstacle;
use addons_plan::prune::KeptKind;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

use super::plan::without_recreation;
use super::{command, typed};

/// Advice for an object of an installation.
pub fn of_object(remedy: &Remedy, key: &ObjectKey, installation: &InstallationName) -> Vec<String> {
    let upgrade = command("upgrade", installation);
    let way_out = match remedy {
        Remedy::Upgrade => format!("fix:    {upgrade}"),
        Remedy::TakeOrYield => {
            let accept = with(&["--conflicts", "take"], &upgrade);
            format!("accept: {accept}    (or yield, which leaves them)")
        }
        Remedy::Annotation => {
            "fix:    give the live field the wanted value, or change the annotation".to_owned()
        }
        Remedy::Recreate => {
            let object = format!("{}/{}", key.kind, key.name);
            format!("accept: {}", with(&["--recreate", &object], &upgrade))
        }
        Remedy::ByHand => {
            let obstacle = KeptKind::of(key).map_or(Obstacle::Preexisting, Obstacle::Kept);
            format!("fix:    {}", without_recreation(key, obstacle))
        }
        Remedy::DeleteWebhooks(configuration) => {
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
    let look = typed::diff().unwrap_or_else(|| command("diff", installation));
    vec![format!("look:   {look}"), way_out]
}

/// Returns the typed command with `flags`, or else the upgrade with them.
fn with(flags: &[&str], upgrade: &str) -> String {
    let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    typed::with(&flags).unwrap_or_else(|| format!("{upgrade} {}", flags.join(" ")))
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
            (Remedy::Upgrade, format!("fix:    {upgrade}")),
            (
                Remedy::TakeOrYield,
                format!("accept: {upgrade} --conflicts take    (or yield, which leaves them)"),
            ),
            (
                Remedy::Annotation,
                "fix:    give the live field the wanted value, or change the annotation".to_owned(),
            ),
            (
                Remedy::Recreate,
                format!("accept: {upgrade} --recreate Deployment/web"),
            ),
            (
                Remedy::ByHand,
                "fix:    take the change out of the manifest".to_owned(),
            ),
        ] {
            let look = "look:   kubectl addons diff till -n shop".to_owned();
            assert_eq!(of_object(&remedy, &key, &installation), [look, way_out]);
        }
        let webhooks = ObjectKey {
            group: "admissionregistration.k8s.io".to_owned(),
            kind: "ValidatingWebhookConfiguration".to_owned(),
            name: "judges".to_owned(),
            ..ObjectKey::default()
        };
        assert_eq!(
            of_object(
                &Remedy::DeleteWebhooks(Box::new(webhooks)),
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
