use addons_plan::conflicts::Policy;
use addons_plan::readiness::Readiness;
use addons_plan::{Action, Step, Target};
use common::api::names::InstallationName;
use serde_json::json;

use super::*;

const TERMINAL: ScreenSize = ScreenSize {
    height: 24,
    width: 60,
};
const TIMEOUT: Duration = Duration::from_secs(300);
const UNSCHEDULABLE: &str = "1/2 updated, 0 of 2 available; pod web-7d9c5b-x: Unschedulable: 0/4 nodes are available: 4 Insufficient memory";

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        kind: kind.to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

/// An installation that applies these objects, and creates its namespace.
fn plan(name: &str, objects: &[(&str, &str)]) -> InstallationPlan {
    let step = |(kind, name): &(&str, &str)| Step {
        target: Target {
            key: key(kind, name),
            version: "v1".to_owned(),
            plural: String::new(),
        },
        action: Action::Create,
        object: json!({"kind": kind}).into(),
        uid: None,
        digest: String::new(),
        seen: None,
        policy: Policy::default(),
    };
    let mut steps: Vec<Step> = objects.iter().map(step).collect();
    steps.sort_by(|a, b| a.target.key.cmp(&b.target.key));
    let installation = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: name.to_owned(),
    };
    InstallationPlan {
        create_namespace: Some("shop".to_owned()),
        steps,
        ..InstallationPlan::nothing(installation, name)
    }
}

fn applied(kind: &str, name: &str) -> Event {
    Event::Applied {
        key: key(kind, name),
        action: Action::Create,
    }
}

fn waits(kind: &str, name: &str, status: ReadinessStatus, message: &str) -> Event {
    Event::Waiting {
        key: key(kind, name),
        readiness: Readiness {
            status,
            message: message.to_owned(),
        },
    }
}

/// What a terminal of 60 columns shows.
fn screen(progress: &ProgressDisplay, seconds: u64) -> Vec<String> {
    let now = progress.began + Duration::from_secs(seconds);
    progress.live_lines(now, TERMINAL.height)
}

#[test]
fn a_wait_shows_its_whole_reason_and_the_deadline() {
    let web = plan("web", &[("Deployment", "web")]);
    let mut progress = ProgressDisplay::new(Some(TERMINAL), false, &[&web], TIMEOUT);
    assert!(screen(&progress, 0).is_empty());
    let pending = waits(
        "Deployment",
        "web",
        ReadinessStatus::InProgress,
        UNSCHEDULABLE,
    );
    assert_eq!(progress.show(0, &web, &pending), None);
    assert_eq!(
        screen(&progress, 42),
        [
            "  … shop/Deployment web",
            "      1/2 updated, 0 of 2 available; pod web-7d9c5b-x:",
            "      Unschedulable: 0/4 nodes are available: 4 Insufficient",
            "      memory",
            "  waiting 42s of 5m0s",
        ]
    );
    let ready = waits("Deployment", "web", ReadinessStatus::Current, "2/2 ready");
    let line = progress.show(0, &web, &ready).unwrap();
    assert!(line.starts_with("✓ shop/Deployment web  "), "{line}");
    assert!(screen(&progress, 43).is_empty());
}

#[test]
fn an_unchanged_wait_is_said_once() {
    let web = plan("web", &[("Deployment", "web")]);
    let mut log = ProgressDisplay::new(None, true, &[&web], TIMEOUT);
    let mut said = |message| {
        let event = waits("Deployment", "web", ReadinessStatus::InProgress, message);
        log.show(0, &web, &event).is_some()
    };
    let told = [
        "0/2 ready",
        "0/2 ready",
        "1/2 ready",
        "1/2 ready",
        "0/2 ready",
    ]
    .map(&mut said);
    assert_eq!(told, [true, false, true, false, true]);
    assert!(log.live_lines(log.began, 24).is_empty());
}

#[test]
fn counts_never_exceed_their_total() {
    let objects = [("ConfigMap", "a"), ("ConfigMap", "b"), ("Deployment", "c")];
    let (web, other) = (plan("web", &objects), plan("metrics", &[("Secret", "s")]));
    let mut progress = ProgressDisplay::new(Some(TERMINAL), true, &[&web, &other], TIMEOUT);
    let mut show = |event: &Event| progress.show(0, &web, event);
    let namespace = Event::Applied {
        key: ObjectKey {
            kind: "Namespace".to_owned(),
            name: "shop".to_owned(),
            ..ObjectKey::default()
        },
        action: Action::Create,
    };
    show(&namespace);
    show(&applied("ConfigMap", "a"));
    // The same object again: its CRD was changed twice, or its Job ran again.
    show(&applied("ConfigMap", "a"));
    show(&applied("ConfigMap", "b"));
    show(&waits(
        "Deployment",
        "c",
        ReadinessStatus::InProgress,
        "0/1 ready",
    ));
    assert_eq!(
        screen(&progress, 7),
        [
            "  … web      2/3  shop/Deployment c: 0/1 ready",
            "  waiting 7s of 5m0s",
        ]
    );
    progress.show(0, &web, &applied("Deployment", "c"));
    progress.show(1, &other, &applied("Secret", "s"));
    progress.show(1, &other, &applied("ConfigMap", "surprise"));
    assert_eq!(
        screen(&progress, 8),
        ["  ✓ web      3/3", "  ✓ metrics  1/1"]
    );
    // They stay on the screen.
    let (lines, _) = progress.finish();
    assert_eq!(lines, ["✓ web      3/3", "✓ metrics  1/1"]);
}

#[test]
fn a_rank_has_one_line_when_it_is_complete() {
    let web = plan("web", &[("ConfigMap", "a"), ("ConfigMap", "b")]);
    let mut progress = ProgressDisplay::new(Some(TERMINAL), false, &[&web], TIMEOUT);
    assert_eq!(progress.show(0, &web, &applied("ConfigMap", "a")), None);
    assert_eq!(progress.show(0, &web, &applied("ConfigMap", "a")), None);
    let live = screen(&progress, 0).concat();
    assert!(live.ends_with(" 1/2"), "{live}");
    let line = progress.show(0, &web, &applied("ConfigMap", "b")).unwrap();
    assert!(line.starts_with('✓') && line.contains("2/2"), "{line}");
    assert_eq!(progress.show(0, &web, &applied("ConfigMap", "b")), None);
    assert!(screen(&progress, 0).is_empty());
}

#[test]
fn failures_are_shown_whole_and_remembered() {
    let web = plan("web", &[("ConfigMap", "a"), ("ConfigMap", "b")]);
    let mut progress = ProgressDisplay::new(Some(TERMINAL), true, &[&web, &web], TIMEOUT);
    let message = "denied: ".repeat(80);
    let failed = Event::Failed {
        key: key("ConfigMap", "a"),
        message: message.clone(),
        remedy: None,
    };
    let line = progress.show(1, &web, &failed).unwrap();
    assert_eq!(line, format!("✗ shop/ConfigMap a  {message}"));
    assert_eq!(screen(&progress, 1), ["  ✗ web  0/2"]);
    let (_, failures) = progress.finish();
    assert_eq!(failures, [(1, key("ConfigMap", "a"))].into());
}
