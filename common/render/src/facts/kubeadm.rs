//! Reads facts from the configuration that kubeadm stored: ConfigMap `kubeadm-config`, key `ClusterConfiguration`.

use serde_json::Value;

use super::TemplateFacts;

/// Defaults of kube-apiserver and kube-controller-manager.
const NODE_PORTS: &str = "30000-32767";
const MASK_SIZE_V4: u8 = 24;
const MASK_SIZE_V6: u8 = 64;

/// Sets the facts that the configuration contains.
///
/// Defaults of the control plane's flags are facts only if kubeadm started the control plane, which `networking` shows: KKP creates a
/// `kubeadm-config` for the kubelets of control planes that it runs elsewhere.
pub(super) fn fill(facts: &mut TemplateFacts, configuration: &Value) {
    let text = |pointer| {
        let text = configuration.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().trim()
    };
    text("/clusterName").clone_into(&mut facts.name);
    text("/controlPlaneEndpoint").clone_into(&mut facts.endpoint);
    text("/networking/dnsDomain").clone_into(&mut facts.dns_domain);
    facts.pod_ranges = split_ranges(text("/networking/podSubnet"));
    facts.service_ranges = split_ranges(text("/networking/serviceSubnet"));
    if configuration.get("networking").is_none() {
        return;
    }
    let node_ports = flag_value(configuration, "apiServer", "service-node-port-range");
    node_ports
        .unwrap_or(NODE_PORTS)
        .clone_into(&mut facts.node_ports);
    let size = |flags: &[&str], default| {
        let given = flags.iter().find_map(|flag| {
            flag_value(configuration, "controllerManager", flag)?
                .parse()
                .ok()
        });
        given.unwrap_or(default)
    };
    let has = |is_v6| {
        facts
            .pod_ranges
            .iter()
            .any(|range| range.contains(':') == is_v6)
    };
    let (has_v4, has_v6) = (has(false), has(true));
    if has_v4 {
        let flags = ["node-cidr-mask-size-ipv4", "node-cidr-mask-size"];
        facts.mask_size_v4 = size(&flags, MASK_SIZE_V4);
    }
    if has_v6 {
        let flags: &[&str] = if has_v4 {
            &["node-cidr-mask-size-ipv6"]
        } else {
            &["node-cidr-mask-size-ipv6", "node-cidr-mask-size"]
        };
        facts.mask_size_v6 = size(flags, MASK_SIZE_V6);
    }
}

/// Splits ranges in the form of a flag: `10.244.0.0/16,fd00::/48`.
pub(super) fn split_ranges(list: &str) -> Vec<String> {
    let ranges = list.split(',').map(str::trim);
    ranges
        .filter(|range| !range.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns a flag of a component. Flags are a map up to v1beta3; since v1beta4, they are a list of names and values, and the last one
/// counts.
fn flag_value<'a>(configuration: &'a Value, component: &str, flag: &str) -> Option<&'a str> {
    match configuration.get(component)?.get("extraArgs")? {
        Value::Object(flags) => flags.get(flag)?.as_str(),
        Value::Array(flags) => {
            let mut named = flags.iter().rev();
            let found = named.find(|item| item.get("name").and_then(Value::as_str) == Some(flag));
            found?.get("value")?.as_str()
        }
        _ => None,
    }
}
