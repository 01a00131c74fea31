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

use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use common::nearest::nearest;

use crate::error::OperationError;

/// Returns the catalogue with this name.
///
/// # Errors
/// [`OperationError::UnknownCatalogue`], with a similar name. Those of core catalogues are not suggested.
pub fn find_named<'a>(
    objects: &'a [AddonCatalogue],
    wanted: &str,
) -> Result<&'a AddonCatalogue, OperationError> {
    let mut all = objects.iter();
    if let Some(found) = all.find(|object| object.metadata.name.as_deref() == Some(wanted)) {
        return Ok(found);
    }
    let visible = objects.iter();
    let visible = visible.filter(|object| object.spec.class != CatalogueClass::Core);
    let names = visible.filter_map(|object| object.metadata.name.as_deref());
    Err(OperationError::UnknownCatalogue {
        name: wanted.to_owned(),
        near: nearest(wanted, names).map(str::to_owned),
    })
}
