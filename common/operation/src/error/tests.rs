use addons_plan::Verb;
use addons_plan::prune::limit::PruneLimit;
use addons_plan::restored::OutdatedRecord;
use common::manifest::key::ObjectKey;
use common::manifest::parse::{self, ManifestOptions};
use common::values::mask::SecretMask;
use jiff::Timestamp;
use serde_json::json;

use super::*;

#[test]
fn an_error_about_what_was_rendered_holds_no_secret() {
    let mask = SecretMask::from_values([json!({"password": "hunter22"})].iter());
    let object = "apiVersion: v1\nkind: CoreConfigMap\nmetadata: {name: hunter22}\n";
    let rendered = format!("{object}---\n{object}data: {{a: b}}\n");
    let parsed = parse::parse(rendered.as_bytes(), "a.yaml", &ManifestOptions::default());
    let error = OperationError::from(parsed.unwrap_err()).with_place("web".to_owned());
    assert!(error.chain().contains("hunter22"), "{error}");
    let error = error.masked(&mask);
    assert!(!error.chain().contains("hunter22"), "{error}");
    assert!(error.to_string().starts_with("web: "), "{error}");
}

fn till() -> InstallationName {
    InstallationName {
        namespace: "shop".to_owned(),
        name: "till".to_owned(),
    }
}

#[test]
fn a_protection_can_be_accepted_and_everything_else_cannot() {
    let pruned = || PlanError::MostlyPruned {
        installation: till(),
        verb: Verb::Upgrade,
        limit: PruneLimit::default(),
        needed: PruneLimit::new(75).unwrap(),
        prune: 9,
        there: 12,
        wanted: 3,
    };
    let downgrade = || OperationError::Downgrade {
        installation: till(),
        addon: "till".to_owned(),
        from: "1.1.0".to_owned(),
        to: "1.0.0".to_owned(),
    };
    let older = PlanError::RecordOlder(Box::new(OutdatedRecord {
        installation: till(),
        recorded: None,
        object: ObjectKey::default(),
        written: Timestamp::UNIX_EPOCH,
        objects: 1,
    }));
    let lost = MissingOrigin::Catalogue {
        catalogue: "team".to_owned(),
    };
    let orphaned = OperationError::Orphaned {
        installation: till(),
        lost,
    };
    let forbidden = EngineError::Forbidden {
        verb: "create",
        resource: "configmaps".to_owned(),
        message: String::new(),
    };
    let no_secret = RemoteError::NoSecret {
        namespace: "shop".to_owned(),
        secret: "admin".to_owned(),
    };
    let unauthorized = EngineError::Unauthorized {
        server: "https://shop.example.test".to_owned(),
    };
    for (error, expected) in [
        (pruned().into(), ("PruneLimit", true)),
        (
            OperationError::from(pruned()).with_place("till in catalogue team".to_owned()),
            ("PruneLimit", true),
        ),
        (downgrade(), ("Downgrade", true)),
        (older.into(), ("RecordOlderThanCluster", true)),
        (orphaned, ("EntryGone", false)),
        (
            OperationError::from(forbidden).with_place("till".to_owned()),
            ("Forbidden", false),
        ),
        (no_secret.into(), ("KubeconfigMissing", false)),
        (unauthorized.into(), ("CredentialsRefused", false)),
        (OperationError::NoKubernetesVersion, ("PlanFailed", false)),
    ] {
        let kind = error.kind();
        assert_eq!((kind.reason, kind.can_be_accepted), expected, "{error}");
    }
}
