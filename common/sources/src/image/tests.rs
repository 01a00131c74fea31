use std::collections::BTreeMap;

use super::*;

#[test]
fn layers_by_their_types() {
    let oci = "application/vnd.oci.image.layer.v1";
    let docker = "application/vnd.docker.image.rootfs";
    let archive = |compression| Ok(LayerContent::Archive(compression));
    for (media_type, of_image, of_artifact) in [
        (
            format!("{oci}.tar"),
            archive(Compression::None),
            archive(Compression::None),
        ),
        (
            format!("{oci}.tar+gzip"),
            archive(Compression::Gzip),
            archive(Compression::Gzip),
        ),
        (
            format!("{oci}.tar+zstd"),
            archive(Compression::Zstd),
            archive(Compression::Zstd),
        ),
        (
            format!("{docker}.diff.tar"),
            archive(Compression::None),
            archive(Compression::None),
        ),
        (
            format!("{docker}.diff.tar.gzip"),
            archive(Compression::Gzip),
            archive(Compression::Gzip),
        ),
        (
            format!("{docker}.diff.tar.zstd"),
            archive(Compression::Zstd),
            archive(Compression::Zstd),
        ),
        (
            "application/vnd.cncf.flux.content.v1.tar+gzip".to_owned(),
            Err(""),
            archive(Compression::Gzip),
        ),
        ("application/json".to_owned(), Err(""), Err("")),
        (
            EMPTY.to_owned(),
            Ok(LayerContent::Nothing),
            Ok(LayerContent::Nothing),
        ),
    ] {
        let layer = BlobDescriptor {
            media_type,
            ..BlobDescriptor::default()
        };
        assert_eq!(
            classify_layer(&layer, true),
            of_image,
            "{}",
            layer.media_type
        );
        assert_eq!(
            classify_layer(&layer, false),
            of_artifact,
            "{}",
            layer.media_type
        );
    }
    for media_type in [
        format!("{docker}.foreign.diff.tar.gzip"),
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip".to_owned(),
        format!("{oci}.tar+gzip+encrypted"),
    ] {
        let layer = BlobDescriptor {
            media_type,
            ..BlobDescriptor::default()
        };
        let why = classify_layer(&layer, true).unwrap_err();
        assert!(!why.is_empty(), "{}", layer.media_type);
    }
}

#[test]
fn files_of_oras_by_their_titles() {
    let layer = |title: &str, unpack: &str| BlobDescriptor {
        media_type: "application/vnd.oci.image.layer.v1.tar".to_owned(),
        annotations: Some(BTreeMap::from([
            (TITLE.to_owned(), title.to_owned()),
            (UNPACK.to_owned(), unpack.to_owned()),
        ])),
        ..BlobDescriptor::default()
    };
    let archive = Ok(LayerContent::Archive(Compression::None));
    let file = |name: &str| Ok(LayerContent::File(name.to_owned()));
    assert_eq!(
        classify_layer(&layer("a.yaml", "false"), false),
        file("a.yaml")
    );
    assert_eq!(
        classify_layer(&layer("./d/a.yaml", ""), false),
        file("d/a.yaml")
    );
    assert_eq!(classify_layer(&layer("../a.yaml", ""), false), archive);
    assert_eq!(classify_layer(&layer("folder", "true"), false), archive);
    assert_eq!(classify_layer(&layer("a.tar", ""), false), archive);
    assert_eq!(classify_layer(&layer("a.yaml", "false"), true), archive);
}
