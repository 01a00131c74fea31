//! Sentences about catalogues that are pushed to other clusters.

use addons_engine::catalogues::Written;
use addons_operation::distribution::push::Pushed;
use common::api::names::COMPATIBLE_ADDONS;

/// `shop  catalogue merged-custom created`
pub fn pushed(target: &str, one: &Pushed) -> String {
    let kind = match one.name.as_str() {
        COMPATIBLE_ADDONS => "ConfigMap",
        _ => "catalogue",
    };
    let word = match one.written {
        Written::Created => "created",
        Written::Replaced => "replaced",
        Written::Unchanged => "unchanged",
    };
    format!("{target}  {kind} {} {word}", one.name)
}
