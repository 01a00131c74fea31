use super::*;

const SOAK: u64 = 60;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn rollout(canaries: usize, max_unavailable: &str) -> CoreRollout {
    CoreRollout {
        rollout: RolloutSettings {
            canaries,
            max_unavailable: max_unavailable.parse().ok(),
            soak: Duration::from_secs(SOAK),
        },
        ..DEFAULT
    }
}

/// One letter a cluster, called `a`, `b` and so on: `D` due, `W` due and outside its windows until second 500, `U` unknown, `n` not ready,
/// `r` ready since second 100.
fn clusters(letters: &str) -> BTreeMap<String, CoreSetStanding> {
    let standing = |letter| match letter {
        'D' => CoreSetStanding::Due,
        'W' => CoreSetStanding::OutsideWindow(Some(at(500))),
        'U' => CoreSetStanding::Unknown,
        'n' => CoreSetStanding::Followed(None),
        _ => CoreSetStanding::Followed(Some(at(100))),
    };
    let names = ('a'..='z').map(|name| name.to_string());
    names.zip(letters.chars().map(standing)).collect()
}

/// `a@100 b@130 | c d`: what was begun when, and what waits.
fn words(progress: &RolloutProgress) -> String {
    let begun = progress.begun.iter();
    let begun: Vec<_> = begun
        .map(|(name, at)| format!("{name}@{}", at.as_second()))
        .collect();
    let waiting: Vec<_> = progress.waiting.iter().cloned().collect();
    format!("{} | {}", begun.join(" "), waiting.join(" "))
}

fn read(of: &str, words: &str) -> RolloutProgress {
    let (begun, waiting) = words.split_once('|').unwrap();
    let begun = begun.split_whitespace().map(|one| {
        let (name, second) = one.split_once('@').unwrap();
        (name.to_owned(), at(second.parse().unwrap()))
    });
    RolloutProgress {
        of: of.to_owned(),
        begun: begun.collect(),
        waiting: waiting.split_whitespace().map(str::to_owned).collect(),
        unready: BTreeMap::new(),
    }
}

fn gate_words(gate: Option<&RolloutGate>) -> String {
    match gate {
        None => String::new(),
        Some(RolloutGate::NotReady(namespace)) => format!("{namespace} not ready"),
        Some(RolloutGate::Soaking { namespace, left }) => {
            format!("{namespace} {}s", left.as_secs())
        }
        Some(RolloutGate::OutsideWindow { namespace, opens }) => {
            let opens = opens.map(Timestamp::as_second);
            format!("{namespace} closed until {}", opens.unwrap_or_default())
        }
    }
}

/// What was stored, of which change, the clusters, the second, what is stored then, what the next wave waits for.
type Turn = (
    &'static str,
    &'static str,
    &'static str,
    i64,
    &'static str,
    &'static str,
);

const TURNS: [Turn; 21] = [
    // A change begins with the canary.
    (" | ", "old", "DDDD", 100, "a@100 | b c d", "a not ready"),
    ("a@90 | b", "old", "DDrD", 100, "a@100 | b d", "a not ready"),
    // A cluster that is not affected, or does not answer, is not the canary; the latter waits.
    (" | ", "old", "rUDD", 100, "c@100 | b d", "c not ready"),
    // What concerns one cluster alone, or none, keeps no one, nor does what was to be changed before.
    (" | ", "old", "rDrr", 100, "b@100 | ", ""),
    ("a@1 | b", "old", "rDrr", 100, "b@100 | ", ""),
    ("a@1 | b", "old", "rrrU", 100, " | ", ""),
    // The canary: not done, not ready, not ready for long enough, ready.
    (
        "a@90 | b c d",
        "now",
        "DDDD",
        100,
        "a@90 | b c d",
        "a not ready",
    ),
    (
        "a@90 | b c d",
        "now",
        "nDDD",
        100,
        "a@90 | b c d",
        "a not ready",
    ),
    (
        "a@90 | b c d",
        "now",
        "UDDD",
        100,
        "a@90 | b c d",
        "a not ready",
    ),
    ("a@90 | b c d", "now", "rDDD", 130, "a@90 | b c d", "a 30s"),
    (
        "a@120 | b c d",
        "now",
        "rDDD",
        130,
        "a@120 | b c d",
        "a 50s",
    ),
    (
        "a@90 | b c d",
        "now",
        "rDDD",
        160,
        "a@90 b@160 c@160 | d",
        "b not ready",
    ),
    // The next waves are looked at once.
    (
        "a@90 b@160 c@160 | d",
        "now",
        "rrnD",
        170,
        "a@90 b@160 c@160 | d",
        "c not ready",
    ),
    (
        "a@90 b@160 c@160 | d",
        "now",
        "rrrD",
        170,
        "a@90 b@160 c@160 d@170 | ",
        "",
    ),
    // Nothing waits any more: what is not ready then keeps no one.
    (
        "a@90 b@160 c@160 d@170 | ",
        "now",
        "rrrn",
        180,
        "a@90 b@160 c@160 d@170 | ",
        "",
    ),
    // A canary that is gone leaves its place to the next one.
    ("z@90 | b c", "now", "rDD", 160, "b@160 | c", "b not ready"),
    // What waits without need waits no longer.
    ("a@90 | b c", "now", "nrD", 100, "a@90 | c", "a not ready"),
    // A cluster outside its windows keeps no one waiting, and has its turn later.
    (" | ", "old", "WDDD", 100, "b@100 | a c d", "b not ready"),
    (
        "b@90 | a",
        "now",
        "Wrrr",
        200,
        "b@90 | a",
        "a closed until 500",
    ),
    ("b@90 | a", "now", "Drrr", 600, "a@600 b@90 | ", ""),
    // A new cluster, and one whose records were edited, do not wait.
    ("a@90 | b", "now", "nDD", 100, "a@90 | b", "a not ready"),
];

#[test]
fn waves_follow_each_other_as_clusters_get_ready() {
    let one_then_two = rollout(1, "2");
    for (before, of, standings, second, after, gate) in TURNS {
        let stored = read(if of == "now" { "now" } else { "before" }, before);
        let (next, waits) = stored.advance("now", &clusters(standings), &one_then_two, at(second));
        let found = (words(&next), gate_words(waits.as_ref()));
        let shown = format!("{before} {of} {standings} {second}");
        assert_eq!(found, (after.to_owned(), gate.to_owned()), "{shown}");
        // Whoever looks again at once finds the same: a leader that starts again goes on from there.
        let (again, _) = next.advance("now", &clusters(standings), &one_then_two, at(second));
        assert_eq!(words(&again), words(&next), "{shown}");
    }
}

#[test]
fn what_keeps_no_one_is_not_stored() {
    for (stored, next, expected) in [
        (" | ", "b@100 | ", false),
        (" | ", "a@100 | b", true),
        ("a@100 | b", "a@100 | b", false),
        ("a@100 | b", "a@100 b@200 | ", true),
    ] {
        let found = read("now", next).needs_storing(&read("now", stored));
        assert_eq!(found, expected, "{stored} {next}");
    }
}

#[test]
fn every_cluster_has_its_turn() {
    let everything = "D".repeat(23);
    let mut standings = clusters(&everything);
    let mut progress = RolloutProgress::default();
    let mut sizes = Vec::new();
    for step in 1..100 {
        let now = at(step * 1000);
        let (next, gate) = progress.advance("now", &standings, &DEFAULT, now);
        let new = next.begun.len() - progress.begun.len();
        sizes.push(new);
        for namespace in next.begun.keys() {
            standings.insert(namespace.clone(), CoreSetStanding::Followed(Some(now)));
        }
        progress = next;
        if gate.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    assert!(progress.waiting.is_empty());
}

#[test]
fn a_cluster_that_never_gets_ready_gives_way_to_another_one() {
    let waves = rollout(1, "2");
    for (before, standings, second, after, gate) in [
        ("a@90 | b c", "nDD", 3689, "a@90 | b c", "a not ready"),
        // The next cluster is a canary as well.
        ("a@90 | b c", "nDD", 3690, "a@90 b@3690 | c", "b not ready"),
        ("a@90 b@3690 | c", "UrD", 3740, "a@90 b@3690 | c", "b 10s"),
        ("a@90 b@3690 | c", "nrD", 3750, "a@90 b@3690 c@3750 | ", ""),
        // With a second one, the change itself is to blame.
        (
            "a@90 b@3690 | c",
            "nnD",
            7290,
            "a@90 b@3690 | c",
            "a not ready",
        ),
    ] {
        let stored = read("now", before);
        let (next, waits) = stored.advance("now", &clusters(standings), &waves, at(second));
        let found = (words(&next), gate_words(waits.as_ref()));
        assert_eq!(
            found,
            (after.to_owned(), gate.to_owned()),
            "{before} {second}"
        );
    }
}

#[test]
fn a_change_begins_where_it_is_said_to() {
    let waves = CoreRollout {
        first: vec!["z".to_owned(), "c".to_owned()],
        ..rollout(1, "2")
    };
    let (next, _) = RolloutProgress::default().advance("now", &clusters("DDDD"), &waves, at(100));
    assert_eq!(words(&next), "c@100 | a b d");
}

#[test]
fn another_content_of_the_catalogues_is_another_change() {
    let of = |content: &[&str]| {
        let content = content.iter().map(|it| (*it).to_owned()).collect();
        identity(Some("[]"), Some("[]"), &content)
    };
    assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
    assert_ne!(of(&["a"]), of(&["b"]));
    assert_ne!(of(&["a"]), of(&[]));
}

#[test]
fn ready_is_what_runs_as_its_record_asks_for() {
    let set = CoreSet {
        addons: [("dns".to_owned(), Default::default())].into(),
        ..CoreSet::default()
    };
    let ready = |observed: i64, status: &str, is_core: bool| {
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "dns", "generation": 2},
            "spec": {"addonRef": {"name": "dns"}, "coreAddon": is_core},
            "status": {"observedGeneration": observed, "conditions": [{
                "type": "Ready", "status": status, "reason": "A", "message": "",
                "lastTransitionTime": "1970-01-01T00:01:40Z",
            }]},
        });
        let record: AddonInstallation = serde_json::from_value(record).unwrap();
        ready_since(&set, &[&record])
    };
    assert_eq!(ready(2, "True", true), Some(at(100)));
    assert_eq!(ready(1, "True", true), None);
    assert_eq!(ready(2, "False", true), None);
    assert_eq!(ready(1, "False", false), Some(Timestamp::MIN));
    assert_eq!(ready_since(&set, &[]), None);
}

/// The record of the canary says that it is ready, since long ago; its objects were not.
#[test]
fn a_cluster_whose_objects_were_not_ready_has_to_stay_ready_anew() {
    let rollout = rollout(1, "2");
    let mut stored = read("now", "a@90 | b c d");
    let (next, _) = stored.advance("now", &clusters("rDDD"), &rollout, at(160));
    assert!(
        next.begins_next_wave(&stored),
        "b is begun: {}",
        words(&next)
    );
    // It was looked at, and was not: that is noted, though not each time.
    for (second, noted) in [(160, 160), (170, 160), (190, 190)] {
        stored.restart_soak("a", at(second));
        assert_eq!(stored.unready["a"], at(noted), "{second}");
    }
    let unready = stored.advance("now", &clusters("nDDD"), &rollout, at(190));
    assert_eq!(gate_words(unready.1.as_ref()), "a not ready");
    assert!(!unready.0.begins_next_wave(&stored));
    let (next, gate) = stored.advance("now", &clusters("rDDD"), &rollout, at(200));
    assert_eq!(gate_words(gate.as_ref()), "a 50s");
    assert!(!next.begins_next_wave(&stored), "{}", words(&next));
    let (next, _) = stored.advance("now", &clusters("rDDD"), &rollout, at(250));
    assert!(next.begins_next_wave(&stored));
    // The first wave waits for none, and what was noted of another change is over.
    let (next, _) = stored.advance("other", &clusters("DDDD"), &rollout, at(260));
    assert!(!next.begins_next_wave(&stored) && next.unready.is_empty());
}
