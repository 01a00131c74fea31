//! The Secret, as other clients may change it.

use std::time::Duration;

use super::*;

const LIFETIMES: Lifetimes = Lifetimes {
    leaf: Duration::from_secs(30),
    authority: Duration::from_secs(90),
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn first() -> SharedAuthorities {
    SharedAuthorities::default()
        .advance(RotationStep::First, at(0), &LIFETIMES)
        .unwrap()
}

/// A summary of a Secret.
fn summary(shared: &SharedAuthorities) -> (bool, bool, usize, bool) {
    (
        shared.current.is_some(),
        shared.next.is_some(),
        shared.previous.len(),
        shared.is_incomplete,
    )
}

#[test]
fn a_rotation_survives_the_way_through_the_secret() {
    let first = first();
    let old = first.certificates().next().unwrap().to_owned();
    let prepared = first
        .advance(RotationStep::Prepare, at(60), &LIFETIMES)
        .unwrap();
    let new = prepared.certificates().nth(1).unwrap().to_owned();
    let read = SharedAuthorities::read(&prepared.write(&SecretData::new()), at(61));
    assert_eq!(summary(&read), (true, true, 0, false));
    assert_eq!(read.bundle(), prepared.bundle());
    assert_eq!(
        read.current.as_ref().unwrap().life(),
        prepared.current.as_ref().unwrap().life()
    );

    let promoted = read
        .advance(RotationStep::Promote, at(62), &LIFETIMES)
        .unwrap();
    let before = prepared.write(&SecretData::new());
    let data = promoted.write(&before);
    // The key of the old authority is deleted with it.
    let keys: Vec<_> = data.keys().map(String::as_str).collect();
    let until = format!("previous-{}.crt", at(90).as_second());
    assert_eq!(keys, ["ca.crt", "ca.key", &until]);
    let read = SharedAuthorities::read(&data, at(63));
    assert_eq!(read.certificates().collect::<Vec<_>>(), [&new, &old]);
    assert_eq!(summary(&read), (true, false, 1, false));
    let tidy = read
        .advance(RotationStep::Tidy, at(90), &LIFETIMES)
        .unwrap();
    assert_eq!(tidy.certificates().collect::<Vec<_>>(), [&new]);
}

/// An edit of a key of the Secret.
#[derive(Clone, Copy)]
enum Edit {
    Gone,
    Text(&'static str),
    Bytes(&'static [u8]),
    /// The value of another Secret.
    Other(&'static str),
    /// The value, followed by that of another Secret.
    Both,
    /// A certificate that is not an authority, or its key.
    LeafCertificate,
    LeafKey,
}

/// Case; edited keys; now; summary.
type Row<'a> = (
    &'a str,
    &'a [(&'a str, Edit)],
    i64,
    (bool, bool, usize, bool),
);

const EDITED: &[Row<'_>] = &[
    ("as written", &[], 1, (true, false, 0, false)),
    (
        "empty",
        &[("ca.crt", Edit::Gone), ("ca.key", Edit::Gone)],
        1,
        (false, false, 0, false),
    ),
    (
        "half written",
        &[("ca.key", Edit::Gone)],
        1,
        (false, false, 1, true),
    ),
    (
        "the other half",
        &[("ca.crt", Edit::Gone)],
        1,
        (false, false, 0, false),
    ),
    (
        "key of another one",
        &[("ca.key", Edit::Other("ca.key"))],
        1,
        (false, false, 1, true),
    ),
    (
        "junk",
        &[("ca.crt", Edit::Text("junk"))],
        1,
        (false, false, 0, false),
    ),
    (
        "junk as key",
        &[("ca.key", Edit::Text("junk"))],
        1,
        (false, false, 1, true),
    ),
    (
        "not UTF-8",
        &[("ca.crt", Edit::Bytes(b"\xff"))],
        1,
        (false, false, 0, false),
    ),
    (
        "two certificates",
        &[("ca.crt", Edit::Both)],
        1,
        (false, false, 0, false),
    ),
    (
        "not an authority",
        &[("ca.crt", Edit::LeafCertificate), ("ca.key", Edit::LeafKey)],
        1,
        (false, false, 0, false),
    ),
    ("expired", &[], 90, (false, false, 1, true)),
    ("not valid yet", &[], -9_999, (true, false, 0, false)),
    (
        "foreign keys",
        &[
            ("tls.crt", Edit::Text("x")),
            ("previous-x.crt", Edit::Text("x")),
        ],
        1,
        (true, false, 0, false),
    ),
    (
        "junk as a previous one",
        &[("previous-1900000000.crt", Edit::Text("x"))],
        1,
        (true, false, 0, false),
    ),
    (
        "half a next one",
        &[("next.crt", Edit::Other("ca.crt"))],
        1,
        (true, false, 1, true),
    ),
];

#[test]
fn what_cannot_be_used_counts_as_missing_and_stays_announced() {
    let good = first().write(&SecretData::new());
    let other = first().write(&SecretData::new());
    let leaf = first().current.unwrap();
    let leaf = leaf.issue(&["a"], at(0), LIFETIMES.leaf).unwrap();
    for &(what, edits, now, expected) in EDITED {
        let mut data = good.clone();
        for &(key, edit) in edits {
            let value = match edit {
                Edit::Gone => Vec::new(),
                Edit::Text(text) => text.as_bytes().to_vec(),
                Edit::Bytes(bytes) => bytes.to_vec(),
                Edit::Other(key) => other[key].to_vec(),
                Edit::Both => [good[key].as_slice(), other[key].as_slice()].concat(),
                Edit::LeafCertificate => leaf.certificate_pem.as_bytes().to_vec(),
                Edit::LeafKey => leaf.key_pem.as_bytes().to_vec(),
            };
            match edit {
                Edit::Gone => data.remove(key),
                _ => data.insert(key.to_owned(), Zeroizing::new(value)),
            };
        }
        let shared = SharedAuthorities::read(&data, at(now));
        assert_eq!(summary(&shared), expected, "{what}");
        // One write repairs it.
        let due = crate::rotation::next_step(&shared, false, at(now));
        let mended = shared.advance(due, at(now), &LIFETIMES).unwrap();
        let read = SharedAuthorities::read(&mended.write(&data), at(now));
        assert!(read.current.is_some() && !read.is_incomplete, "{what}");
        let due = crate::rotation::next_step(&read, false, at(now));
        assert_eq!(due, RotationStep::Nothing, "{what}");
    }
}

#[test]
fn keys_of_others_stay_and_ours_go() {
    let mut before = SecretData::new();
    for key in ["tls.crt", "previous-1.crt", "next.key"] {
        before.insert(key.to_owned(), Zeroizing::new(b"x".to_vec()));
    }
    let after = first().write(&before);
    let keys: Vec<_> = after.keys().map(String::as_str).collect();
    assert_eq!(keys, ["ca.crt", "ca.key", "tls.crt"]);
}

#[test]
fn previous_ones_that_end_together_are_all_kept() {
    let mut shared = first();
    for _ in 0..3 {
        let other = Authority::new("other", at(0), LIFETIMES.authority).unwrap();
        shared.keep_announcing(other.certificate_pem(), at(50));
    }
    assert!(shared.is_incomplete);
    let read = SharedAuthorities::read(&shared.write(&SecretData::new()), at(1));
    assert_eq!(read.previous.len(), 3);
    assert_eq!(
        read.certificates().collect::<BTreeSet<_>>(),
        shared.certificates().collect()
    );
    let known = read.bundle();
    let mut again = read;
    again.keep_announcing(&shared.previous.first().unwrap().certificate_pem, at(50));
    assert_eq!((again.bundle(), again.is_incomplete), (known, false));
}

#[test]
fn nothing_that_is_printed_holds_a_key() {
    let shared = first();
    assert!(!format!("{shared:?}").contains("KEY"));
}
