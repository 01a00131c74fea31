use super::*;

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A Lease of this holder, renewed at this time by a clock that may be wrong.
fn held(holder: &str, renewed: i64, seconds: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(seconds),
        renew_time: Some(MicroTime(wall(renewed))),
        lease_transitions: Some(4),
        ..LeaseSpec::default()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn holder(step: &ElectionStep) -> Option<(&str, i32)> {
    match step {
        ElectionStep::Create(spec) | ElectionStep::Replace(spec) => {
            let holder = spec.holder_identity.as_deref().unwrap_or_default();
            Some((holder, spec.lease_transitions.unwrap_or_default()))
        }
        ElectionStep::Follow(_) | ElectionStep::Claim => None,
    }
}

#[test]
fn what_is_free_is_taken_and_what_is_held_is_not() {
    let now = Instant::now();
    for (found, expected) in [
        (None, Some(("me", 0))),
        (Some(held("", 0, 1)), Some(("me", 5))),
        (Some(held("me", 0, 15)), Some(("me", 4))),
        (Some(held("other", 0, 15)), None),
        (Some(LeaseSpec::default()), Some(("me", 1))),
    ] {
        let mut election = Election::new("me".to_owned());
        let step = election.decide(found.as_ref(), now, wall(100));
        assert_eq!(holder(&step), expected, "{found:?}");
        assert_eq!(election.leads_until(now), None, "nothing was written yet");
    }
}

/// Whatever times a Lease contains: it has expired when it was seen unchanged for as long as its holder asked for.
#[test]
fn a_lease_expires_by_what_was_seen_and_not_by_its_times() {
    for renewed in [0, 1_000_000, 4_000_000_000] {
        let (mut election, begun) = (Election::new("me".to_owned()), Instant::now());
        let mut found = held("other", renewed, 7);
        for (at, is_renewed, is_taken) in [
            (0, false, false),
            (6, false, false),
            // A renewal by a clock that moved by only one second is a change all the same.
            (7, true, false),
            (13, false, false),
            (14, false, true),
        ] {
            if is_renewed {
                found.renew_time = Some(MicroTime(wall(renewed + 1)));
            }
            let step = election.decide(Some(&found), begun + seconds(at), wall(5));
            assert_eq!(holder(&step).is_some(), is_taken, "{renewed} at {at}");
        }
    }
}

#[test]
fn a_leader_stops_before_others_may_replace_it() {
    let (mut election, sent) = (Election::new("me".to_owned()), Instant::now());
    let ElectionStep::Create(spec) = election.decide(None, sent, wall(0)) else {
        panic!("it is free");
    };
    election.record_write(spec.clone(), sent);
    assert!(election.leads_until(sent + DEADLINE - seconds(1)).is_some());
    assert_eq!(election.leads_until(sent + DEADLINE), None);
    assert!(DEADLINE + LONGEST_TRY < lease_duration(&spec), "too late");
}

#[test]
fn a_leader_that_sees_another_one_stops_at_once() {
    let (mut election, now) = (Election::new("me".to_owned()), Instant::now());
    election.record_write(held("me", 0, 15), now);
    assert!(election.leads_until(now).is_some());
    let step = election.decide(Some(&held("other", 0, 15)), now, wall(0));
    assert_eq!(step, ElectionStep::Follow(now + seconds(15)));
    assert_eq!(election.leads_until(now), None);
}

#[test]
fn the_beginning_of_a_term_stays() {
    let (mut election, now) = (Election::new("me".to_owned()), Instant::now());
    let mut found = held("me", 50, 15);
    found.acquire_time = Some(MicroTime(wall(10)));
    let ElectionStep::Replace(spec) = election.decide(Some(&found), now, wall(60)) else {
        panic!("it is ours");
    };
    assert_eq!(spec.acquire_time, Some(MicroTime(wall(10))));
    assert_eq!(spec.renew_time, Some(MicroTime(wall(60))));
}

/// Two candidates for one Lease, each with its own wall clock, for ten minutes in steps of a second. The leader dies now and then, or
/// loses single writes. Two never lead at the same time.
#[test]
fn two_never_lead_at_the_same_time() {
    let begun = Instant::now();
    let mut stored: Option<LeaseSpec> = None;
    let mut candidates = [
        (Election::new("a".to_owned()), -86_400, 0),
        (Election::new("b".to_owned()), 86_400, 0),
    ];
    let mut terms = [0, 0];
    for second in 0..600_u64 {
        let now = begun + seconds(second);
        for (index, (election, skew, dead_until)) in candidates.iter_mut().enumerate() {
            // The leader is cut off for half a minute, at various times.
            if second % 70 == 30 && election.leads_until(now).is_some() {
                *dead_until = second + 30;
            }
            if second < *dead_until || (second + index as u64).is_multiple_of(2) {
                continue;
            }
            let time = wall(i64::try_from(second).unwrap() + *skew + 1_000_000);
            match election.decide(stored.as_ref(), now, time) {
                ElectionStep::Follow(_) | ElectionStep::Claim => {}
                ElectionStep::Create(spec) | ElectionStep::Replace(spec) => {
                    stored = Some(spec.clone());
                    // The responses to some writes are lost.
                    if second % 11 != 0 {
                        election.record_write(spec, now);
                    }
                }
            }
        }
        let leads: Vec<bool> = candidates
            .iter()
            .map(|(election, _, _)| election.leads_until(now).is_some())
            .collect();
        assert!(leads != [true, true], "both lead at {second}");
        for (term, leads) in terms.iter_mut().zip(leads) {
            *term += i32::from(leads);
        }
    }
    assert!(terms.iter().all(|term| *term > 60), "{terms:?}");
}

fn whole(digest: &str) -> LeaderRevision {
    LeaderRevision::Whole(digest.to_owned())
}

/// Revisions as the candidates of a Lease had them, in this order.
fn seen(digests: &[&str]) -> LeaderRevisions {
    let seen = LeaderRevisions::default();
    digests
        .iter()
        .fold(seen, |seen, digest| seen.with_newest(&whole(digest)))
}

/// Semantics 21: what a candidate does after `after` seconds, with its revision and those that were seen.
#[test]
fn the_newest_revision_leads_and_an_older_one_waits_its_turn() {
    let (taken, claimed, followed) = ("taken", "claimed", "followed");
    for (own, before, holder, after, expected) in [
        // Another candidate holds the Lease: a candidate with a revision that it never saw announces that.
        (whole("b"), seen(&["a"]), "other", 0, claimed),
        (whole("b"), seen(&["a", "b"]), "other", 14, followed),
        (whole("b"), seen(&["a", "b"]), "other", 15, taken),
        (whole("a"), seen(&["a", "b"]), "other", 29, followed),
        (whole("a"), seen(&["a", "b"]), "other", 30, taken),
        // The candidate itself holds the Lease: it renews it only with the newest revision.
        (whole("b"), seen(&["a", "b"]), "me", 0, taken),
        (whole("c"), seen(&["a", "b"]), "me", 0, taken),
        (whole("a"), seen(&["a", "b"]), "me", 14, followed),
        // The Lease is free: candidates with older revisions leave it to newer ones for a while.
        (whole("c"), seen(&["a", "b"]), "", 0, taken),
        (whole("b"), seen(&["a", "b"]), "", 0, taken),
        (whole("a"), seen(&["a", "b"]), "", 14, followed),
        (whole("a"), seen(&["a", "b"]), "", 15, taken),
        (whole("a"), seen(&["a", "b", "c"]), "", 29, followed),
        (whole("a"), seen(&["a", "b", "c"]), "", 30, taken),
        (LeaderRevision::Partial, seen(&[]), "", 0, taken),
        (LeaderRevision::Partial, seen(&["a"]), "", 14, followed),
        (LeaderRevision::Partial, seen(&["a"]), "", 15, taken),
        (LeaderRevision::Missing, seen(&["a"]), "", 900, followed),
        (LeaderRevision::Missing, seen(&["a"]), "me", 900, followed),
        (LeaderRevision::Same, seen(&["a"]), "", 0, taken),
    ] {
        let (mut election, begun) = (Election::new("me".to_owned()), Instant::now());
        let found = held(holder, 0, 15);
        let mut said = "";
        for at in [0, after] {
            election.set_revisions(own.clone(), before.clone());
            said = match election.decide(Some(&found), begun + seconds(at), wall(0)) {
                ElectionStep::Create(_) | ElectionStep::Replace(_) => taken,
                ElectionStep::Claim => claimed,
                ElectionStep::Follow(_) => followed,
            };
        }
        assert_eq!(said, expected, "{own:?} {before:?} {holder:?} {after}");
    }
}

#[test]
fn who_has_nothing_to_lead_with_creates_no_lease() {
    let (mut election, now) = (Election::new("me".to_owned()), Instant::now());
    election.set_revisions(LeaderRevision::Missing, LeaderRevisions::default());
    let step = election.decide(None, now, wall(0));
    assert_eq!(step, ElectionStep::Follow(now + RETRY));
}

/// A leader leads with the revision that was confirmed, not with the one that it has since.
#[test]
fn a_leader_whose_revision_was_replaced_stops() {
    let (mut election, now) = (Election::new("me".to_owned()), Instant::now());
    election.set_revisions(whole("a"), seen(&[]));
    election.record_write(held("me", 0, 15), now);
    election.set_revisions(whole("b"), seen(&["a"]));
    assert_eq!(
        election.term(now).map(|term| &term.revision),
        Some(&whole("a"))
    );
    election.set_revisions(whole("a"), seen(&["a", "b"]));
    let step = election.decide(Some(&held("me", 0, 15)), now, wall(0));
    assert_eq!(
        step,
        ElectionStep::Follow(now + seconds(15) + revision::PATIENCE_PER_REVISION)
    );
    assert_eq!(election.leads_until(now), None);
}

#[test]
fn the_order_of_revisions_is_kept_in_the_lease() {
    let mut lease = Lease::default();
    seen(&[]).write_to(&mut lease);
    assert_eq!(lease, Lease::default());
    let many: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    seen(&many).write_to(&mut lease);
    let read = LeaderRevisions::from_lease(&lease);
    assert_eq!(read, seen(&many[2..]));
    assert!(read.is_new(&whole("1")) && !read.is_new(&whole("2")));
    let again = read.with_newest(&whole("5"));
    assert_eq!(again.patience(&whole("5")), Some(seconds(0)));
    assert_eq!(
        again.patience(&whole("11")),
        Some(revision::PATIENCE_PER_REVISION)
    );
    assert!(!again.is_new(&LeaderRevision::Partial));
}

#[test]
fn a_lease_that_was_not_given_back_says_so() {
    let mut lease = Lease::default();
    let held_by = |holder: &str| LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        ..LeaseSpec::default()
    };
    for (before, noted) in [
        (None, None),
        (Some(held_by("dead")), Some("dead")),
        (Some(held_by("")), None),
    ] {
        note_holder(&mut lease, before.as_ref());
        let annotations = lease.metadata.annotations.as_ref().unwrap();
        let found = annotations.get(ANNOTATION_TAKEN_FROM).map(String::as_str);
        assert_eq!(found, noted);
    }
}
