use std::fs;

use addons_render::package::PackagedFile as PackageFile;
use common::image::Image;
use common::manifest::digest::sha256;
use common::oci::layout::write;
use common::oci::manifest::IMAGE;
use serde_json::json;

use super::*;
use crate::layout::PartialArchive;

type Entry = (String, EntryType, Vec<u8>);

fn regular(name: &str, bytes: &[u8]) -> Entry {
    (name.to_owned(), EntryType::Regular, bytes.to_vec())
}

fn blob(bytes: &[u8]) -> Entry {
    regular(&format!("{BLOBS}/{}", sha256(bytes)), bytes)
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: format!("sha256:{}", sha256(bytes)),
        size: bytes.len() as u64,
    }
}

fn manifest() -> Vec<u8> {
    let layer = descriptor("application/vnd.oci.image.layer.v1.tar", b"layer");
    let config = descriptor("application/vnd.oci.image.config.v1+json", b"{}");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    manifest.to_string().into_bytes()
}

/// The files of an archive with one image that has one layer.
fn image() -> Vec<Entry> {
    let named = NamedManifest {
        image: Image::parse("quay.io/a/b:1").unwrap(),
        descriptor: descriptor(IMAGE, &manifest()),
    };
    vec![
        regular(LAYOUT_FILE, b"{}"),
        regular(INDEX_FILE, &write(&[named])),
        blob(&manifest()),
        blob(b"{}"),
        blob(b"layer"),
    ]
}

/// Opens an archive of these files. Also returns its temporary folder.
fn open(entries: &[Entry]) -> Result<(LayoutArchive, tempfile::TempDir), String> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_entry_type(*kind);
        // `set_path` refuses the names that are tried here.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, bytes.as_slice()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.tar");
    fs::write(&path, builder.into_inner().unwrap()).unwrap();
    let archive = LayoutArchive::open(&path).map_err(|error| error.to_string())?;
    Ok((archive, folder))
}

#[test]
fn a_whole_archive_is_read() {
    let (archive, _folder) = open(&image()).unwrap();
    let [named] = archive.named() else {
        panic!("{archive:?}");
    };
    assert_eq!(named.image.to_string(), "quay.io/a/b:1");
    assert_eq!(archive.blobs.len(), 3);
}

#[test]
fn hostile_archives_are_refused() {
    let other = |at: usize, entry: Entry| {
        let mut entries = image();
        entries[at] = entry;
        entries
    };
    let more = |entry: Entry| [image(), vec![entry]].concat();
    let layer = format!("{BLOBS}/{}", sha256(b"layer"));
    let mut without = image();
    without.pop();
    for (entries, words) in [
        (other(4, regular(&layer, b"rayel")), "has digest sha256:"),
        (without, "is missing or has another size"),
        (other(2, blob(b"x")), "is missing or has another size"),
        (
            more(regular("../x", b"")),
            "is not part of an OCI image layout",
        ),
        (
            more(regular("/etc/x", b"")),
            "is not part of an OCI image layout",
        ),
        (
            more(regular("blobs/sha256/../../x", b"")),
            "is not part of an",
        ),
        (
            more(("blobs/x".to_owned(), EntryType::Symlink, Vec::new())),
            "is not a regular",
        ),
        (
            more((layer, EntryType::Link, Vec::new())),
            "is not a regular",
        ),
        (more(blob(b"layer")), "occurs twice"),
        (other(1, blob(b"x")), "\"index.json\" is missing"),
        (vec![], "\"index.json\" is missing"),
    ] {
        let error = open(&entries).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn manifests_come_after_what_they_need() {
    let child = descriptor(IMAGE, &manifest());
    let inner = json!({"schemaVersion": 2, "manifests": [child]}).to_string();
    let inner_descriptor = descriptor("x", inner.as_bytes());
    let outer = json!({"schemaVersion": 2, "manifests": [inner_descriptor, child]}).to_string();
    let named = NamedManifest {
        image: Image::parse("quay.io/a/b:1").unwrap(),
        descriptor: descriptor("x", outer.as_bytes()),
    };
    let mut entries = image();
    entries[1] = regular(INDEX_FILE, &write(std::slice::from_ref(&named)));
    entries.extend([blob(inner.as_bytes()), blob(outer.as_bytes())]);
    let (archive, _folder) = open(&entries).unwrap();
    let expected = [
        child.digest.as_str(),
        inner_descriptor.digest.as_str(),
        named.descriptor.digest.as_str(),
    ];
    assert_eq!(archive.tree(&named.descriptor.digest), expected);
    let stored = archive.read_manifest(&child.digest).unwrap();
    assert_eq!((stored.descriptor, stored.bytes), (child, manifest()));
}

/// The files of an archive that names a manifest `names` times.
fn naming(root: &[u8], names: usize) -> Vec<Entry> {
    let named = (0..names).map(|name| NamedManifest {
        image: Image::parse(&format!("quay.io/a/b{name}:1")).unwrap(),
        descriptor: descriptor("x", root),
    });
    let named: Vec<NamedManifest> = named.collect();
    let mut entries = image();
    entries[1] = regular(INDEX_FILE, &write(&named));
    entries.push(blob(root));
    entries
}

#[test]
fn archives_that_would_take_for_ever_are_refused() {
    let index = |children: usize| {
        let child = descriptor(IMAGE, &manifest());
        let index = json!({"schemaVersion": 2, "manifests": vec![child; children]});
        index.to_string().into_bytes()
    };
    let mut large = index(1);
    large.resize(usize::try_from(MAX_MANIFEST).unwrap() + 1, b' ');
    for (root, names, words) in [
        (index(10_001), 1, "more than 10000 manifests belong to"),
        (index(9_999), 51, "names stand for more than 500000"),
        (large, 1, "is larger than 4 MiB; nothing was pushed"),
    ] {
        let error = open(&naming(&root, names)).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(open(&naming(&index(9_999), 50)).is_ok());
}

/// Bytes that cannot be compressed.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes
}

#[test]
fn an_artifact_may_be_larger_than_a_manifest() {
    let content = noise(2_200_000);
    let file = |path: &str| PackageFile {
        path: path.to_owned(),
        bytes: content.clone(),
    };
    let files = vec![file("catalogue.yaml"), file("original-1.yaml")];
    let files = Package::from_folder(files).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.tar");
    let mut partial = PartialArchive::open(&path).unwrap();
    let artifact = partial.put_files("application/vnd.example", &files);
    let descriptor = artifact.unwrap();
    let digest = descriptor.digest.clone();
    let image = Image::parse("quay.io/a/b:1").unwrap();
    partial
        .finish(&[NamedManifest { image, descriptor }])
        .unwrap();
    let archive = LayoutArchive::open(&path).unwrap();
    let manifest = archive.read_manifest(&digest).unwrap().manifest;
    let layer = manifest.blobs.last().unwrap();
    assert!(layer.size > MAX_MANIFEST, "{layer:?}");
    assert!(archive.files(&digest).unwrap() == files);
}

#[test]
fn an_image_is_not_an_artifact() {
    let (archive, _folder) = open(&image()).unwrap();
    let digest = format!("sha256:{}", sha256(&manifest()));
    let error = archive.files(&digest).unwrap_err().to_string();
    assert!(
        error.ends_with("cannot be unpacked; nothing was pushed"),
        "{error}"
    );
}

/// Only verified content is pushed, even if the file is changed in the meantime.
#[test]
fn a_manifest_that_was_replaced_since_is_not_read() {
    let (archive, _folder) = open(&image()).unwrap();
    let digest = format!("sha256:{}", sha256(&manifest()));
    archive.read_manifest(&digest).unwrap();
    let mut bytes = fs::read(&archive.path).unwrap();
    let (at, _) = archive.blobs[&digest];
    let at = usize::try_from(at).unwrap();
    bytes[at + 1] = b' ';
    fs::write(&archive.path, bytes).unwrap();
    let replaced = archive.read_manifest(&digest);
    assert!(
        matches!(replaced, Err(LayoutArchiveError::Digest { .. })),
        "{replaced:?}"
    );
}
