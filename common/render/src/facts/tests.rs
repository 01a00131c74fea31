use serde_json::{Value, json};

use super::*;

fn config_map(key: &str, text: &str) -> Value {
    json!({"data": {key: text}})
}

/// A cluster that kubeadm created.
fn kubeadm() -> ObservedObjects {
    ObservedObjects {
        git_version: "v1.36.3-rc.1+build".to_owned(),
        kubeadm: config_map(
            "ClusterConfiguration",
            "apiServer:\n  extraArgs:\n  - {name: service-node-port-range, value: 30000-30100}\nclusterName: shop\n\
             controlPlaneEndpoint: api.example.test:443\ncontrollerManager:\n  extraArgs:\n    node-cidr-mask-size-ipv4: '25'\n\
             networking:\n  dnsDomain: shop.local\n  podSubnet: 10.244.0.0/16,fd00::/48\n  serviceSubnet: 10.96.0.0/12\n",
        ),
        coredns: config_map("Corefile", ".:53 {\n  kubernetes other.local {\n  }\n}\n"),
        kube_proxy: config_map(
            "config.conf",
            "mode: ipvs\nclusterCIDR: 10.0.0.0/8\nipvs: {strictARP: true}\n",
        ),
        service_range: json!({"spec": {"cidrs": ["10.97.0.0/16"]}}),
        services: vec![
            json!({"metadata": {"name": "kube-dns"}, "spec": {"clusterIP": "10.96.0.10"}}),
        ],
        nodes: vec![json!({"spec": {"providerID": "hcloud://1", "podCIDR": "10.244.7.0/24"}})],
        daemon_sets: Vec::new(),
    }
}

#[track_caller]
fn check(document: &Value, fields: &[(&str, Value)]) {
    for (pointer, value) in fields {
        assert_eq!(document.pointer(pointer), Some(value), "{pointer}");
    }
}

fn bare(facts: &TemplateFacts) -> Value {
    template_data(facts, &FactOverlays::default(), &json!({}))
}

#[test]
fn kubeadm_has_nearly_every_fact() {
    let facts = TemplateFacts::from_objects(&kubeadm());
    check(
        &bare(&facts),
        &[
            ("/SeedName", json!("")),
            ("/Cluster/Type", json!("kubernetes")),
            ("/Cluster/Name", json!("shop")),
            ("/Cluster/Version", json!("1.36.3")),
            ("/Cluster/MajorMinorVersion", json!("1.36")),
            ("/Cluster/CloudProviderName", json!("hetzner")),
            (
                "/Cluster/Address/URL",
                json!("https://api.example.test:443"),
            ),
            ("/Cluster/Address/ExternalName", json!("api.example.test")),
            ("/Cluster/Address/Port", json!(443)),
            ("/Cluster/Address/IP", json!("")),
            ("/Cluster/Network/DNSDomain", json!("shop.local")),
            ("/Cluster/Network/DNSClusterIP", json!("10.96.0.10")),
            ("/Cluster/Network/DNSResolverIP", json!("10.96.0.10")),
            (
                "/Cluster/Network/PodCIDRBlocks",
                json!(["10.244.0.0/16", "fd00::/48"]),
            ),
            ("/Cluster/Network/PodCIDRIPv4", json!("10.244.0.0/16")),
            ("/Cluster/Network/PodCIDRIPv6", json!("fd00::/48")),
            (
                "/Cluster/Network/ServiceCIDRBlocks",
                json!(["10.97.0.0/16"]),
            ),
            ("/Cluster/Network/DualStack", json!(true)),
            ("/Cluster/Network/ProxyMode", json!("ipvs")),
            ("/Cluster/Network/StrictArp", json!(true)),
            ("/Cluster/Network/NodePortRange", json!("30000-30100")),
            ("/Cluster/Network/NodeCIDRMaskSizeIPv4", json!(25)),
            ("/Cluster/Network/NodeCIDRMaskSizeIPv6", json!(64)),
        ],
    );
    assert_eq!(facts.plugin, NetworkPlugin::default());
}

/// `golden/kkp/*/kubeadm-configmap.yaml`: KKP writes no `networking`, and its control plane has flags of its own.
#[test]
fn defaults_are_facts_only_where_kubeadm_started_the_control_plane() {
    let kkp = ObservedObjects {
        kubeadm: config_map(
            "ClusterConfiguration",
            "apiServer:\n  extraArgs:\n    authorization-mode: Webhook\nkubernetesVersion: 1.36.4\n",
        ),
        kube_proxy: config_map(
            "config.conf",
            "mode: ''\nclusterCIDR: 172.25.0.0/16\nipvs: {strictARP: true}\n",
        ),
        ..ObservedObjects::default()
    };
    let facts = TemplateFacts::from_objects(&kkp);
    check(
        &bare(&facts),
        &[
            ("/Cluster/Network/PodCIDRBlocks", json!(["172.25.0.0/16"])),
            ("/Cluster/Network/DualStack", json!(false)),
            ("/Cluster/Network/ProxyMode", json!("iptables")),
            ("/Cluster/Network/StrictArp", json!(null)),
            ("/Cluster/Network/NodePortRange", json!("")),
            ("/Cluster/Network/NodeCIDRMaskSizeIPv4", json!(0)),
        ],
    );
}

#[test]
fn nothing_known_is_the_zero_value_of_every_field() {
    for observed in [
        ObservedObjects::default(),
        ObservedObjects {
            kubeadm: config_map("ClusterConfiguration", "a: [\n"),
            coredns: json!({"data": {"Corefile": 1}}),
            kube_proxy: json!([]),
            service_range: json!({"spec": {"cidrs": "10.0.0.0/8"}}),
            services: vec![
                json!(null),
                json!({"metadata": {"name": "kube-dns"}, "spec": {"clusterIP": "None"}}),
            ],
            nodes: vec![json!(1)],
            daemon_sets: vec![json!({})],
            git_version: "x".to_owned(),
        },
    ] {
        let facts = TemplateFacts::from_objects(&observed);
        assert_eq!(facts, TemplateFacts::default());
        let document = bare(&facts);
        assert_eq!(document, shape::empty_template_data());
        // Null is an unset pointer, and nothing else.
        let pointers = [
            "/Cluster/Network/StrictArp",
            "/Cluster/CSI/SsSegmentedIscsiNetwork",
        ];
        assert_eq!(nulls(&document), pointers.len());
        for pointer in pointers {
            assert_eq!(document.pointer(pointer), Some(&Value::Null));
        }
    }
}

fn nulls(value: &Value) -> usize {
    match value {
        Value::Null => 1,
        Value::Array(items) => items.iter().map(nulls).sum(),
        Value::Object(fields) => fields.values().map(nulls).sum(),
        _ => 0,
    }
}

#[test]
fn the_domain_of_coredns_and_the_resolver_of_each_node() {
    let cache = json!({
        "metadata": {"namespace": "kube-system", "name": "node-local-dns"},
        "spec": {"template": {"spec": {"containers": [
            {"args": ["-localip", "169.254.20.10,10.96.0.10", "-conf", "/etc/Corefile"]}]}}},
    });
    let facts = |corefile: &str| {
        TemplateFacts::from_objects(&ObservedObjects {
            coredns: config_map("Corefile", corefile),
            daemon_sets: vec![cache.clone()],
            services: vec![
                json!({"metadata": {"name": "metrics", "labels": {"k8s-app": "metrics"}}, "spec": {"clusterIP": "10.0.0.1"}}),
                json!({"metadata": {"name": "rke2-coredns", "labels": {"k8s-app": "kube-dns"}}, "spec": {"clusterIP": "10.43.0.10"}}),
            ],
            ..ObservedObjects::default()
        })
    };
    for (corefile, domain) in [
        (
            ".:53 {\n    errors\n    kubernetes cluster.local. in-addr.arpa ip6.arpa {\n    }\n}",
            "cluster.local",
        ),
        (
            ".:53 {\n  kubernetes in-addr.arpa. shop.test {\n}}",
            "shop.test",
        ),
        ("# kubernetes cluster.local\n.:53 {\n  kubernetes {\n}}", ""),
        ("", ""),
    ] {
        assert_eq!(facts(corefile).dns_domain, domain, "{corefile}");
    }
    assert_eq!(facts("").dns_address, "10.43.0.10");
    assert_eq!(facts("").resolver_address, "169.254.20.10");
}

#[test]
fn cilium_without_kube_proxy_is_ebpf() {
    let daemon_set = |name: &str| json!({"metadata": {"namespace": "kube-system", "name": name}});
    let mode = |daemon_sets: &[&str]| {
        TemplateFacts::from_objects(&ObservedObjects {
            daemon_sets: daemon_sets.iter().map(|name| daemon_set(name)).collect(),
            ..kubeadm()
        })
        .proxy_mode
    };
    assert_eq!(mode(&["cilium"]), "ebpf");
    assert_eq!(mode(&["cilium", "kube-proxy"]), "ipvs");
    assert_eq!(mode(&["canal"]), "ipvs");
}

#[test]
fn endpoints_are_hosts_and_ports() {
    for (endpoint, url, name, ip) in [
        (
            "10.0.0.1:6443",
            "https://10.0.0.1:6443",
            "10.0.0.1",
            "10.0.0.1",
        ),
        ("api.test", "https://api.test:6443", "api.test", ""),
        (
            "[fd00::1]:443",
            "https://[fd00::1]:443",
            "fd00::1",
            "fd00::1",
        ),
        ("[fd00::1]", "https://[fd00::1]:6443", "fd00::1", "fd00::1"),
        ("fd00::1", "https://[fd00::1]:6443", "fd00::1", "fd00::1"),
    ] {
        let facts = TemplateFacts {
            endpoint: endpoint.to_owned(),
            ..TemplateFacts::default()
        };
        let address = facts.address();
        assert_eq!(address["URL"], url, "{endpoint}");
        assert_eq!(address["ExternalName"], name, "{endpoint}");
        assert_eq!(address["IP"], ip, "{endpoint}");
    }
}

#[test]
fn overlays_win_and_variables_are_the_values() {
    let overlays = FactOverlays {
        config_map: Some(json!({
            "DatacenterName": "eu-1",
            "Cluster": {"Name": "mine", "CSI": null, "Network": {"PodCIDRBlocks": ["10.1.0.0/16"]}},
            "Variables": {"stolen": true},
        })),
        secret: Some(SecretOverlay {
            document: json!({"Cluster": {"Name": "ours"}, "Credentials": {"Hetzner": {"Token": "s3cret"}}}),
            revision: "uid/7".to_owned(),
        }),
    };
    let document = template_data(
        &TemplateFacts::from_objects(&kubeadm()),
        &overlays,
        &json!({"replicas": 3}),
    );
    check(
        &document,
        &[
            ("/DatacenterName", json!("eu-1")),
            ("/Cluster/Name", json!("ours")),
            ("/Cluster/Version", json!("1.36.3")),
            ("/Cluster/Network/PodCIDRBlocks", json!(["10.1.0.0/16"])),
            ("/Credentials/Hetzner/Token", json!("s3cret")),
            ("/Credentials/AWS/AccessKeyID", json!("")),
            ("/Variables", json!({"replicas": 3})),
        ],
    );
    assert_eq!(document.pointer("/Cluster/CSI"), None);
    assert!(!format!("{overlays:?}").contains("s3cret"));
}

#[test]
fn digests_change_with_facts_and_overlays_and_hold_no_secret() {
    let overlays = |config_map: Option<Value>, secret: &str, revision: &str| FactOverlays {
        config_map,
        secret: Some(SecretOverlay {
            document: json!({"Credentials": secret}),
            revision: revision.to_owned(),
        }),
    };
    let facts = TemplateFacts::from_objects(&kubeadm());
    let base = facts_digest(&facts, &overlays(None, "a", "uid/1"));
    assert_eq!(base, facts_digest(&facts, &overlays(None, "b", "uid/1")));
    let more_nodes = ObservedObjects {
        nodes: vec![
            json!({"spec": {"providerID": "hcloud://2", "podCIDR": "10.244.8.0/24"}}),
            json!({"spec": {"providerID": "hcloud://1"}}),
        ],
        ..kubeadm()
    };
    assert_eq!(
        base,
        facts_digest(
            &TemplateFacts::from_objects(&more_nodes),
            &overlays(None, "a", "uid/1")
        )
    );
    let other = TemplateFacts {
        name: "other".to_owned(),
        ..facts.clone()
    };
    for changed in [
        facts_digest(&facts, &overlays(None, "a", "uid/2")),
        facts_digest(&facts, &overlays(Some(json!({})), "a", "uid/1")),
        facts_digest(&facts, &FactOverlays::default()),
        facts_digest(&other, &overlays(None, "a", "uid/1")),
    ] {
        assert_ne!(base, changed);
    }
}
