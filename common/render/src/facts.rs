//! The data of templates: facts of a cluster, in the shape and with the field names of KKP's add-on data.
//!
//! The data has three layers, and later ones win by RFC 7386: the facts from the API ([`TemplateFacts`]), then the ConfigMap and then the Secret
//! `addon-template-data` beside the installation ([`FactOverlays`]). `.Variables` contains only the values of the installation. Unknown fields
//! have the zero value of their Go type, as in KKP's own structs, so that templates written for KKP find every field.

mod kubeadm;
mod observed;
mod plugin;
mod shape;

use std::fmt;

use serde_json::{Value, json};

use common::manifest::digest;
pub use observed::ObservedObjects;
pub use plugin::{NetworkPlugin, is_network_plugin};

/// Facts from the API of a cluster. An empty field is unknown. Data that changes by itself is not included: the number, names and ranges of
/// nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateFacts {
    /// `.Cluster.Name`.
    pub name: String,
    /// `.Cluster.Version` without `v`, pre-release and build: `1.36.3`. `.Cluster.MajorMinorVersion` follows from it.
    pub version: String,
    /// `.Cluster.CloudProviderName` as KKP spells it: `aws`, `gcp`, `hetzner`.
    pub provider: String,
    /// `.Cluster.CNIPlugin`.
    pub plugin: NetworkPlugin,
    /// `HOST:PORT` or `HOST` of the API server for clients outside of the cluster; `.Cluster.Address` follows from it.
    pub endpoint: String,
    /// `.Cluster.Network.DNSDomain`.
    pub dns_domain: String,
    /// `.Cluster.Network.DNSClusterIP`.
    pub dns_address: String,
    /// `.Cluster.Network.DNSResolverIP`: the DNS server that pods use.
    pub resolver_address: String,
    /// `.Cluster.Network.PodCIDRBlocks`; `PodCIDRIPv4` and `PodCIDRIPv6` are the first of each family.
    pub pod_ranges: Vec<String>,
    /// `.Cluster.Network.ServiceCIDRBlocks`.
    pub service_ranges: Vec<String>,
    /// `.Cluster.Network.ProxyMode`: `ipvs`, `iptables`, `nftables`, or `ebpf` if there is no kube-proxy.
    pub proxy_mode: String,
    /// `.Cluster.Network.StrictArp`, only set with ipvs.
    pub strict_arp: Option<bool>,
    /// `.Cluster.Network.NodePortRange`.
    pub node_ports: String,
    /// `.Cluster.Network.NodeCIDRMaskSizeIPv4`; 0 if unknown.
    pub mask_size_v4: u8,
    /// `.Cluster.Network.NodeCIDRMaskSizeIPv6`; 0 if unknown.
    pub mask_size_v6: u8,
}

/// Data that users add to the facts. It takes precedence over them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FactOverlays {
    /// Data of the ConfigMap.
    pub config_map: Option<Value>,
    /// Data of the Secret. It takes precedence over the ConfigMap.
    pub secret: Option<SecretOverlay>,
}

/// Data of a Secret, which only templates may read.
#[derive(Clone, PartialEq)]
pub struct SecretOverlay {
    /// The data.
    pub document: Value,
    /// uid and resourceVersion of the Secret. They replace the data in digests, from which it could be guessed.
    pub revision: String,
}

impl fmt::Debug for SecretOverlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretOverlay")
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// Returns the data for the templates of one add-on. `variables` are the merged values of the installation. `Variables` in overlays are
/// ignored, because values have their own layers and forms (semantics 9 and 10).
#[must_use]
pub fn template_data(facts: &TemplateFacts, overlays: &FactOverlays, variables: &Value) -> Value {
    let mut document = facts.to_document();
    let secret = overlays.secret.as_ref().map(|secret| &secret.document);
    for overlay in overlays.config_map.iter().chain(secret) {
        // A value that is not a map would replace the whole document.
        if overlay.is_object() {
            json_patch::merge(&mut document, overlay);
        }
    }
    if let Some(fields) = document.as_object_mut() {
        fields.insert("Variables".to_owned(), variables.clone());
    }
    document
}

/// Returns the content of `Installed.template_data_hash`, a digest of facts and overlays. Values have a digest of their own. The Secret's
/// content is not part of it, because it could be guessed (semantics 13.4).
#[must_use]
pub fn facts_digest(facts: &TemplateFacts, overlays: &FactOverlays) -> String {
    digest::digest(&json!({
        "facts": facts.to_document(),
        "configMap": overlays.config_map,
        "secret": overlays.secret.as_ref().map(|secret| &secret.revision),
    }))
}

impl TemplateFacts {
    /// Returns the facts alone, with all fields of the shape.
    fn to_document(&self) -> Value {
        let mut document = shape::empty_template_data();
        json_patch::merge(
            &mut document,
            &json!({"Cluster": {
                "Name": self.name,
                "CloudProviderName": self.provider,
                "Version": self.version,
                "MajorMinorVersion": major_minor(&self.version),
                "Address": self.address(),
                "CNIPlugin": {"Type": self.plugin.kind, "Version": self.plugin.version},
                "Network": {
                    "DNSDomain": self.dns_domain,
                    "DNSClusterIP": self.dns_address,
                    "DNSResolverIP": self.resolver_address,
                    "PodCIDRBlocks": self.pod_ranges,
                    "ServiceCIDRBlocks": self.service_ranges,
                    "ProxyMode": self.proxy_mode,
                    "DualStack": is_dual_stack(&self.pod_ranges) || is_dual_stack(&self.service_ranges),
                    "PodCIDRIPv4": first_of_family(&self.pod_ranges, false),
                    "PodCIDRIPv6": first_of_family(&self.pod_ranges, true),
                    "NodeCIDRMaskSizeIPv4": self.mask_size_v4,
                    "NodeCIDRMaskSizeIPv6": self.mask_size_v6,
                    "NodePortRange": self.node_ports,
                },
            }}),
        );
        // In a merge, null would mean "unchanged".
        if let Some(strict) = document.pointer_mut("/Cluster/Network/StrictArp") {
            *strict = json!(self.strict_arp);
        }
        document
    }

    /// Returns the fields of `.Cluster.Address` that follow from an endpoint.
    fn address(&self) -> Value {
        if self.endpoint.is_empty() {
            return json!({});
        }
        let (host, port) = split_endpoint(&self.endpoint);
        let is_address = host.parse::<core::net::IpAddr>().is_ok();
        let written = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        json!({
            "URL": format!("https://{written}:{port}"),
            "Port": port,
            "ExternalName": host,
            "IP": if is_address { host } else { "" },
        })
    }
}

/// Splits `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. Without a port, it returns that of kubeadm.
fn split_endpoint(endpoint: &str) -> (&str, u16) {
    const PORT: u16 = 6443;
    if endpoint.parse::<core::net::Ipv6Addr>().is_ok() {
        return (endpoint, PORT);
    }
    let (host, port) = match endpoint.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(PORT)),
        _ => (endpoint, PORT),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    (bare.unwrap_or(host), port)
}

/// `1.36` of `1.36.3`.
fn major_minor(version: &str) -> String {
    let mut parts = version.split('.');
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => String::new(),
    }
}

fn is_dual_stack(ranges: &[String]) -> bool {
    !first_of_family(ranges, false).is_empty() && !first_of_family(ranges, true).is_empty()
}

/// Returns the first range of an address family.
fn first_of_family(ranges: &[String], is_v6: bool) -> &str {
    let mut of_family = ranges.iter().filter(|range| range.contains(':') == is_v6);
    of_family.next().map_or("", String::as_str)
}

#[cfg(test)]
mod tests;
