use super::*;

/// Layers as words: `a/b` a file that holds its layer's number, `d/` a folder, `l>x` a link, `h=x` a hard link, `-x` hidden,
/// `!x` opaque.
fn tree(layers: &[&str], wanted: &str) -> Result<ImageTree, TreeError> {
    let mut tree = ImageTree::default();
    for (number, words) in layers.iter().enumerate() {
        let mut layer = ImageLayer::default();
        for word in words.split_ascii_whitespace() {
            if let Some(path) = word.strip_prefix('-') {
                layer.hidden.insert(path.to_owned());
            } else if let Some(path) = word.strip_prefix('!') {
                layer.opaque.insert(path.trim_matches('/').to_owned());
            } else if let Some((link, target)) = word.split_once('>') {
                let node = ImageNode::Link(target.to_owned());
                layer.entries.push((link.to_owned(), node));
            } else if let Some((link, target)) = word.split_once('=') {
                let node = ImageNode::HardLink(target.to_owned());
                layer.entries.push((link.to_owned(), node));
            } else if let Some(folder) = word.strip_suffix('/') {
                layer.entries.push((folder.to_owned(), ImageNode::Folder));
            } else {
                let bytes = number.to_string().into_bytes();
                layer
                    .entries
                    .push((word.to_owned(), ImageNode::File(bytes.into())));
            }
        }
        tree.apply(layer, wanted)?;
    }
    Ok(tree)
}

/// The files of the package as `PATH:CONTENT`, or the error.
fn package(layers: &[&str], wanted: &str) -> String {
    let package = match tree(layers, wanted).and_then(|tree| tree.package(wanted)) {
        Ok(package) => package,
        Err(error) => return error.to_string(),
    };
    let text =
        |file: &PackagedFile| format!("{}:{}", file.path, String::from_utf8_lossy(&file.bytes));
    let files: Vec<String> = package.files().iter().map(text).collect();
    files.join(" ")
}

#[test]
fn layers_over_layers() {
    for (layers, expected) in [
        (&["a b", "b c"][..], "a:0 b:1 c:1"),
        // A whiteout hides entries of lower layers, but not of its own layer.
        (&["a b", "-a"], "b:0"),
        (&["a b", "-a a"], "a:1 b:0"),
        (&["d/x d/y e", "-d"], "e:0"),
        (&["d/x d/y e", "-d d/z"], "d/z:1 e:0"),
        (&["d/x d-e", "-d"], "d-e:0"),
        (&["d/x d/e/y", "!d d/z"], "d/z:1"),
        (&["d/x e", "! f"], "f:1"),
        // A file replaces a folder, and a folder replaces a file.
        (&["d/ d/x", "d"], "d:1"),
        (&["d", "d/ d/x"], "d/x:1"),
        (&["d/ d/x", "d/ d/y"], "d/x:0 d/y:1"),
        (&["l>a a", "l/ l/b"], "a:0 l/b:1"),
        // If a layer has two entries for a path, the last one wins, as on disk.
        (&["a b", "b c", "-c"], "a:0 b:1"),
    ] {
        assert_eq!(package(layers, ""), expected, "{layers:?}");
    }
}

#[test]
fn links() {
    for (layers, wanted, expected) in [
        (&["m/a m/l>a"][..], "m", "a:0 l:0"),
        (&["m/a m/l>/m/a"], "m", "a:0 l:0"),
        (&["m/d/a m/l>d"], "m", "d/a:0 l/a:0"),
        (&["m/d/a m/l>./d/../k m/k>d"], "m", "d/a:0 k/a:0 l/a:0"),
        (&["m/d/a m/e>d m/l>e/a"], "m", "d/a:0 e/a:0 l:0"),
        (&["m/a m/h=m/a", "m/a"], "m", "a:1 h:0"),
        (&["m/a", "m/h=/m/a"], "m", "a:0 h:0"),
        (
            &["m/a m/l>../x x"],
            "m",
            "/m/l is a link to ../x, which leads out of the wanted path; name a folder that holds both",
        ),
        (
            &["m/a m/l>../../../x"],
            "m",
            "/m/l is a link to ../../../x, which leads out of the wanted path; name a folder that holds both",
        ),
        (
            &["m/a m/l>/etc/passwd"],
            "m",
            "/m/l is a link to /etc/passwd, which leads out of the wanted path; name a folder that holds both",
        ),
        (
            &["m/h=x"],
            "m",
            "/m/h is a link to x, which leads out of the wanted path; name a folder that holds both",
        ),
        (
            &["m/h=m/x"],
            "m",
            "/m/h is a link to m/x, which is not in the image",
        ),
        (
            &["m/l>x"],
            "m",
            "/m/l is a link to x, which is not in the image",
        ),
        (
            &["m/a>b m/b>a"],
            "m",
            "/m/a is a link that leads back to itself",
        ),
        (
            &["m/a m/l>."],
            "m",
            "/m/l is a link that leads back to itself",
        ),
        (
            &["m/d/l>../e m/e/l>../d"],
            "m",
            "/m/d/l is a link that leads back to itself",
        ),
        (
            &["m>n n/a"],
            "m",
            "/m is a link to n; give the path that it leads to",
        ),
        (
            &["m>n n/a"],
            "m/a",
            "/m is a link to n; give the path that it leads to",
        ),
        (
            &["m>n", "m/a"],
            "m",
            "/m/a is below /m, which is not a folder in the image",
        ),
    ] {
        assert_eq!(package(layers, wanted), expected, "{layers:?}");
    }
}

#[test]
fn a_path_is_a_file_or_a_folder_or_missing() {
    let layers = &["srv/m/a.yaml srv/m/b.yaml srv/x etc/ empty/"][..];
    for (wanted, expected) in [
        ("srv/m", "a.yaml:0 b.yaml:0"),
        ("srv/m/a.yaml", "a.yaml:0"),
        ("srv", "m/a.yaml:0 m/b.yaml:0 x:0"),
        ("empty", "/empty: it holds no file"),
        ("srv/n", "there is no /srv/n in the image; /srv holds m, x"),
        (
            "n/o",
            "there is no /n/o in the image; / holds empty, etc, srv",
        ),
        (
            "srv/x/y",
            "there is no /srv/x/y in the image; /srv holds m, x",
        ),
    ] {
        assert_eq!(package(layers, wanted), expected, "{wanted}");
    }
    let many: Vec<String> = (10..25).map(|number| format!("f{number}")).collect();
    let error = package(&[&many.join(" ")], "x");
    assert!(error.ends_with("f18, f19 and 5 more"), "{error}");
    assert_eq!(
        package(&[], "x"),
        "there is no /x in the image; / holds nothing"
    );
}

#[test]
fn links_do_not_multiply() {
    let mut words = "m/a/x ".to_owned();
    let names: Vec<char> = ('a'..='j').collect();
    for pair in names.windows(2) {
        for number in 0..10 {
            words.push_str(&format!("m/{}/{number}>../{} ", pair[1], pair[0]));
        }
    }
    let error = package(&[&words], "m");
    assert!(error.contains("more than 10000 files"), "{error}");
    // There is no file in these folders.
    let error = package(&[&words.replace("m/a/x", "m/a/")], "m");
    assert_eq!(
        error,
        "the links below /m take too many steps to follow; name a smaller folder in path"
    );
}

#[test]
fn long_names_do_not_multiply() {
    // Each link to the folder would add another path of that length.
    let long = "n".repeat(1020);
    assert_eq!(
        package(&[&format!("m/{long}/x")], "m"),
        format!("{long}/x:0")
    );
    assert_eq!(
        package(&[&format!("m/{long}/x m/long>{long}")], "m"),
        format!("long/x:0 {long}/x:0")
    );
    let error = package(&[&format!("m/{long}/folder/x m/long>{long}")], "m");
    let expected = format!("/m: the path {}... has more than 1024 bytes", &long[..60]);
    assert_eq!(error, expected);
    // Every folder on the path of every link is looked up.
    let deep = format!("{}/", "d".repeat(100)).repeat(40);
    let mut words = format!("m/x m/{deep} ");
    for number in 0..2000 {
        words.push_str(&format!("m/l{number}>{deep} "));
    }
    let error = package(&[&words], "m");
    assert_eq!(
        error,
        "the links below /m take too many steps to follow; name a smaller folder in path"
    );
}
