use super::*;

fn typed(text: &str) -> Typed {
    Typed::on_command_line(text)
}

fn opened(places: &[&str]) -> Arc<OpenedPlaces> {
    let typed: Vec<Typed> = places.iter().map(|place| typed(place)).collect();
    Arc::new(OpenedPlaces::new(&typed, &[], |_| ()))
}

/// Rows: author, index that names the source, whether ssh to h, the registry h and the bucket b are open.
#[test]
fn only_typed_locations_open_accounts() {
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
        let reach = Reach::for_index(&author, location, opened);
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
    let reach = Reach::for_author(&Author::Record, &port);
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
    let nothing: Arc<OpenedPlaces> = Arc::default();
    let all = opened(&[&folder.path().to_string_lossy()]);
    let reaches = [
        (
            "typed",
            Reach::for_index(&author, &location, &nothing),
            [true, false],
        ),
        (
            "typed and open",
            Reach::for_index(&author, &location, &all),
            [true, true],
        ),
        (
            "record",
            Reach::for_index(&Author::Record, &location, &nothing),
            [false, false],
        ),
        (
            "record and open",
            Reach::for_author(&Author::Record, &all),
            [true, true],
        ),
        (
            "server",
            Reach::for_index(&Author::Typed(typed("https://h/i")), "https://h/i", &all),
            [false, false],
        ),
        (
            "tenant",
            Reach::for_author(&Author::Tenant, &all),
            [false, false],
        ),
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
    let itself = Reach::for_author(&author, &nothing);
    assert!(itself.file(&at("own/link.yaml")).is_some());
}

#[test]
fn each_use_is_reported_once() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let tell = move |used: &UsedAccount| heard.lock().unwrap().push(used.to_string());
    let opened = Arc::new(OpenedPlaces::new(&[typed("ssh://h")], &[], tell));
    let reach = Reach::for_author(&Author::Record, &opened);
    assert!(reach.opens_ssh(Some("git"), "h", None) && reach.opens_ssh(Some("git"), "h", None));
    assert!(!reach.opens_ssh(None, "other", None));
    assert_eq!(*told.lock().unwrap(), ["uses your ssh key for git@h"]);
}

#[test]
fn places_are_folders_hosts_and_buckets() {
    for (text, expected) in [
        ("/", Some(OwnPlace::Folder("/".into()))),
        ("file:///", Some(OwnPlace::Folder("/".into()))),
        ("ssh://git@h:2222", Some(OwnPlace::Ssh("h:2222".to_owned()))),
        (
            "oci://h:5000/charts",
            Some(OwnPlace::Registry("h:5000".to_owned())),
        ),
        ("azure://c", Some(OwnPlace::Bucket("az://c".to_owned()))),
        ("https://h/i.yaml", None),
    ] {
        assert_eq!(OwnPlace::parse(text), Ok(expected), "{text}");
    }
    for text in ["", "git.example.org", "ftp://h", "ssh://%24%28id%29"] {
        assert!(OwnPlace::parse(text).is_err(), "{text}");
    }
}
