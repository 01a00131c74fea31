//! OCI image layouts and manifests: parses `index.json`, and finds the blobs and manifests that a manifest needs.
//!
//! Manifests are copied byte for byte, because signatures, other manifests and objects in clusters refer to their digests.

pub mod layout;
pub mod manifest;
pub mod referrers;

/// The file in an OCI artifact that contains a catalogue.
pub const CATALOGUE_FILE: &str = "catalogue.yaml";
