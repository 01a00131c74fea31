//! OCI image layouts and manifests as values: what `index.json` lists, and the blobs and manifests that a manifest needs.
//!
//! Manifests are never written again, only their bytes are copied, because a digest is what signatures, other manifests and objects in
//! clusters name.

pub mod layout;
pub mod manifest;
pub mod referrers;

/// The file of an OCI artifact that holds a catalogue.
pub const CATALOGUE_FILE: &str = "catalogue.yaml";
