//! Layers of images: whatever the archive says, names stay inside and only what was asked for is kept.

use std::io::Write as _;

use addons_sources::image::layer::{Compression, ImageNode, LayerBudget, read_layer};
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

const TOKENS: &[&str] = &[
    "ustar\0",
    "ustar  \0",
    "../",
    "./",
    "/",
    ".wh.",
    ".wh..wh..opq",
    "././@LongLink",
    "30 path=",
    "0000644\0",
    "99999999999\0",
    "\0",
];

#[test]
fn tar() {
    let plain = archive().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(&plain).unwrap();
    let seeds = vec![plain, encoder.finish().unwrap()];
    super::mutant::run("fuzz::tar", seeds, TOKENS, |bytes| {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut budget = LayerBudget::default();
            let Ok(layer) = read_layer(bytes, compression, "manifests", &mut budget) else {
                continue;
            };
            for (name, node) in &layer.entries {
                let inside = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
                assert!(inside, "{name:?}");
                if matches!(node, ImageNode::File(_)) {
                    assert!(
                        name == "manifests" || name.starts_with("manifests/"),
                        "{name:?}"
                    );
                }
            }
        }
    });
}

/// Files, a folder, links and what hides others, with a name that is too long for its header.
fn archive() -> std::io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let long = format!("manifests/{}.yaml", "long".repeat(40));
    for (name, kind, target) in [
        ("manifests", EntryType::Directory, None),
        ("manifests/a.yaml", EntryType::Regular, None),
        (long.as_str(), EntryType::Regular, None),
        ("manifests/link", EntryType::Symlink, Some("a.yaml")),
        ("manifests/hard", EntryType::Link, Some("manifests/a.yaml")),
        ("manifests/.wh.gone", EntryType::Regular, None),
        ("other/.wh..wh..opq", EntryType::Regular, None),
        ("other/b", EntryType::Regular, None),
    ] {
        let content: &[u8] = if kind == EntryType::Regular {
            b"a: 1\n"
        } else {
            b""
        };
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        match target {
            Some(target) => builder.append_link(&mut header, name, target)?,
            None => builder.append_data(&mut header, name, content)?,
        }
    }
    builder.into_inner()
}
