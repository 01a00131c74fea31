use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use addons_plan::Target;

use super::super::super::fake;
use super::super::super::journal::Journal;
use super::*;
use addons_plan::InstallationPlan;
use addons_plan::conflicts::Policy;
use addons_plan::graph::{Edge, EdgeReason};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

fn step(object: Value, version: &str, plural: &str, action: Action) -> Step {
    Step {
        target: Target {
            key: ObjectKey::from_object(&object).unwrap(),
            version: version.into(),
            plural: plural.into(),
        },
        action,
        object: Arc::new(object),
        uid: None,
        digest: String::new(),
        seen: None,
        policy: Policy::default(),
    }
}

fn discovery(versions: &[&str]) -> fake::FakeReply {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            json!({"version": version, "resources": [{"resource": "tills", "scope": "Cluster", "verbs": ["list"],
                "responseKind": {"group": "shop.example", "version": version, "kind": "Till"}}]})
        })
        .collect();
    let group = json!({"metadata": {"name": "shop.example"}, "versions": versions});
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [group]});
    Some((200, &[], list))
}

/// The definition gets a version, and its object waits for it twice: by its kind, and by an annotation that waits until it
/// is ready. That it is served as before is not enough.
#[tokio::test]
async fn an_object_waits_for_its_version() {
    let version = |name: &str| json!({"name": name, "served": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example"},
        "spec": {"group": "shop.example", "names": {"kind": "Till", "plural": "tills"},
            "versions": [version("v1"), version("v2")]},
    });
    let till = json!({"apiVersion": "shop.example/v2", "kind": "Till", "metadata": {"name": "a"}});
    let steps = vec![
        step(
            definition,
            "v1",
            "customresourcedefinitions",
            Action::Update,
        ),
        step(till, "v2", "tills", Action::Create),
    ];
    let installation = InstallationName {
        namespace: "kubectl-addons".into(),
        name: "shop".into(),
    };
    let plan = InstallationPlan {
        wait_for: steps.iter().map(|step| step.target.clone()).collect(),
        steps,
        ..InstallationPlan::nothing(installation, "shop")
    };
    let nodes = plan.steps.iter().map(|step| GraphNode::Object {
        part: 0,
        key: step.target.key.clone(),
    });
    let edge = |until, reason| Edge {
        from: 0,
        to: 1,
        until,
        reason,
    };
    let mut edges = vec![
        edge(Until::Served, EdgeReason::Definition),
        edge(Until::Ready, EdgeReason::DependsOn),
    ];
    edges.sort();
    let graph = Graph {
        nodes: nodes.collect(),
        edges,
    };

    let applied = || Some((200, &[][..], json!({"metadata": {"uid": "u"}})));
    let replies = vec![
        applied(),
        applied(),
        discovery(&["v1"]),
        discovery(&["v1", "v2"]),
        applied(),
    ];
    let (cluster, asked) = fake::cluster(replies);
    let wanted = AddonInstallation::new("shop", Default::default());
    let journal = Journal::from_plan(&plan);
    let task = Task {
        journal: &journal,
        fallback: None,
        entry: None,
        wanted: &wanted,
        plan: &plan,
        outside: None,
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let scheduler = Scheduler::new(&cluster, &[task], &graph, true, deadline, &|_, _| {});
    let (news, inbox) = mpsc::unbounded_channel();
    let (handle, ended) = oneshot::channel();
    assert!(news.send(PartNews::Open { part: 0 }).is_ok());
    scheduler.run(inbox, vec![handle]).await;

    let report = ended.await.unwrap().report;
    assert!(report.is_done(), "{report:?}");
    let lines = asked.lines();
    let asked: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split('?').next())
        .collect();
    assert_eq!(
        asked,
        [
            "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/tills.shop.example",
            "PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/tills.shop.example",
            "GET /apis",
            "GET /apis",
            "PATCH /apis/shop.example/v2/tills/a",
        ]
    );
}
