//! Files as an artifact of a registry: one layer, which [`crate::image`] reads again as it reads any other.

use std::collections::BTreeMap;

use addons_render::package::Package;
use common::oci::manifest::{Descriptor, IMAGE};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::partial::header;
use super::{LayoutError, Partial, file};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The configuration of artifacts that have none.
const NO_CONFIG: &str = "application/vnd.oci.empty.v1+json";

impl Partial {
    /// Adds an artifact of this type with the files; the descriptor of its manifest. One content gives one digest.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn put_files(&mut self, kind: &str, files: &Package) -> Result<Descriptor, LayoutError> {
        let layer = tgz(files).map_err(file(kind))?;
        let mut described = BTreeMap::new();
        for (part, media_type, bytes) in [
            ("config", NO_CONFIG, b"{}".as_slice()),
            ("layer", LAYER, layer.as_slice()),
        ] {
            let descriptor = Descriptor {
                media_type: media_type.to_owned(),
                digest: self.put(bytes)?,
                size: bytes.len() as u64,
            };
            described.insert(part, descriptor);
        }
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE,
            "artifactType": kind,
            "config": described.get("config"),
            "layers": [described.get("layer")],
        });
        let bytes = manifest.to_string().into_bytes();
        Ok(Descriptor {
            media_type: IMAGE.to_owned(),
            digest: self.put(&bytes)?,
            size: bytes.len() as u64,
        })
    }
}

fn tgz(files: &Package) -> std::io::Result<Vec<u8>> {
    let encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut builder = tar::Builder::new(encoder);
    for one in files.files() {
        let mut header = header(one.bytes.len() as u64);
        builder.append_data(&mut header, &one.path, one.bytes.as_slice())?;
    }
    builder.into_inner()?.finish()
}
