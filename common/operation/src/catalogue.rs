//! Files of catalogues: read as the source of a catalogue in the cluster, validated, and written for a chart or manifest.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@file`] | the file that a catalogue of the cluster comes from |
//! | [`validate`] | the problems that `catalogue add` or an installation would find |
//! | [`scaffold`] | a new entry for a chart, a folder or a manifest |
//! | [`documents`] | the default values and the README of a package |

pub mod documents;
pub mod file;
pub mod scaffold;
pub mod validate;
