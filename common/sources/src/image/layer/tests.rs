use std::io::Write as _;

use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

/// Creates an archive from `(path, type, target or content)`, with paths exactly as given.
fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, kind, text) in entries {
        let mut header = Header::new_gnu();
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        let content = if is_link { "" } else { *text };
        // `set_path` refuses what is tested here.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        if is_link {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn files(paths: &[&str]) -> Vec<u8> {
    let entries: Vec<_> = paths
        .iter()
        .map(|path| (*path, EntryType::Regular, "x"))
        .collect();
    archive(&entries)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn read(bytes: &[u8], compression: Compression, path: &str) -> Result<ImageLayer, LayerError> {
    read_layer(bytes, compression, path, &mut LayerBudget::default())
}

/// The names of the entries. Folders end with `/`, entries of other kinds than files with `?`.
fn names(layer: &ImageLayer) -> Vec<String> {
    let name = |(path, node): &(String, ImageNode)| match node {
        ImageNode::File(_) => path.clone(),
        ImageNode::Folder => format!("{path}/"),
        ImageNode::Link(target) => format!("{path} -> {target}"),
        ImageNode::HardLink(target) => format!("{path} = {target}"),
        ImageNode::Other => format!("{path}?"),
    };
    layer.entries.iter().map(name).collect()
}

#[test]
fn every_compression() {
    let plain = files(&["a", "b"]);
    let (head, tail) = plain.split_at(700);
    let skippable = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for (name, bytes, compression) in [
        ("tar", plain.clone(), Compression::None),
        ("gzip", gzip(&plain), Compression::Gzip),
        (
            "gzip, two members",
            [gzip(head), gzip(tail)].concat(),
            Compression::Gzip,
        ),
        ("zstd", zstd(&plain), Compression::Zstd),
        (
            "zstd, frames",
            [
                skippable.clone(),
                zstd(head),
                skippable.clone(),
                zstd(tail),
                skippable,
            ]
            .concat(),
            Compression::Zstd,
        ),
    ] {
        let layer = read(&bytes, compression, "").unwrap();
        assert_eq!(names(&layer), ["a", "b"], "{name}");
        let cut = bytes.get(..bytes.len() / 2).unwrap();
        assert!(read(cut, compression, "").is_err(), "{name}, cut");
    }
}

#[test]
fn names_stay_in_the_image() {
    let layer = read(
        &files(&["./a", "/b", "x/../c", "d//e"]),
        Compression::None,
        "",
    )
    .unwrap();
    assert_eq!(names(&layer), ["a", "b", "c", "d/e"]);
    for path in ["../a", "/../a", "x/../../a"] {
        let error = read(&files(&[path]), Compression::None, "").unwrap_err();
        assert!(
            matches!(&error, LayerError::Entry { name, .. } if name == path),
            "{error}"
        );
    }
}

#[test]
fn only_entries_at_or_above_the_path_are_kept() {
    let bytes = archive(&[
        ("./", EntryType::Directory, ""),
        ("usr/", EntryType::Directory, ""),
        ("usr/bin/sh", EntryType::Regular, "x"),
        ("etc/passwd", EntryType::Regular, "x"),
        ("readme", EntryType::Regular, "x"),
        ("srv/a/one.yaml", EntryType::Regular, "x"),
        ("srv/ab/two.yaml", EntryType::Regular, "x"),
        ("srv/a", EntryType::Directory, ""),
        ("srv/a/link", EntryType::Symlink, "one.yaml"),
        ("srv/a/hard", EntryType::Link, "srv/a/one.yaml"),
        ("srv/a/null", EntryType::Char, ""),
        ("usr/.wh.gone", EntryType::Regular, ""),
        (".wh.etc", EntryType::Regular, ""),
        ("srv/a/.wh.old", EntryType::Regular, ""),
        ("srv/.wh..wh..opq", EntryType::Regular, ""),
        ("usr/.wh..wh..opq", EntryType::Regular, ""),
        (".wh..wh.plnk", EntryType::Regular, ""),
    ]);
    let layer = read(&bytes, Compression::None, "srv/a").unwrap();
    let expected = [
        "usr/",
        "usr/",
        "etc/",
        "readme?",
        "srv/a/one.yaml",
        "srv/ab/",
        "srv/a/",
        "srv/a/link -> one.yaml",
        "srv/a/hard = srv/a/one.yaml",
        "srv/a/null?",
    ];
    assert_eq!(names(&layer), expected);
    let text = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(text(&layer.hidden), "etc srv/a/old");
    assert_eq!(text(&layer.opaque), "srv usr");
}

#[test]
fn long_names_are_read_and_bounded() {
    let long = format!("{}/x.yaml", "n".repeat(200));
    let mut pax = Builder::new(Vec::new());
    let records = [
        ("SCHILY.xattr.user.x", &b"a\nb"[..]),
        ("path", long.as_bytes()),
    ];
    pax.append_pax_extensions(records).unwrap();
    pax.append(&header("short", 1), &b"x"[..]).unwrap();
    let mut gnu = Builder::new(Vec::new());
    gnu.append_data(&mut header("x", 1), &long, &b"x"[..])
        .unwrap();
    for bytes in [pax.into_inner().unwrap(), gnu.into_inner().unwrap()] {
        let layer = read(&bytes, Compression::None, "").unwrap();
        assert_eq!(names(&layer), [long.as_str()]);
    }
    for kind in [
        EntryType::XHeader,
        EntryType::GNULongName,
        EntryType::GNULongLink,
    ] {
        let mut header = header("huge", 8 << 30);
        header.set_entry_type(kind);
        header.set_cksum();
        let error = read(header.as_bytes(), Compression::None, "").unwrap_err();
        assert!(error.to_string().contains("more than 1 MiB"), "{error}");
    }
}

/// Every folder in a name is looked up, and every link to the name copies it.
#[test]
fn names_that_no_file_system_takes_are_refused() {
    let entry = |name: &str, target: &str| {
        let mut builder = Builder::new(Vec::new());
        let records = [("path", name.as_bytes()), ("linkpath", target.as_bytes())];
        builder.append_pax_extensions(records).unwrap();
        let mut link = header("short", 0);
        link.set_entry_type(EntryType::Symlink);
        link.set_cksum();
        builder.append(&link, &b""[..]).unwrap();
        read(&builder.into_inner().unwrap(), Compression::None, "")
    };
    let (most, more) = ("n".repeat(4096), "n".repeat(4097));
    let layer = entry(&most, &most).unwrap();
    assert_eq!(names(&layer), [format!("{most} -> {most}")]);
    for (name, target, shown) in [(&*more, "a", "n".repeat(60)), ("a", &more, "a".to_owned())] {
        let error = entry(name, target).unwrap_err().to_string();
        let expected =
            format!("its entry {shown:?} has a name or link target of more than 4096 bytes");
        assert_eq!(error, expected);
    }
}

fn header(name: &str, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_path(name).unwrap();
    header.set_size(size);
    header.set_cksum();
    header
}

#[test]
fn ambiguous_entries_are_refused() {
    let mut sizes = Builder::new(Vec::new());
    sizes.append_pax_extensions([("size", &b"0"[..])]).unwrap();
    sizes.append(&header("a", 1), &b"x"[..]).unwrap();
    let mut link = header("a", 512);
    link.set_entry_type(EntryType::Symlink);
    link.set_cksum();
    let sparse = archive(&[("a", EntryType::GNUSparse, "x")]);
    let rows = [
        (sizes.into_inner().unwrap(), "two sizes"),
        (
            [link.as_bytes().to_vec(), vec![0; 1536]].concat(),
            "has content",
        ),
        (sparse, "sparse"),
    ];
    for (bytes, expected) in rows {
        let error = read(&bytes, Compression::None, "").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn bombs() {
    let zeros = gzip(&vec![0; 64 << 20]);
    let mut large = Builder::new(Vec::new());
    large
        .append(&header("zeros", 64 << 20), &vec![0; 64 << 20][..])
        .unwrap();
    let large = gzip(&large.into_inner().unwrap());
    let fits = || LayerBudget::default();
    let tight = |uncompressed, entries, kept| LayerBudget {
        uncompressed,
        entries,
        kept,
    };
    for (name, bytes, mut budget, expected) in [
        ("a file", large, fits(), "200 times"),
        (
            "bytes",
            gzip(&files(&["a", "b"])),
            tight(1024, 9, 9),
            "2048 MiB",
        ),
        (
            "entries",
            gzip(&files(&["a", "b"])),
            tight(1 << 20, 1, 9),
            "entries",
        ),
        (
            "kept",
            gzip(&files(&["a", "b"])),
            tight(1 << 20, 9, 1),
            "64 MiB",
        ),
        (
            "names",
            gzip(&archive(&[("folder", EntryType::Directory, "")])),
            tight(1 << 20, 9, 5),
            "64 MiB",
        ),
        (
            "whiteouts",
            gzip(&files(&["folder/.wh.a"])),
            tight(1 << 20, 9, 5),
            "64 MiB",
        ),
    ] {
        let error = read_layer(&bytes[..], Compression::Gzip, "", &mut budget).unwrap_err();
        assert!(
            error.is_limit() && error.to_string().contains(expected),
            "{name}: {error}"
        );
    }
    // Zeros mark the end of an archive. The rest is not read.
    assert!(
        read(&zeros, Compression::Gzip, "")
            .unwrap()
            .entries
            .is_empty()
    );
}
