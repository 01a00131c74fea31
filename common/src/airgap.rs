//! Archives for sites without internet: what they list, what an image is made of, and what everything is called at the site.
//!
//! An archive is an OCI image layout in one tar. Manifests are never written again, only their bytes are copied, because a digest
//! is what signatures, other manifests and objects in clusters name.
//!
//! | module | what it decides |
//! |---|---|
//! | [`layout`] | what `index.json` lists |
//! | [`manifest`] | the blobs and manifests that a manifest needs |
//! | [`referrers`] | the list of referrers in a registry without their API |
//! | [`site`] | the names at the site, and its catalogue |

pub mod layout;
pub mod manifest;
pub mod referrers;
pub mod site;
