//! Which step is due. Times are in seconds.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::authority::Authority;
use crate::shared::{PreviousAuthority, SecretData};

const LIFE: u64 = 90;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// An authority that was issued at this second.
fn authority(second: i64) -> Authority {
    Authority::new("test", at(second), Duration::from_secs(LIFE)).unwrap()
}

fn previous(until: i64) -> BTreeSet<PreviousAuthority> {
    let certificate_pem = authority(0).certificate_pem().to_owned();
    let until = at(until);
    [PreviousAuthority {
        until,
        certificate_pem,
    }]
    .into()
}

/// Case; seconds at which the current and the next authority were issued; end of a previous one; settled; now; due.
type Row<'a> = (
    &'a str,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    bool,
    i64,
    RotationStep,
);

const AUTHORITIES: &[Row<'_>] = &[
    (
        "nothing is there",
        None,
        None,
        None,
        false,
        0,
        RotationStep::First,
    ),
    (
        "only a previous one",
        None,
        None,
        Some(50),
        false,
        0,
        RotationStep::First,
    ),
    ("new", Some(0), None, None, false, 0, RotationStep::Nothing),
    (
        "before 2/3",
        Some(0),
        None,
        None,
        true,
        59,
        RotationStep::Nothing,
    ),
    (
        "2/3 have passed",
        Some(0),
        None,
        None,
        true,
        60,
        RotationStep::Prepare,
    ),
    (
        "expired, but still listed",
        Some(0),
        None,
        None,
        true,
        99,
        RotationStep::Prepare,
    ),
    (
        "the clock jumped back",
        Some(0),
        None,
        None,
        true,
        -9_999,
        RotationStep::Nothing,
    ),
    (
        "not announced",
        Some(0),
        Some(60),
        None,
        false,
        61,
        RotationStep::Nothing,
    ),
    (
        "not announced, and late",
        Some(0),
        Some(60),
        None,
        false,
        89,
        RotationStep::Nothing,
    ),
    (
        "announced",
        Some(0),
        Some(60),
        None,
        true,
        61,
        RotationStep::Promote,
    ),
    (
        "announced, the clock jumped back",
        Some(0),
        Some(60),
        None,
        true,
        5,
        RotationStep::Promote,
    ),
    (
        "current was lost",
        None,
        Some(60),
        None,
        false,
        61,
        RotationStep::Promote,
    ),
    (
        "overlap",
        Some(60),
        None,
        Some(70),
        true,
        69,
        RotationStep::Nothing,
    ),
    (
        "the overlap is over",
        Some(60),
        None,
        Some(70),
        true,
        70,
        RotationStep::Tidy,
    ),
    (
        "the overlap is over, but more is due",
        Some(0),
        None,
        Some(70),
        true,
        70,
        RotationStep::Prepare,
    ),
];

#[test]
fn an_authority_is_exchanged_with_an_overlap() {
    for &(what, current, next, until, is_settled, now, expected) in AUTHORITIES {
        let shared = SharedAuthorities {
            current: current.map(authority),
            next: next.map(authority),
            previous: until.map(previous).unwrap_or_default(),
            is_incomplete: false,
        };
        assert_eq!(next_step(&shared, is_settled, at(now)), expected, "{what}");
    }
}

#[test]
fn what_the_secret_has_lost_is_recorded_again() {
    let shared = |is_incomplete| SharedAuthorities {
        current: Some(authority(0)),
        is_incomplete,
        ..SharedAuthorities::default()
    };
    assert_eq!(
        next_step(&shared(false), false, at(1)),
        RotationStep::Nothing
    );
    assert_eq!(next_step(&shared(true), false, at(1)), RotationStep::Tidy);
}

/// Case; the leaf, whether the authority that signs now has signed it and whether it is trusted; whether the one that signs now is
/// carried, and settled; now; due.
type LeafRow<'a> = (&'a str, Option<(bool, bool)>, bool, bool, i64, bool);

const LEAVES: &[LeafRow<'_>] = &[
    ("none", None, false, false, 0, true),
    ("new", Some((true, true)), true, true, 0, false),
    ("before 2/3", Some((true, true)), true, true, 19, false),
    ("2/3 have passed", Some((true, true)), true, true, 20, true),
    (
        "2/3, the caBundle is wiped",
        Some((true, false)),
        false,
        false,
        20,
        true,
    ),
    (
        "the clock jumped back",
        Some((true, true)),
        true,
        true,
        -9_999,
        false,
    ),
    (
        "another authority, unknown",
        Some((false, true)),
        false,
        false,
        25,
        false,
    ),
    (
        "another authority, just announced",
        Some((false, true)),
        true,
        false,
        25,
        false,
    ),
    (
        "another authority, settled",
        Some((false, true)),
        true,
        true,
        5,
        true,
    ),
    (
        "the old one is not trusted",
        Some((false, false)),
        true,
        false,
        5,
        true,
    ),
    (
        "neither is trusted",
        Some((false, false)),
        false,
        false,
        5,
        false,
    ),
    ("expired", Some((false, true)), false, false, 30, true),
];

#[test]
fn a_certificate_is_signed_again_in_time_and_only_by_who_is_trusted() {
    let life = CertificateLife {
        begin: at(0),
        end: at(30),
    };
    for &(what, leaf, is_carried, is_settled, now, expected) in LEAVES {
        let leaf = leaf.map(|(is_current, is_trusted)| LeafState {
            life,
            is_current,
            is_trusted,
        });
        assert_eq!(
            needs_new_leaf(leaf, is_carried, is_settled, at(now)),
            expected,
            "{what}"
        );
    }
}

/// Whether this authority is announced for nine seconds.
fn settled(carried_since: &BTreeMap<String, i64>, pem: &str, second: i64) -> bool {
    let since = carried_since.get(pem);
    since.is_some_and(|since| second - since >= 9)
}

/// Replicas of different speed, in any order, over many lifetimes of the authority: at every moment, each authority that may have signed
/// a served certificate is announced.
#[test]
fn over_many_rotations_whatever_is_served_is_announced() {
    let lifetimes = Lifetimes {
        leaf: Duration::from_secs(10),
        authority: Duration::from_secs(LIFE),
    };
    let mut data = SecretData::new();
    let mut served: [Option<(CertificateLife, String)>; 3] = [None, None, None];
    let mut carried_since = BTreeMap::<String, i64>::new();
    let mut rotations = BTreeSet::new();
    for second in 0..20 * LIFE as i64 {
        let now = at(second);
        // Every replica checks at least every five seconds, the second and the third more often.
        let replica = [0, 1, 2, 1, 2][usize::try_from(second % 5).unwrap()];
        let shared = SharedAuthorities::read(&data, now);
        let is_next_settled = shared
            .next
            .as_ref()
            .is_some_and(|next| settled(&carried_since, next.certificate_pem(), second));
        let due = next_step(&shared, is_next_settled, now);
        let shared = shared.advance(due, now, &lifetimes).unwrap();
        data = shared.write(&data);
        carried_since = shared
            .certificates()
            .map(|pem| {
                let since = carried_since.get(pem).copied().unwrap_or(second);
                (pem.to_owned(), since)
            })
            .collect();
        let current = shared.current.as_ref().unwrap();
        let pem = current.certificate_pem();
        rotations.insert(pem.to_owned());
        let leaf = served[replica].as_ref().map(|(life, signer)| LeafState {
            life: *life,
            is_current: signer == pem,
            is_trusted: carried_since.contains_key(signer),
        });
        if needs_new_leaf(leaf, true, settled(&carried_since, pem, second), now) {
            let life = CertificateLife {
                begin: now,
                end: now
                    .checked_add(lifetimes.leaf)
                    .unwrap()
                    .min(current.life().end),
            };
            served[replica] = Some((life, pem.to_owned()));
        }
        for (life, signer) in served.iter().flatten() {
            assert!(!life.is_expired(now), "second {second}: expired");
            assert!(
                carried_since.contains_key(signer),
                "second {second}: unknown"
            );
        }
    }
    assert!(rotations.len() > 20, "only {} authorities", rotations.len());
}

/// An API server judges by its own clock, which may be behind that of the webhook.
#[test]
fn a_certificate_is_valid_for_servers_whose_clocks_are_behind() {
    use crate::serving::{CertificateMaterial, verify};
    let name = "addons-webhook.kubectl-addons.svc".to_owned();
    let life = Duration::from_hours(48);
    let authority = Authority::new("test", at(0), life).unwrap();
    let issued = authority.issue(&[&name], at(0), life).unwrap();
    let material = CertificateMaterial {
        chain_pem: issued.certificate_pem.as_bytes(),
        key_pem: issued.key_pem.as_bytes(),
        authority_pem: Some(authority.certificate_pem().as_bytes()),
    };
    for (hours, is_valid) in [(0, true), (-1, true), (-23, true), (-25, false)] {
        let second = u64::try_from(at(hours * 3600).as_second()).unwrap();
        let now = rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_secs(second));
        let verified = verify(&material, std::slice::from_ref(&name), now);
        assert_eq!(verified.is_ok(), is_valid, "{hours} h");
    }
    // Its lifetime begins when it is issued all the same.
    assert_eq!(issued.life.begin, at(0));
}
