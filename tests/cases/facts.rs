//! The data of templates, read from a real cluster: facts of its API, then both overlays.

use std::collections::BTreeSet;
use std::time::Duration;

use addons_engine::cluster::{Cluster, ClusterOptions};
use addons_engine::template_facts;
use addons_render::facts::{FactOverlays, TemplateFacts, facts_digest, template_data};
use addons_tests::control_plane::ControlPlane;
use addons_tests::shared;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret, Service};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A cluster of its own: what stands in kube-system tells something to every other test.
#[tokio::test]
async fn the_facts_of_a_real_cluster() -> Result<()> {
    let mut tally = Tally::new("facts");
    let control_plane = ControlPlane::alone_api_only().await?;
    let client = control_plane.client().await?;
    let cluster = Cluster::from_client(
        client.clone(),
        control_plane.server(),
        ClusterOptions {
            cache_dir: None,
            request_timeout: Duration::from_secs(30),
            concurrency: 8,
        },
    );

    let bare = template_facts::read(&cluster).await?;
    let version = client.apiserver_version().await?.git_version;
    ensure!(
        format!("v{}", bare.version) == version,
        "{} and {version}",
        bare.version
    );
    ensure!(
        bare.service_ranges.len() == 1 && bare.dns_address.is_empty(),
        "{bare:?}"
    );
    tally.ran();

    tell(&client).await?;
    let facts = template_facts::read(&cluster).await?;
    let expected = TemplateFacts {
        name: "shop".to_owned(),
        version: bare.version.clone(),
        provider: "hetzner".to_owned(),
        dns_domain: "shop.local".to_owned(),
        pod_ranges: vec!["10.244.0.0/16".to_owned()],
        // What the API serves wins over what kubeadm wrote down.
        service_ranges: bare.service_ranges.clone(),
        plugin: facts.plugin.clone(),
        dns_address: facts.dns_address.clone(),
        resolver_address: facts.dns_address.clone(),
        node_ports: "30000-32767".to_owned(),
        // cilium without kube-proxy.
        proxy_mode: "ebpf".to_owned(),
        mask_size_v4: 24,
        ..TemplateFacts::default()
    };
    ensure!(facts == expected, "{facts:?}\ninstead of {expected:?}");
    ensure!(
        (facts.plugin.kind.as_str(), facts.plugin.version.as_str()) == ("cilium", "1.19.4"),
        "{facts:?}"
    );
    let services = Api::<Service>::namespaced(client.clone(), "kube-system");
    let spec = services.get("kube-dns").await?.spec.unwrap_or_default();
    ensure!(
        spec.cluster_ip.as_ref() == Some(&facts.dns_address),
        "{facts:?}"
    );
    tally.ran();

    let namespace = control_plane.namespace("facts").await?;
    ensure!(
        template_facts::read_overlays(&cluster, &namespace, true).await? == FactOverlays::default(),
        "overlays of nobody"
    );
    overlay(&client, &namespace).await?;
    let overlays = template_facts::read_overlays(&cluster, &namespace, true).await?;
    the_document_holds_both(&facts, &overlays)?;
    tally.ran();

    the_digest_follows_the_data(&client, &cluster, &namespace, &facts, &overlays).await?;
    tally.ran();
    Ok(())
}

/// What the cluster says, and the overlays over it.
fn the_document_holds_both(facts: &TemplateFacts, overlays: &FactOverlays) -> Result<()> {
    let data = template_data(facts, overlays, &json!({"replicas": 3}));
    for (pointer, value) in [
        ("/DatacenterName", json!("eu")),
        ("/Cluster/Name", json!("of the Secret")),
        ("/Cluster/Network/DNSDomain", json!("shop.local")),
        ("/Credentials/Hetzner/Token", json!("s3cret")),
        ("/Variables", json!({"replicas": 3})),
    ] {
        ensure!(
            data.pointer(pointer) == Some(&value),
            "{pointer}: {:?}",
            data.pointer(pointer)
        );
    }
    Ok(())
}

/// The digest stays as long as nothing changes.
async fn the_digest_follows_the_data(
    client: &Client,
    cluster: &Cluster,
    namespace: &str,
    facts: &TemplateFacts,
    overlays: &FactOverlays,
) -> Result<()> {
    let again = (
        template_facts::read(cluster).await?,
        template_facts::read_overlays(cluster, namespace, true).await?,
    );
    ensure!(
        facts_digest(facts, overlays) == facts_digest(&again.0, &again.1),
        "nothing has changed"
    );
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let change = json!({"stringData": {"data.yaml": "Credentials: {Hetzner: {Token: other}}\n"}});
    secrets
        .patch(
            "addon-template-data",
            &PatchParams::default(),
            &Patch::Merge(change),
        )
        .await?;
    let changed = template_facts::read_overlays(cluster, namespace, true).await?;
    ensure!(
        facts_digest(facts, overlays) != facts_digest(facts, &changed),
        "the Secret has changed"
    );
    Ok(())
}

/// A cluster of which nothing is known has every field that KKP's templates can ask for, and no other.
#[test]
fn the_empty_document_has_the_shape_of_kkp() -> Result<()> {
    let mut tally = Tally::new("facts::shape");
    let Some(folder) = shared::path("golden/kkp") else {
        tally.left_out("there is no shared/golden/kkp beside the checkout");
        return Ok(());
    };
    let empty = template_data(
        &TemplateFacts::default(),
        &FactOverlays::default(),
        &json!({}),
    );
    let ours = fields(&empty);
    for provider in std::fs::read_dir(folder)? {
        let file = provider?.path().join("data.json");
        if !file.exists() {
            continue;
        }
        let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let theirs = fields(&serde_json::from_slice(&text)?);
        let differences: Vec<_> = ours.symmetric_difference(&theirs).collect();
        ensure!(
            differences.is_empty(),
            "{}: {differences:?}",
            file.display()
        );
        tally.ran();
    }
    Ok(())
}

/// Paths of all fields; what templates may name themselves is no field.
fn fields(document: &Value) -> BTreeSet<String> {
    const FREE: [&str; 4] = [
        "/Variables",
        "/Cluster/Labels",
        "/Cluster/Annotations",
        "/Cluster/Network/IPAMAllocations",
    ];
    let mut found = BTreeSet::new();
    let mut open = vec![(String::new(), document)];
    while let Some((path, value)) = open.pop() {
        if let Some(fields) = value.as_object().filter(|_| !FREE.contains(&path.as_str())) {
            open.extend(
                fields
                    .iter()
                    .map(|(name, value)| (format!("{path}/{name}"), value)),
            );
        }
        found.insert(path);
    }
    found
}

/// What kubeadm, a cloud and a network plugin leave in a cluster.
async fn tell(client: &kube::Client) -> Result<()> {
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    let configuration = "clusterName: shop\nnetworking:\n  dnsDomain: shop.local\n  podSubnet: 10.244.0.0/16\n  serviceSubnet: 192.0.2.0/24\n";
    create(&config_maps, json!({"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": configuration}})).await?;
    let services = Api::<Service>::namespaced(client.clone(), "kube-system");
    create(&services, json!({"metadata": {"name": "kube-dns"}, "spec": {"ports": [{"port": 53, "protocol": "UDP"}]}})).await?;
    let nodes = Api::<Node>::all(client.clone());
    create(
        &nodes,
        json!({"metadata": {"name": "of-a-cloud"}, "spec": {"providerID": "hcloud://42"}}),
    )
    .await?;
    let daemon_sets = Api::<DaemonSet>::namespaced(client.clone(), "kube-system");
    let image = "quay.io/cilium/cilium:v1.19.4";
    create(&daemon_sets, json!({"metadata": {"name": "cilium"}, "spec": {
        "selector": {"matchLabels": {"k8s-app": "cilium"}},
        "template": {
            "metadata": {"labels": {"k8s-app": "cilium"}},
            "spec": {"nodeSelector": {"nobody": "has"}, "containers": [{"name": "agent", "image": image}]},
        },
    }}))
    .await
}

async fn overlay(client: &kube::Client, namespace: &str) -> Result<()> {
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let text = "DatacenterName: eu\nCluster: {Name: of the ConfigMap}\nVariables: {replicas: 1}\n";
    create(
        &config_maps,
        json!({"metadata": {"name": "addon-template-data"}, "data": {"data.yaml": text}}),
    )
    .await?;
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let text = "Cluster: {Name: of the Secret}\nCredentials: {Hetzner: {Token: s3cret}}\n";
    create(
        &secrets,
        json!({"metadata": {"name": "addon-template-data"}, "stringData": {"data.yaml": text}}),
    )
    .await
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
{
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    Ok(())
}
