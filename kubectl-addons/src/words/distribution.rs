//! What became of catalogues that were brought to other clusters.

use addons_engine::catalogues::Written;
use addons_operation::distribution::push::Pushed;

/// `shop  catalogue merged-custom created`
pub fn pushed(target: &str, one: &Pushed) -> String {
    let word = match one.written {
        Written::Created => "created",
        Written::Replaced => "replaced",
        Written::Unchanged => "unchanged",
    };
    format!("{target}  catalogue {} {word}", one.name)
}
