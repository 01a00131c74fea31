use serde_json::json;

use super::*;
use addons_plan::readiness::health_check::HealthChecks;
use addons_plan::standing::object::{ObjectHealth, ObservedObject};
use common::api::installation::AddonInstallation;

fn healthy() -> DoctorFacts {
    let pair = |kind: &str, name: &str| {
        let object = json!({"kind": kind, "metadata": {"name": name}});
        ObjectPair {
            wanted: object.clone(),
            live: Some(object),
        }
    };
    DoctorFacts {
        now: Timestamp::UNIX_EPOCH,
        system: "kubectl-addons".to_owned(),
        server: Server {
            version: "v1.36.3".to_owned(),
            is_supported: true,
        },
        definitions: Ok(vec![pair("CustomResourceDefinition", "a")]),
        missing_rights: Ok(Vec::new()),
        webhook: Ok(WebhookFacts {
            parts: vec![
                pair("Deployment", "addons-webhook"),
                pair("ValidatingWebhookConfiguration", "kubectl-addons"),
            ],
            reply: WebhookReply::Denied,
            ready: 2,
            certificate: Ok(CertificateFacts::default()),
        }),
        policies: Ok(vec![
            pair("ValidatingAdmissionPolicy", "kubectl-addons-guards"),
            pair("ValidatingAdmissionPolicyBinding", "kubectl-addons-guards"),
        ]),
        records: Ok(Vec::new()),
        health: Ok(BTreeMap::new()),
        catalogues: Ok(Vec::new()),
        lease: Ok(None),
        owned: Ok(Vec::new()),
        namespaces: Ok(BTreeMap::new()),
        cluster: Ok(Some("uid-1".to_owned())),
    }
}

/// The problems of a cluster in which one thing is wrong.
fn with(change: impl FnOnce(&mut DoctorFacts)) -> Vec<String> {
    let mut facts = healthy();
    change(&mut facts);
    let problems = diagnose(&facts).into_iter();
    problems
        .map(|it| format!("{:?} {}: {it}", it.severity(), it.subject()))
        .collect()
}

fn unread<T>(why: &str, is_forbidden: bool) -> FactResult<T> {
    Err(UnreadFact {
        why: why.to_owned(),
        is_forbidden,
    })
}

fn webhook(facts: &mut DoctorFacts) -> &mut WebhookFacts {
    facts.webhook.as_mut().expect("it was read")
}

fn record(spec: Value, metadata: Value, status: Value) -> AddonInstallation {
    let mut all = json!({"name": "web", "namespace": "kubectl-addons"});
    json_patch::merge(&mut all, &metadata);
    let mut wanted = json!({"addonRef": {"name": "web"}});
    json_patch::merge(&mut wanted, &spec);
    let object = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": all, "spec": wanted, "status": status,
    });
    serde_json::from_value(object).expect("a record")
}

#[test]
fn nothing_is_wrong_with_a_healthy_cluster() {
    assert_eq!(with(|_| {}), Vec::<String>::new());
}

#[test]
fn each_part_of_the_admission_is_judged() {
    let live = |pairs: &mut FactResult<Vec<ObjectPair>>, at: usize, live: Option<Value>| {
        pairs.as_mut().expect("read")[at].live = live;
    };
    let ignored = json!({"webhooks": [{"failurePolicy": "Ignore"}]});
    for (found, expected) in [
        (
            with(|facts| live(&mut facts.definitions, 0, None)),
            "Error CustomResourceDefinition a: it does not exist",
        ),
        (
            with(|facts| live(&mut facts.definitions, 0, Some(json!({})))),
            "Error CustomResourceDefinition a: it is older than this release, or was edited",
        ),
        (
            with(|facts| live(&mut facts.policies, 1, None)),
            "Error ValidatingAdmissionPolicyBinding kubectl-addons-guards: it does not exist",
        ),
        (
            with(|facts| webhook(facts).parts[0].live = None),
            "Error Deployment addons-webhook: it does not exist",
        ),
        (
            with(|facts| webhook(facts).ready = 0),
            "Error kubectl-addons/Service addons-webhook: no pod of it is ready",
        ),
        (
            with(|facts| webhook(facts).reply = WebhookReply::Accepted),
            "Error webhook: it does not deny a request that it must deny",
        ),
        (
            with(|facts| {
                let part = &mut webhook(facts).parts[1];
                part.wanted = json!({"kind": part.wanted["kind"], "webhooks": [{}]});
                part.live = Some(ignored);
            }),
            "Warning ValidatingWebhookConfiguration kubectl-addons: what the webhook does not answer passes \
             (failurePolicy Ignore)",
        ),
        (
            with(|facts| facts.lease = unread("not allowed: get leases", true)),
            "Warning the Lease of the reconciler: it could not be checked: not allowed: get leases",
        ),
        (
            with(|facts| facts.catalogues = unread("no answer within 10 s", false)),
            "Error the catalogues: it could not be checked: no answer within 10 s",
        ),
        (
            with(|facts| webhook(facts).reply = WebhookReply::Refused("silence".to_owned())),
            "Error webhook: it refuses every request: silence",
        ),
        (
            with(|facts| {
                let role = |rules: Value| json!({"kind": "Role", "metadata": {"name": "a"}, "rules": rules});
                webhook(facts).parts.push(ObjectPair {
                    wanted: role(json!([{"verbs": ["get", "update"]}])),
                    live: Some(role(json!([{"verbs": ["get"]}]))),
                });
            }),
            "Error Role a: rules.0.verbs is not what this release installs",
        ),
    ] {
        assert_eq!(found, [expected]);
    }
    let none = with(|facts| {
        for pair in facts.policies.as_mut().expect("read") {
            pair.live = None;
        }
        for part in &mut webhook(facts).parts {
            part.live = None;
        }
        let role = json!({"kind": "ClusterRole", "metadata": {"name": "left"}});
        webhook(facts).parts.push(ObjectPair {
            wanted: role.clone(),
            live: Some(role),
        });
        webhook(facts).reply = WebhookReply::Accepted;
    });
    // A webhook that was not installed is not broken, and a leftover role is not a webhook.
    assert_eq!(none.len(), 2, "{none:?}");
    assert!(
        none.iter().all(|line| line.starts_with("Warning")),
        "{none:?}"
    );
}

#[test]
fn of_a_webhook_outside_only_its_answer_is_judged() {
    let outside = |asked: WebhookReply| {
        with(|facts| {
            let webhook = webhook(facts);
            webhook.parts[0].live = None;
            let configuration = &mut webhook.parts[1];
            let at = |client: Value| json!({"webhooks": [{"name": "a", "clientConfig": client}]});
            let kind = configuration.wanted["kind"].clone();
            configuration.wanted = at(json!({"service": {"name": "addons-webhook"}}));
            configuration.wanted["kind"] = kind;
            configuration.live = Some(at(json!({"url": "https://a.example/judge"})));
            webhook.ready = 0;
            webhook.certificate = unread("no Secret", false);
            webhook.reply = asked;
        })
    };
    assert_eq!(outside(WebhookReply::Denied), Vec::<String>::new());
    assert_eq!(
        outside(WebhookReply::Unanswered("refused".to_owned())),
        [
            "Error webhook: it runs outside the cluster at https://a.example/judge, and does not answer: refused"
        ]
    );
}

#[test]
fn a_certificate_is_judged_by_time_and_trust() {
    let of = |certificate: CertificateFacts| {
        with(|facts| {
            facts.now = Timestamp::from_second(100).expect("a time");
            webhook(facts).certificate = Ok(CertificateFacts {
                secret: "addons-webhook-ca".to_owned(),
                ..certificate
            });
        })
    };
    let end = |second| CertificateFacts {
        end: Some(Timestamp::from_second(second).expect("a time")),
        ..CertificateFacts::default()
    };
    assert_eq!(of(end(101)), Vec::<String>::new());
    let expired = of(end(100));
    assert!(
        expired[0].contains("has expired at 1970-01-01T00:01:40Z"),
        "{expired:?}"
    );
    let untrusted = of(CertificateFacts {
        untrusted_by: vec!["MutatingWebhookConfiguration kubectl-addons".to_owned()],
        ..end(101)
    });
    assert!(untrusted[0].ends_with("caBundle does not hold the authority of the webhook"));
}

#[test]
fn records_are_judged_by_what_they_wait_for() {
    let second = |second| Timestamp::from_second(second).expect("a time");
    let one = |record: AddonInstallation, lease: Option<Lease>| {
        with(|facts| {
            facts.now = second(1000);
            facts.records = Ok(vec![record]);
            facts.lease = Ok(lease);
            let system = (facts.system.clone(), NamespaceState::default());
            facts.namespaces = Ok(BTreeMap::from([system]));
        })
    };
    let fresh = Lease {
        holder: "pod".to_owned(),
        renewed: Some(second(990)),
        seconds: 15,
    };
    let operation = |renewed: &str| {
        json!({"operation": {
            "id": "1", "verb": "upgrade", "holder": "me", "startedAt": "1970-01-01T00:00:00Z",
            "renewedAt": renewed, "leaseSeconds": 15,
        }})
    };
    let going = json!({
        "deletionTimestamp": "1970-01-01T00:00:00Z", "finalizers": ["kubectl-addons.dev/uninstall"],
    });
    for (record, lease, expected) in [
        (
            record(json!({}), json!({}), operation("1970-01-01T00:16:30Z")),
            None,
            None,
        ),
        (
            record(json!({}), json!({}), operation("1970-01-01T00:10:00Z")),
            None,
            Some("an operation of me was interrupted"),
        ),
        (
            record(json!({}), going.clone(), json!({})),
            None,
            Some("its deletion waits for a reconciler, and none is running"),
        ),
        (record(json!({}), going, json!({})), Some(fresh), None),
        (
            record(
                json!({}),
                json!({}),
                json!({"cluster": {"kubeSystemUid": "uid-2"}}),
            ),
            None,
            Some("its record is of another cluster"),
        ),
        (
            record(json!({}), json!({}), json!({})),
            None,
            Some("web: Pending"),
        ),
    ] {
        let found = one(record, lease);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        if let (Some(found), Some(expected)) = (found.first(), expected) {
            assert!(found.ends_with(expected), "{found}");
        }
    }
}

/// Without a leader, a warning says so; an error, if core add-ons of a core set rely on one.
#[test]
fn a_reconciler_that_no_longer_leads_is_missed() {
    let second = |second| Timestamp::from_second(second).expect("a time");
    let managed = |finalizers: &[&str]| {
        let status = json!({"phase": "Ready", "installed": {"version": "1.0.0"}});
        record(json!({}), json!({ "finalizers": finalizers }), status)
    };
    let held = managed(&["kubectl-addons.dev/uninstall"]);
    let core = managed(&["kubectl-addons.dev/core-guard"]);
    for (holder, renewed, record, expected) in [
        ("pod", 990, &core, None),
        (
            "pod",
            900,
            &managed(&[]),
            Some("Warning Lease addons-reconciler: pod has not renewed it"),
        ),
        (
            "pod",
            900,
            &core,
            Some(
                "Error Lease addons-reconciler: pod has not renewed it; 1 installation relies on a reconciler",
            ),
        ),
        (
            "",
            900,
            &held,
            Some(
                "Warning Lease addons-reconciler: no reconciler holds it; 1 installation relies on a reconciler",
            ),
        ),
        ("", 990, &held, None),
        ("", 900, &managed(&[]), None),
    ] {
        let found = with(|facts| {
            facts.now = second(1000);
            facts.records = Ok(vec![record.clone()]);
            facts.lease = Ok(Some(Lease {
                holder: holder.to_owned(),
                renewed: Some(second(renewed)),
                seconds: if holder.is_empty() { 1 } else { 15 },
            }));
            let system = (facts.system.clone(), NamespaceState::default());
            facts.namespaces = Ok(BTreeMap::from([system]));
        });
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(found, expected, "{holder} {renewed}");
    }
}

/// Guards must be unchanged since they were installed. The objects of all installations must exist.
#[test]
fn installations_are_judged_by_their_live_objects() {
    let found = |spec: Value, edited: bool| {
        with(|facts| {
            let status = json!({"phase": "Ready", "installed": {"version": "1.0.0"}});
            facts.records = Ok(vec![record(spec, json!({}), status)]);
            // A deleted Job is not reported as missing.
            let (group, kind) = if edited {
                ("batch", "Job")
            } else {
                ("", "ConfigMap")
            };
            let objects = json!([{"name": "a"}]);
            let group = json!({"group": group, "version": "v1", "kind": kind, "objects": objects});
            let status = serde_json::from_value(json!({"inventory": [group]})).expect("a status");
            let inventory = Inventory::from_status(Some(&status)).objects;
            let (key, item) = inventory.first_key_value().expect("an object");
            let object = ObjectHealth {
                edited,
                ..ObjectHealth::assess(
                    key,
                    item,
                    "me",
                    &HealthChecks::default(),
                    &ObservedObject::Missing,
                )
            };
            let health = Health {
                assessed: 1,
                objects: vec![object],
                older: None,
                unseen: None,
            };
            let owner = common::api::names::owner_hash("kubectl-addons", "web");
            facts.health = Ok(BTreeMap::from([(owner, health)]));
        })
    };
    let builtin = json!({"addonRef": {"index": common::api::names::INDEX_BUILTIN}});
    let gone = "Error installation kubectl-addons/web: Degraded: ConfigMap a is gone";
    let edit = "Error installation kubectl-addons/web: Job a was edited since our last apply";
    for (spec, is_edited, expected) in [
        (json!({}), false, Some(gone)),
        (builtin.clone(), false, Some(gone)),
        (json!({}), true, None),
        (json!({"coreAddon": true}), true, Some(edit)),
        (builtin, true, Some(edit)),
    ] {
        let found = found(spec, is_edited);
        assert_eq!(found.first().map(String::as_str), expected, "{found:?}");
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
    }
}

#[test]
fn every_namespace_of_a_core_addon_has_the_mark() {
    let inventory = json!({"phase": "Ready", "inventory": [
        {"version": "v1", "kind": "ConfigMap", "namespace": "objects", "objects": [{"name": "a"}]},
        {"version": "v1", "kind": "Namespace", "objects": [{"name": "object"}, {"name": "marked"}]},
    ]});
    let spec = json!({"coreAddon": true, "targetNamespace": "target"});
    let names = [
        "kubectl-addons",
        "marked",
        "object",
        "objects",
        "other",
        "target",
    ];
    let of = |spec: &Value, metadata: Value| {
        with(|facts| {
            facts.records = Ok(vec![record(spec.clone(), metadata, inventory.clone())]);
            let namespace = |name: &str| NamespaceState {
                holds_core: name == "marked",
                ..NamespaceState::default()
            };
            let all = names.map(|name| (name.to_owned(), namespace(name)));
            facts.namespaces = Ok(all.into());
        })
    };
    let unmarked = ["kubectl-addons", "object", "objects", "target"].map(|name| {
        format!(
            "Error Namespace {name}: it holds core add-on kubectl-addons/web and lacks label \
             kubectl-addons.dev/holds-core: it can be deleted"
        )
    });
    assert_eq!(of(&spec, json!({})), unmarked);
    let released = json!({"annotations": {"kubectl-addons.dev/released": "true"}});
    assert_eq!(of(&spec, released), Vec::<String>::new());
    let not_core = json!({"targetNamespace": "target"});
    assert_eq!(of(&not_core, json!({})), Vec::<String>::new());
}

#[test]
fn objects_without_a_record_are_told_by_owner() {
    let owned = |name: &str, owner: &str| OwnedObject {
        object: format!("shop/ConfigMap {name}"),
        owner: owner.to_owned(),
        installation: None,
        release: (name == "held").then(|| "shop/web".to_owned()),
    };
    let found = with(|facts| {
        let ours = common::api::names::owner_hash("kubectl-addons", "web");
        facts.records = Ok(vec![record(
            json!({}),
            json!({}),
            json!({"phase": "Ready"}),
        )]);
        facts.owned = Ok(vec![
            owned("kept", &ours),
            owned("held", &ours),
            owned("a", "lost"),
            owned("b", "lost"),
            owned("c", "lost"),
            owned("d", "lost"),
        ]);
    });
    assert_eq!(
        found,
        [
            "Warning owner lost: it has no record, and 4 objects: shop/ConfigMap a, shop/ConfigMap b, shop/ConfigMap c, …",
            "Warning installation kubectl-addons/web: Helm release shop/web names its objects, too: helm can change and delete them",
        ]
    );
}

#[test]
fn an_installation_in_a_wrong_namespace_is_moved_unless_it_was_installed() {
    let of = |status: Value| {
        with(|facts| {
            let mut record = record(json!({}), json!({}), status);
            record.metadata.namespace = Some("default".to_owned());
            facts.records = Ok(vec![record]);
            let here = ("default".to_owned(), NamespaceState::default());
            facts.namespaces = Ok(BTreeMap::from([here]));
        })
    };
    let new = of(json!({}));
    assert!(
        new[0].ends_with("installations of this cluster belong in kubectl-addons"),
        "{new:?}"
    );
    let installed = of(
        json!({"installed": {"version": "1.0.0", "manifestHash": "a", "at": "1970-01-01T00:00:00Z"}}),
    );
    assert!(
        installed[0].ends_with("its namespace does not stand for a cluster"),
        "{installed:?}"
    );
}
