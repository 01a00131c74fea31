use super::*;

fn typed(text: &str) -> Typed {
    Typed::on_command_line(text)
}

fn opened(places: &[&str]) -> Arc<Opened> {
    let typed: Vec<Typed> = places.iter().map(|place| typed(place)).collect();
    Arc::new(Opened::new(&typed, &[], |_| ()))
}

/// (who names it, the index that names it, whether ssh to h, the registry h and the bucket b are open).
#[test]
fn only_what_was_typed_opens_accounts() {
    let nothing = Arc::default();
    let all = opened(&["ssh://h", "oci://h", "s3://b"]);
    let of = |text: &str| Author::Typed(typed(text));
    for (author, location, opened, ssh, registry, bucket) in [
        (
            of("oci://h/c:1"),
            "oci://h/c:1",
            &nothing,
            false,
            true,
            false,
        ),
        (
            of("s3://b/i.yaml"),
            "s3://b/i.yaml",
            &nothing,
            false,
            false,
            true,
        ),
        (
            of("https://h/i.yaml"),
            "https://h/i.yaml",
            &nothing,
            false,
            false,
            false,
        ),
        (
            of("https://h/i.yaml"),
            "https://h/i.yaml",
            &all,
            true,
            true,
            true,
        ),
        (
            of("/srv/i.yaml"),
            "file:///srv/i.yaml",
            &nothing,
            false,
            false,
            false,
        ),
        (
            of("/srv/i.yaml"),
            "file:///srv/i.yaml",
            &all,
            true,
            true,
            true,
        ),
        (Author::Record, "oci://h/c:1", &nothing, false, false, false),
        (
            Author::Record,
            "s3://b/i.yaml",
            &nothing,
            false,
            false,
            false,
        ),
        (Author::Record, "s3://b/i.yaml", &all, true, true, true),
        (Author::Tenant, "s3://b/i.yaml", &all, false, false, false),
        (Author::Unknown, "s3://b/i.yaml", &all, false, false, false),
    ] {
        let reach = Reach::beside(&author, location, opened);
        let found = (
            reach.opens_ssh(Some("git"), "h", None),
            reach.opens_registry("h"),
            reach.opens_bucket("s3://b"),
        );
        assert_eq!(found, (ssh, registry, bucket), "{author:?} {opened:?}");
        assert!(!reach.opens_ssh(None, "other", None) && !reach.opens_registry("other"));
        assert_ne!(reach.addresses(), Addresses::Any, "{author:?}");
    }
    assert!(!Reach::cluster().opens_registry("h"));
    let port = opened(&["ssh://h:2222"]);
    let reach = Reach::of(&Author::Record, &port);
    assert!(reach.opens_ssh(None, "h", Some(2222)) && !reach.opens_ssh(None, "h", None));
}

#[cfg(unix)]
#[test]
fn files_are_named_by_files_above_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("own/sub")).unwrap();
    fs::create_dir(at("other")).unwrap();
    for path in ["own/i.yaml", "own/sub/a.yaml", "other/secret.yaml"] {
        fs::write(at(path), "").unwrap();
    }
    std::os::unix::fs::symlink(at("other/secret.yaml"), at("own/link.yaml")).unwrap();
    let index = at("own/i.yaml").to_string_lossy().into_owned();
    let location = format!("file://{index}");
    let author = Author::Typed(typed(&index));
    let nothing: Arc<Opened> = Arc::default();
    let all = opened(&[&folder.path().to_string_lossy()]);
    let reaches = [
        (
            "typed",
            Reach::beside(&author, &location, &nothing),
            [true, false],
        ),
        (
            "typed and open",
            Reach::beside(&author, &location, &all),
            [true, true],
        ),
        (
            "record",
            Reach::beside(&Author::Record, &location, &nothing),
            [false, false],
        ),
        (
            "record and open",
            Reach::of(&Author::Record, &all),
            [true, true],
        ),
        (
            "server",
            Reach::beside(&Author::Typed(typed("https://h/i")), "https://h/i", &all),
            [false, false],
        ),
        ("tenant", Reach::of(&Author::Tenant, &all), [false, false]),
        ("cluster", Reach::cluster(), [false, false]),
    ];
    for (who, reach, [own, other]) in reaches {
        for (path, expected) in [
            ("own/sub/a.yaml", own),
            ("own/missing.yaml", own),
            ("own/sub", own),
            ("own/link.yaml", other),
            ("own/../other/secret.yaml", other),
            ("other/secret.yaml", other),
            ("other", other),
        ] {
            let found = reach.file(&at(path)).is_some();
            assert_eq!(found, expected, "{who}: {path}");
        }
    }
    let itself = Reach::of(&author, &nothing);
    assert!(itself.file(&at("own/link.yaml")).is_some());
}

#[test]
fn each_use_is_told_once() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let tell = move |used: &Used| heard.lock().unwrap().push(used.to_string());
    let opened = Arc::new(Opened::new(&[typed("ssh://h")], &[], tell));
    let reach = Reach::of(&Author::Record, &opened);
    assert!(reach.opens_ssh(Some("git"), "h", None) && reach.opens_ssh(Some("git"), "h", None));
    assert!(!reach.opens_ssh(None, "other", None));
    assert_eq!(*told.lock().unwrap(), ["uses your ssh key for git@h"]);
}

#[test]
fn places_are_folders_hosts_and_buckets() {
    for (text, expected) in [
        ("/", Some(Place::Folder("/".into()))),
        ("file:///", Some(Place::Folder("/".into()))),
        ("ssh://git@h:2222", Some(Place::Ssh("h:2222".to_owned()))),
        (
            "oci://h:5000/charts",
            Some(Place::Registry("h:5000".to_owned())),
        ),
        ("azure://c", Some(Place::Bucket("az://c".to_owned()))),
        ("https://h/i.yaml", None),
    ] {
        assert_eq!(Place::parse(text), Ok(expected), "{text}");
    }
    for text in ["", "git.example.org", "ftp://h", "ssh://%24%28id%29"] {
        assert!(Place::parse(text).is_err(), "{text}");
    }
}
