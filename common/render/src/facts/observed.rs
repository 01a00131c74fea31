//! Derives facts from objects of a cluster.

use serde_json::Value;

use super::{TemplateFacts, kubeadm, plugin};
use addons_versions::tolerant;
use common::values;

/// The objects that contain facts, as the API serves them. An object that does not exist, or may not be read, is empty.
#[derive(Clone, Debug, Default)]
pub struct ObservedObjects {
    /// `gitVersion` of the server.
    pub git_version: String,
    /// ConfigMap `kube-system/kubeadm-config`.
    pub kubeadm: Value,
    /// ConfigMap `kube-system/coredns`.
    pub coredns: Value,
    /// ConfigMap `kube-system/kube-proxy`.
    pub kube_proxy: Value,
    /// ServiceCIDR `kubernetes` (Kubernetes 1.33 and later).
    pub service_range: Value,
    /// The Services of kube-system.
    pub services: Vec<Value>,
    /// One page of nodes.
    pub nodes: Vec<Value>,
    /// The DaemonSets of all namespaces.
    pub daemon_sets: Vec<Value>,
}

impl TemplateFacts {
    /// Derives the facts. If several objects contain a fact, they have this precedence:
    ///
    /// | fact | from |
    /// |---|---|
    /// | version | `/version`, without pre-release and build, as constraints read it |
    /// | name | kubeadm's `clusterName` |
    /// | provider | scheme of the nodes' `spec.providerID` |
    /// | network plugin | its DaemonSet and the tag of its image |
    /// | endpoint | kubeadm's `controlPlaneEndpoint` |
    /// | DNS domain | kubeadm's `networking.dnsDomain`, the zone of CoreDNS' plugin `kubernetes` |
    /// | DNS address | `clusterIP` of Service `kube-dns`, else of a Service with the label `k8s-app: kube-dns` |
    /// | resolver | first `-localip` of DaemonSet `node-local-dns`, else the DNS address |
    /// | pod ranges | kubeadm's `networking.podSubnet`, kube-proxy's `clusterCIDR`; never `podCIDR` of a node, which is only a part of them
    /// |
    /// | service ranges | ServiceCIDR `kubernetes`, kubeadm's `networking.serviceSubnet` |
    /// | proxy mode | kube-proxy's `mode` (empty means iptables); ebpf if cilium runs without kube-proxy |
    /// | strictARP | kube-proxy's `ipvs.strictARP`, with mode ipvs |
    /// | node ports, mask sizes | kubeadm's flags of the control plane, else their defaults |
    #[must_use]
    pub fn from_objects(observed: &ObservedObjects) -> Self {
        let mut facts = Self::default();
        kubeadm::fill(
            &mut facts,
            &nested_document(&observed.kubeadm, "ClusterConfiguration"),
        );
        if let Ok(version) = tolerant::parse_kubernetes(&observed.git_version) {
            let (major, minor, patch) = (version.major, version.minor, version.patch);
            facts.version = format!("{major}.{minor}.{patch}");
        }
        facts.provider = find_provider(&observed.nodes);
        facts.plugin = plugin::find_plugin(&observed.daemon_sets);
        if facts.dns_domain.is_empty() {
            let corefile = text_at(&observed.coredns, "/data/Corefile");
            find_zone(corefile).clone_into(&mut facts.dns_domain);
        }
        find_dns_address(&observed.services).clone_into(&mut facts.dns_address);
        let resolver = find_local_resolver(&observed.daemon_sets).unwrap_or(&facts.dns_address);
        facts.resolver_address = resolver.to_owned();
        let served = observed.service_range.pointer("/spec/cidrs");
        let served = served.and_then(Value::as_array).into_iter().flatten();
        let served: Vec<String> = served
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if !served.is_empty() {
            facts.service_ranges = served;
        }
        facts.fill_proxy(observed);
        facts
    }

    fn fill_proxy(&mut self, observed: &ObservedObjects) {
        let configuration = nested_document(&observed.kube_proxy, "config.conf");
        if self.pod_ranges.is_empty() {
            self.pod_ranges = kubeadm::split_ranges(text_at(&configuration, "/clusterCIDR"));
        }
        let runs = plugin::has_daemon_set(&observed.daemon_sets, "kube-system", "kube-proxy");
        if self.plugin.kind == "cilium" && !runs {
            "ebpf".clone_into(&mut self.proxy_mode);
        } else if configuration.is_object() {
            let mode = text_at(&configuration, "/mode");
            let mode = if mode.is_empty() { "iptables" } else { mode };
            mode.clone_into(&mut self.proxy_mode);
        }
        if self.proxy_mode == "ipvs" {
            let strict = configuration.pointer("/ipvs/strictARP");
            self.strict_arp = strict.and_then(Value::as_bool);
        }
    }
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Parses the document in a key of a ConfigMap; null if it is missing or cannot be read.
fn nested_document(config_map: &Value, key: &str) -> Value {
    let document = config_map
        .get("data")
        .and_then(|data| data.get(key)?.as_str());
    let document = document.and_then(|document| values::read(document.as_bytes(), key).ok());
    document.unwrap_or_default()
}

/// Returns the zone of CoreDNS' plugin `kubernetes`, except for reverse zones.
fn find_zone(corefile: &str) -> &str {
    let mut lines = corefile.lines();
    let zones = lines.find_map(|line| {
        let (name, zones) = line.trim().split_once(char::is_whitespace)?;
        (name == "kubernetes").then_some(zones)
    });
    let mut zones = zones.unwrap_or_default().split_whitespace();
    let zone = zones.find(|zone| *zone != "{" && !zone.trim_end_matches('.').ends_with(".arpa"));
    zone.unwrap_or_default().trim_end_matches('.')
}

/// Returns the address of the cluster's DNS.
fn find_dns_address(services: &[Value]) -> &str {
    let by = |pointer: &str, wanted: &str| {
        let mut services = services.iter();
        services.find(|service| text_at(service, pointer) == wanted)
    };
    let label = "/metadata/labels/k8s-app";
    let service = by("/metadata/name", "kube-dns").or_else(|| by(label, "kube-dns"));
    match service.map(|service| text_at(service, "/spec/clusterIP")) {
        None | Some("None") => "",
        Some(address) => address,
    }
}

/// Returns the address on which NodeLocal DNSCache answers the pods of each node.
fn find_local_resolver(daemon_sets: &[Value]) -> Option<&str> {
    let mut daemon_sets = daemon_sets.iter();
    let cache = daemon_sets.find(|object| {
        text_at(object, "/metadata/name") == "node-local-dns"
            && text_at(object, "/metadata/namespace") == "kube-system"
    })?;
    let arguments = cache
        .pointer("/spec/template/spec/containers/0/args")?
        .as_array()?;
    let mut arguments = arguments.iter().filter_map(Value::as_str);
    arguments.find(|argument| argument.trim_start_matches('-') == "localip")?;
    arguments.next()?.split(',').next()
}

/// Schemes of `spec.providerID` for which KKP uses another name.
const PROVIDER_NAMES: [(&str, &str); 3] =
    [("gce", "gcp"), ("hcloud", "hetzner"), ("hrobot", "hetzner")];

/// Returns the provider of a page of nodes: KKP's name, else the scheme of `spec.providerID`. If there are several (a cluster may have
/// nodes elsewhere), it is the first by name, so that it does not depend on their number.
fn find_provider(nodes: &[Value]) -> String {
    let schemes = nodes.iter().filter_map(|node| {
        let id = node.pointer("/spec/providerID")?.as_str()?;
        let (scheme, _) = id.split_once("://")?;
        let named = PROVIDER_NAMES.iter().find(|(known, _)| *known == scheme);
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
