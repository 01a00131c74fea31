use addons_plan::{InstallationPlan, Verb};
use common::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion};
use common::api::installation::{
    AddonInstallationStatus, HistoryEntry, Installed, RecordedOutcome,
};
use common::catalogue::{Catalogue, CatalogueEntry, Origin};

use super::super::fake::{self, FakeReply, FakeRequests};
use super::super::journal::Journal;
use super::*;

fn entry() -> CatalogueEntry {
    let spec = AddonCatalogueSpec {
        addons: vec![Addon {
            name: "web".to_owned(),
            versions: vec![AddonVersion {
                version: "1.0.0".to_owned(),
                ..AddonVersion::default()
            }],
            ..Addon::default()
        }],
        ..AddonCatalogueSpec::default()
    };
    let location = "index.yaml".to_owned();
    Catalogue::from_spec(&spec, Origin::Index { location })
        .entries
        .remove(0)
}

fn operation(version: &str) -> HistoryEntry {
    HistoryEntry {
        verb: Verb::Upgrade.into(),
        installed: Installed {
            version: version.to_owned(),
            ..Installed::default()
        },
        outcome: RecordedOutcome::Done,
    }
}

/// The record of `shop/web` after operations with these versions, the newest first.
fn record(history: &[&str]) -> AddonInstallation {
    let mut record = AddonInstallation::new("web", Default::default());
    record.metadata.namespace = Some("shop".to_owned());
    record.metadata.uid = Some("u1".to_owned());
    record.metadata.generation = Some(1);
    record.status = Some(AddonInstallationStatus {
        observed_generation: Some(1),
        history: history.iter().map(|version| operation(version)).collect(),
        ..AddonInstallationStatus::default()
    });
    record
}

/// A revision as a LIST of metadata has it; `owner`: the uid of the record that it goes with.
fn listed(number: i64, owner: &str, outcome: &str) -> Value {
    json!({"metadata": {
        "name": format!("web.v{number}"), "namespace": "shop", "uid": format!("r{number}"), "resourceVersion": "7",
        "labels": {LABEL_REVISION_OF: "web", LABEL_OUTCOME: outcome},
        "ownerReferences": [{"kind": "AddonInstallation", "name": "web", "uid": owner, "controller": true}],
    }})
}

fn list_of(items: Vec<Value>) -> FakeReply {
    Some((200, &[], json!({"metadata": {}, "items": items})))
}

fn made(number: i64) -> FakeReply {
    Some((201, &[], listed(number, "u1", "done")))
}

fn taken() -> FakeReply {
    let status = json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "AlreadyExists",
        "message": "controllerrevisions.apps \"web.v1\" already exists"});
    Some((409, &[], status))
}

fn forbidden() -> FakeReply {
    let status = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "controllerrevisions.apps is forbidden"});
    Some((403, &[], status))
}

/// The requests and warnings of an operation that leads from one history to another.
async fn kept(
    replies: Vec<FakeReply>,
    before: &[&str],
    after: &[&str],
) -> (FakeRequests, Vec<String>) {
    let (cluster, asked) = fake::cluster(replies);
    let name = record::name(&record(&[]));
    let mut plan = InstallationPlan::nothing(name, "web");
    plan.verb = Verb::Upgrade;
    let (wanted, entry) = (record(before), entry());
    let journal = Journal::from_plan(&plan);
    let task = Task {
        wanted: &wanted,
        plan: &plan,
        journal: &journal,
        fallback: None,
        entry: Some(&entry),
        outside: None,
    };
    let warnings = std::sync::Mutex::new(Vec::new());
    let events = |event| {
        if let Event::Warning { key, message } = event {
            warnings.lock().unwrap().push(format!("{key}: {message}"));
        }
    };
    store_revision(&cluster, &task, &record(after), &events).await;
    (asked, warnings.into_inner().unwrap())
}

fn verbs(asked: &FakeRequests) -> Vec<String> {
    let lines = asked.lines();
    let verbs = lines.iter().filter_map(|line| line.split(' ').next());
    verbs.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_first_revision_is_one_request() {
    let (asked, warnings) = kept(vec![made(1)], &[], &["1.0.0"]).await;
    assert_eq!((verbs(&asked), warnings), (vec!["POST".into()], Vec::new()));
    let body = asked.body(0);
    assert_eq!(body["metadata"]["name"], "web.v1");
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(
        (
            &body["revision"],
            &body["data"]["operation"]["installed"]["version"]
        ),
        (&json!(1), &json!("1.0.0"))
    );
}

#[tokio::test]
async fn a_repair_asks_nothing() {
    let (asked, warnings) = kept(Vec::new(), &["1.0.0"], &["1.0.0", "1.0.0"]).await;
    assert_eq!((verbs(&asked), warnings.len()), (Vec::new(), 0));
}

#[tokio::test]
async fn the_number_follows_the_last_one_and_the_oldest_goes() {
    let all = (1..=10).map(|number| listed(number, "u1", "done"));
    let gone = Some((200, &[][..], json!({"metadata": {"name": "web.v1"}})));
    let replies = vec![list_of(all.collect()), made(11), gone];
    let (asked, warnings) = kept(replies, &["1.0.0"], &["1.1.0", "1.0.0"]).await;
    assert_eq!(warnings, [""; 0]);
    assert_eq!(verbs(&asked), ["GET", "POST", "DELETE"]);
    assert_eq!(asked.body(1)["metadata"]["name"], "web.v11");
    assert!(asked.lines()[2].contains("/web.v1?") || asked.lines()[2].ends_with("/web.v1"));
    let preconditions = json!({"uid": "r1", "resourceVersion": "7"});
    assert_eq!(asked.body(2)["preconditions"], preconditions);
}

#[tokio::test]
async fn what_is_left_of_a_former_installation_takes_numbers_only() {
    let former = (1..=10).map(|number| listed(number, "u0", "done"));
    let replies = vec![taken(), list_of(former.collect()), made(11)];
    let (asked, warnings) = kept(replies, &[], &["1.0.0"]).await;
    assert_eq!(warnings, [""; 0]);
    assert_eq!(verbs(&asked), ["POST", "GET", "POST"]);
    assert_eq!(asked.body(2)["metadata"]["name"], "web.v11");
}

#[tokio::test]
async fn without_the_right_it_is_a_warning() {
    let (_, warnings) = kept(vec![forbidden()], &[], &["1.0.0"]).await;
    assert_eq!(warnings.len(), 1);
    let told = [
        "shop/ControllerRevision web: a rollback cannot go back to this revision: ",
        "controllerrevisions.apps is forbidden",
    ];
    for text in told {
        assert!(warnings[0].contains(text), "{}", warnings[0]);
    }
}

#[tokio::test]
async fn revisions_are_listed_newest_first_without_those_of_others() {
    let data = StoredRevision::new(operation("1.0.0"), &record(&[]), &entry(), None);
    let whole = |number, owner| {
        let mut one = listed(number, owner, "done");
        one["revision"] = json!(number);
        one["data"] = data.to_data().unwrap();
        one
    };
    let mut unreadable = whole(4, "u1");
    unreadable["data"] = json!({"of": "another form"});
    let items = vec![whole(1, "u1"), whole(3, "u1"), whole(2, "u0"), unreadable];
    let (cluster, asked) = fake::cluster(vec![list_of(items)]);
    let found = list(&cluster, &record(&[])).await.unwrap();
    let numbers: Vec<i64> = found.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [3, 1]);
    let selector = "labelSelector=kubectl-addons.dev%2Frevision-of%3Dweb";
    assert!(asked.lines()[0].contains(selector), "{:?}", asked.lines());
}
