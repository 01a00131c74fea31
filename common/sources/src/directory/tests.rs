use std::os::unix::fs::symlink;

use super::*;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        symlink(to, self.0.path().join(path)).unwrap();
    }

    fn stamps(&self) -> Stamps {
        read_stamps(self.0.path()).unwrap()
    }

    fn read(&self, before: &Stamps) -> DirectoryReading {
        read(self.0.path(), before).unwrap()
    }
}

/// Each file as `PATH: TEXT`, or `PATH! WHY`.
fn lines(reading: &DirectoryReading) -> Vec<String> {
    let files = reading.files.iter();
    files
        .map(|file| match &file.content {
            Ok(bytes) => format!("{}: {}", file.path, String::from_utf8_lossy(bytes)),
            Err(why) => format!("{}! {why}", file.path),
        })
        .collect()
}

#[test]
fn manifests_are_found_and_hidden_files_are_not() {
    let place = Place::new();
    for path in [
        "a.yaml",
        "b/c.yml",
        "b/d/e.json",
        "README.md",
        "a.yaml.swp",
        ".hidden.yaml",
        ".git/x.yaml",
    ] {
        place.write(path, "1");
    }
    let reading = place.read(&place.stamps());
    assert_eq!(
        lines(&reading),
        ["a.yaml: 1", "b/c.yml: 1", "b/d/e.json: 1"]
    );
    assert!(reading.is_whole());
}

/// In a ConfigMap volume, the files are links into a hidden folder that is replaced as a whole.
#[test]
fn links_inside_the_tree_are_followed() {
    let place = Place::new();
    place.write("..2026_01/dns.yaml", "1");
    place.write("..2026_01/web/a.yaml", "1");
    place.link("..data", "..2026_01");
    place.link("dns.yaml", "..data/dns.yaml");
    place.link("web", "..data/web");
    let before = place.stamps();
    assert_eq!(
        lines(&place.read(&before)),
        ["dns.yaml: 1", "web/a.yaml: 1"]
    );
    place.write("..2026_02/dns.yaml", "2");
    place.write("..2026_02/web/a.yaml", "1");
    fs::remove_file(place.0.path().join("..data")).unwrap();
    place.link("..data", "..2026_02");
    let reading = place.read(&before);
    assert!(!reading.is_whole(), "other inodes");
    assert_eq!(lines(&reading), ["dns.yaml: 2", "web/a.yaml: 1"]);
    assert!(place.read(&reading.stamps).is_whole());
}

#[test]
fn unreadable_files_are_listed() {
    let place = Place::new();
    place.write("good.yaml", "1");
    place.link("out.yaml", "/etc/hostname");
    place.link("dangling.yaml", "missing.yaml");
    place.link("circle", ".");
    place.write("folder/x.yaml", "1");
    place.link("folder/up", "..");
    let made = std::process::Command::new("mkfifo")
        .arg(place.0.path().join("pipe.yaml"))
        .status();
    assert!(made.unwrap().success());
    let reading = place.read(&place.stamps());
    let said = lines(&reading);
    let found: Vec<&str> = said
        .iter()
        .map(|line| line.split(['!', ':']).next().unwrap())
        .collect();
    assert_eq!(
        found,
        [
            "circle",
            "dangling.yaml",
            "folder/up",
            "folder/x.yaml",
            "good.yaml",
            "out.yaml",
            "pipe.yaml"
        ]
    );
    assert!(said[0].contains("leads in a circle"), "{said:?}");
    assert!(said[5].contains("leads out of the directory"), "{said:?}");
    assert!(said[6].contains("neither a file nor a folder"), "{said:?}");
    assert!(reading.is_whole());
}

/// Compares two readings with files that are new, removed, longer, or replaced by a rename.
#[test]
fn changing_files_are_marked() {
    let place = Place::new();
    for name in ["gone.yaml", "longer.yaml", "renamed.yaml", "same.yaml"] {
        place.write(name, "1");
    }
    let before = place.stamps();
    fs::remove_file(place.0.path().join("gone.yaml")).unwrap();
    place.write("longer.yaml", "12");
    place.write("new.yaml", "1");
    place.write(".new", "1");
    fs::rename(
        place.0.path().join(".new"),
        place.0.path().join("renamed.yaml"),
    )
    .unwrap();
    let reading = place.read(&before);
    let changing = reading.files.iter().filter(|file| file.is_changing);
    let changing: Vec<&str> = changing.map(|file| file.path.as_str()).collect();
    assert_eq!(
        changing,
        ["gone.yaml", "longer.yaml", "new.yaml", "renamed.yaml"]
    );
    let again = place.read(&reading.stamps);
    assert!(again.is_whole());
    assert_eq!(
        again.files.len(),
        4,
        "what is gone is gone at the second reading"
    );
}

#[test]
fn a_directory_that_cannot_be_read_is_an_error() {
    let place = Place::new();
    assert!(place.stamps().0.is_empty());
    place.write("file", "1");
    for name in ["missing", "file"] {
        let path = place.0.path().join(name);
        assert!(
            matches!(read_stamps(&path), Err(DirectoryError::Read { .. })),
            "{name}"
        );
    }
}
