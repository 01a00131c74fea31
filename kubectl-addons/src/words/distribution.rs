//! Sentences about catalogues that are pushed to other clusters.

use addons_distribution::push::PushedCopy;
use addons_engine::catalogues::CatalogueWrite;
use common::api::names::COMPATIBLE_ADDONS;

/// `shop  catalogue merged-custom created`
pub fn describe_pushed(target: &str, one: &PushedCopy) -> String {
    let kind = match one.name.as_str() {
        COMPATIBLE_ADDONS => "ConfigMap",
        _ => "catalogue",
    };
    let word = match one.written {
        CatalogueWrite::Created => "created",
        CatalogueWrite::Replaced => "replaced",
        CatalogueWrite::Unchanged => "unchanged",
    };
    format!("{target}  {kind} {} {word}", one.name)
}
