//! Detects the cloud provider of the nodes.

use serde_json::Value;

/// Schemes of `spec.providerID` for which KKP uses another name.
const NAMES: [(&str, &str); 3] = [("gce", "gcp"), ("hcloud", "hetzner"), ("hrobot", "hetzner")];

/// Returns the provider of a page of nodes: KKP's name, else the scheme of `spec.providerID`. If there are several (a cluster may have
/// nodes elsewhere), it is the first by name, so that it does not depend on their number.
pub(super) fn find_provider(nodes: &[Value]) -> String {
    let schemes = nodes.iter().filter_map(|node| {
        let id = node.pointer("/spec/providerID")?.as_str()?;
        let (scheme, _) = id.split_once("://")?;
        let named = NAMES.iter().find(|(known, _)| *known == scheme);
        Some(named.map_or(scheme, |(_, name)| *name))
    });
    schemes.min().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kkp_has_names_of_its_own() {
        let nodes = |ids: &[&str]| {
            let nodes = ids.iter().map(|id| json!({"spec": {"providerID": id}}));
            nodes.collect::<Vec<_>>()
        };
        for (ids, name) in [
            (&["aws:///eu-central-1a/i-0123"][..], "aws"),
            (&["gce://project/zone/name"], "gcp"),
            (&["hcloud://123", "hrobot://4"], "hetzner"),
            (&["openstack:///8a1b", "kind://docker/a/b"], "kind"),
            (&["", "no-scheme"], ""),
            (&[], ""),
        ] {
            assert_eq!(find_provider(&nodes(ids)), name, "{ids:?}");
        }
        assert_eq!(find_provider(&[json!({"spec": {}}), json!(null)]), "");
    }
}
