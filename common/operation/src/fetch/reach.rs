//! What a source may ask of this machine.
//!
//! What stands in a cluster (semantics 16) or on a web server is not to reach for the files and accounts of whoever reads it; what a
//! record outside the system namespace names reaches even less (semantics 6), unless the user typed the index.

use addons_sources::Reach;
use common::airgap::site;
use common::api::catalogue::Source;
use common::catalogue::Origin;

use crate::context::Context;
use crate::resolved::Resolved;

/// How far the source of an entry may reach.
pub(super) fn reach(ctx: &Context, resolved: &Resolved, source: &Source) -> Reach {
    match &*resolved.entry.origin {
        Origin::Catalogue { .. } | Origin::Directory { .. } => Reach::Cluster,
        Origin::Index { location } => {
            let of_record = ctx.reach_of_record(&resolved.name.namespace);
            if of_record == Reach::Tenant && !resolved.is_typed {
                return of_record;
            }
            of_location(location, source)
        }
    }
}

/// Of an index that is the user's own: it wrote, or chose with credentials of theirs, what lies beside it. Beside a catalogue in a
/// registry are the images and charts of that registry.
fn of_location(location: &str, source: &Source) -> Reach {
    if let Some(path) = location.strip_prefix("oci://") {
        let image = site::in_registry(source, "0").ok().flatten();
        return match image {
            Some(image) if path.split('/').next() == Some(&image.host) => Reach::Own,
            _ => Reach::Cluster,
        };
    }
    let scheme = location.split_once("://").map(|(scheme, _)| scheme);
    let is_of_web = scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    });
    if is_of_web {
        Reach::Cluster
    } else {
        Reach::Own
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_the_users_own_reaches_this_machine() {
        let url = json!({"url": {"manifest": "file:///etc/x"}});
        let beside = json!({"docker": {"image": "h.example/a:1"}});
        let chart = json!({"helm": {"url": "oci://h.example/charts", "chart": "c"}});
        let other = json!({"docker": {"image": "i.example/a:1"}});
        for (location, source, expected) in [
            ("file:///home/me/index.yaml", &url, Reach::Own),
            ("s3://bucket/index.yaml", &url, Reach::Own),
            ("https://example.com/index.yaml", &url, Reach::Cluster),
            ("HTTP://example.com/index.yaml", &url, Reach::Cluster),
            ("oci://h.example/c:1", &url, Reach::Cluster),
            ("oci://h.example/c:1", &other, Reach::Cluster),
            ("oci://h.example/c:1", &beside, Reach::Own),
            ("oci://h.example/c:1", &chart, Reach::Own),
        ] {
            let source = serde_json::from_value(source.clone()).unwrap();
            assert_eq!(of_location(location, &source), expected, "{location}");
        }
    }
}
