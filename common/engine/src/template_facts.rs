//! Reads the data for templates from the API of a cluster, and from the overlays beside an installation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use addons_render::facts::{FactOverlays, ObservedObjects, SecretOverlay, TemplateFacts};
use common::api::names::TEMPLATE_DATA;
use common::entrance::or_default;
use common::manifest::FilePosition;
use common::values::secret::{SecretValuesError, check_content, check_label};
use common::values::{self, ValuesError};

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::identity::KUBE_SYSTEM;
use super::listing::{self, read_one_page};
use super::meta::LiveMetadata;
use super::request::{ApiCall, JSON};

/// Number of nodes that are read for their provider: nodes are large, and nearly always have the same provider.
const NODES: &str = "10";
/// The API version of KKP's clusters.
const CLUSTERS_KKP: &str = "kubermatic.k8c.io/v1";
/// The beginning of the namespaces of KKP's clusters.
const PREFIX_KKP: &str = "cluster-";
/// Keys of an overlay; the later one wins.
const KEYS: [&str; 2] = ["data.yaml", "data.json"];

/// Why the overlays of an installation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// The server refuses a request, or cannot be reached.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A key is not valid YAML. The error names object, key and line, without content.
    #[error(transparent)]
    Unreadable(ValuesError),
    /// A key is not a map.
    #[error("{place}: the data of templates is one map, as in `Cluster: {{Name: shop}}`")]
    NotAMap {
        /// Object and key.
        place: FilePosition,
    },
    /// A Secret may not be used as data for templates.
    #[error("the data of templates cannot be read")]
    NotValues(#[source] SecretValuesError),
    /// A key of a Secret is not base64.
    #[error("{place}: it is not base64")]
    Encoding {
        /// Object and key.
        place: String,
    },
}

/// Reads facts about a cluster from its API, in seven concurrent requests (and one for the version if unknown): three ConfigMaps, the
/// Services of kube-system, the ServiceCIDR, a few nodes, and the DaemonSets. [`TemplateFacts::from_objects`] derives the facts from them.
///
/// Objects that do not exist, are not served, or may not be read are unknown.
///
/// # Errors
/// The server cannot be reached or fails. Otherwise, facts that were known before would be missing in the rendered objects.
pub async fn read(cluster: &Cluster) -> Result<TemplateFacts, EngineError> {
    let config_map = async |name| {
        let config_maps =
            Collection::from_names("v1", "ConfigMap", "configmaps", Some(KUBE_SYSTEM));
        or_unknown(get::<Value>(cluster, &config_maps, name).await)
    };
    let service_range = async {
        let ranges =
            Collection::from_names("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", None);
        or_unknown(get::<Value>(cluster, &ranges, "kubernetes").await)
    };
    let services = async {
        let services = Collection::from_names("v1", "Service", "services", Some(KUBE_SYSTEM));
        or_unknown(listing::list_all::<Value>(cluster, &services, None).await)
    };
    let nodes = async {
        let nodes = Collection::from_names("v1", "Node", "nodes", None);
        let call = ApiCall::list(&nodes, JSON).query("limit", NODES);
        let page = read_one_page::<Value>(cluster, call).await;
        or_unknown(page.map(|page| page.items))
    };
    let daemon_sets = async {
        let daemon_sets = Collection::from_names("apps/v1", "DaemonSet", "daemonsets", None);
        or_unknown(listing::list_all::<Value>(cluster, &daemon_sets, None).await)
    };
    let (git_version, kubeadm, coredns, kube_proxy, service_range, services, nodes, daemon_sets) =
        futures::try_join!(
            cluster.kubernetes_version(),
            config_map("kubeadm-config"),
            config_map("coredns"),
            config_map("kube-proxy"),
            service_range,
            services,
            nodes,
            daemon_sets,
        )?;
    Ok(TemplateFacts::from_objects(&ObservedObjects {
        git_version,
        kubeadm,
        coredns,
        kube_proxy,
        service_range,
        services,
        nodes,
        daemon_sets,
    }))
}

/// Reads the content of the ConfigMap and the Secret `addon-template-data` in the namespace of an installation, in two concurrent requests.
/// Their keys are `data.yaml` and `data.json`; if both exist, the latter wins. `is_of_system`: as for [`check_label`].
///
/// # Errors
/// [`OverlayError`]. An overlay that may not be read is an error, because templates would be rendered wrongly without it.
pub async fn read_overlays(
    cluster: &Cluster,
    namespace: &str,
    is_of_system: bool,
) -> Result<FactOverlays, OverlayError> {
    let cluster = cluster.home();
    let config_maps = Collection::from_names("v1", "ConfigMap", "configmaps", Some(namespace));
    let secrets = Collection::from_names("v1", "Secret", "secrets", Some(namespace));
    let (config_map, secret) = futures::try_join!(
        read_overlay(cluster, &config_maps, |text| Some(text.into())),
        read_overlay(cluster, &secrets, |text| STANDARD.decode(text).ok()),
    )?;
    let secret = secret.map(|(document, metadata)| {
        check_label(namespace, TEMPLATE_DATA, is_of_system, &metadata.labels)?;
        check_content(namespace, TEMPLATE_DATA, &document)?;
        let revision = format!("{}/{}", metadata.uid, metadata.resource_version);
        Ok(SecretOverlay { document, revision })
    });
    Ok(FactOverlays {
        config_map: config_map.map(|(document, _)| document),
        secret: secret.transpose().map_err(OverlayError::NotValues)?,
    })
}

/// Reads what is stated about a cluster for its core set: the content of the ConfigMap, and below it what the Cluster object of KKP says.
///
/// # Errors
/// As [`read_overlays`].
pub async fn read_stated(cluster: &Cluster, namespace: &str) -> Result<FactOverlays, OverlayError> {
    let config_maps = Collection::from_names("v1", "ConfigMap", "configmaps", Some(namespace));
    let found = read_overlay(cluster.home(), &config_maps, |text| Some(text.into())).await?;
    let mut stated = read_kkp_facts(cluster.home(), namespace).await?;
    if let Some((document, _)) = found {
        json_patch::merge(stated.get_or_insert_default(), &document);
    }
    Ok(FactOverlays {
        config_map: stated,
        secret: None,
    })
}

/// Reads the facts in the Cluster object of KKP whose namespace this is (`cluster-NAME`), in the shape of an overlay. Returns `None` for any
/// other namespace, and if the object may not be read. The version in the object is the wanted one, and is left out: the version of the
/// cluster is read from its server.
async fn read_kkp_facts(cluster: &Cluster, namespace: &str) -> Result<Option<Value>, EngineError> {
    let Some(name) = namespace.strip_prefix(PREFIX_KKP) else {
        return Ok(None);
    };
    let clusters = Collection::from_names(CLUSTERS_KKP, "Cluster", "clusters", None);
    let call = ApiCall::get(&clusters, name, JSON).with_own_rights();
    let found = cluster.send::<Value>(call).await;
    let found = or_unknown(found.map(|answer| answer.object))?;
    Ok(kkp_facts(name, &found))
}

/// Returns the facts in a Cluster object of KKP; `None` if it has none.
fn kkp_facts(name: &str, cluster: &Value) -> Option<Value> {
    let mut facts = Map::new();
    for (field, pointer) in [
        ("HumanReadableName", "/spec/humanReadableName"),
        ("CloudProviderName", "/spec/cloud/providerName"),
        ("CNIPlugin", "/spec/cniPlugin"),
    ] {
        let fact = match cluster.pointer(pointer) {
            Some(Value::Object(plugin)) => {
                let known = [("Type", "type"), ("Version", "version")];
                let known = known.map(|(to, from)| (to.to_owned(), plugin.get(from).cloned()));
                let known = known.into_iter().filter_map(|(to, it)| Some((to, it?)));
                Value::Object(known.collect())
            }
            Some(text) if text.as_str().is_some_and(|text| !text.is_empty()) => text.clone(),
            _ => continue,
        };
        facts.insert(field.to_owned(), fact);
    }
    if facts.is_empty() {
        return None;
    }
    facts.insert("Name".to_owned(), name.into());
    Some(json!({"Cluster": facts}))
}

/// Reads the content and metadata of one object; `None` if it does not exist or has none of the keys.
async fn read_overlay(
    cluster: &Cluster,
    collection: &Collection,
    decode: fn(&str) -> Option<Vec<u8>>,
) -> Result<Option<(Value, LiveMetadata)>, OverlayError> {
    let found = match get::<OverlayObject>(cluster, collection, TEMPLATE_DATA).await {
        Err(error) if error.is_not_found() => return Ok(None),
        answer => answer?,
    };
    let object = collection.describe_object(TEMPLATE_DATA);
    let document = found.document(&object, decode)?;
    Ok(document.map(|document| (document, found.metadata)))
}

/// A ConfigMap or Secret.
#[derive(Deserialize)]
struct OverlayObject {
    #[serde(default)]
    metadata: LiveMetadata,
    #[serde(default, deserialize_with = "or_default")]
    data: Map<String, Value>,
}

impl OverlayObject {
    /// Returns the merged content of its keys. `decode` converts a value of the map to bytes.
    fn document(
        &self,
        object: &str,
        decode: fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>, OverlayError> {
        let mut merged = None;
        for key in KEYS {
            let Some(text) = self.data.get(key).and_then(Value::as_str) else {
                continue;
            };
            let place = format!("{object}, {key}");
            let Some(bytes) = decode(text) else {
                return Err(OverlayError::Encoding { place });
            };
            let document = values::read(&bytes, &place).map_err(|error| match error {
                ValuesError::NotAMap { place } => OverlayError::NotAMap { place },
                other => OverlayError::Unreadable(other),
            })?;
            match &mut merged {
                None => merged = Some(document),
                Some(merged) => json_patch::merge(merged, &document),
            }
        }
        Ok(merged)
    }
}

async fn get<T: DeserializeOwned>(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<T, EngineError> {
    let answer = cluster
        .send::<T>(ApiCall::get(collection, name, JSON))
        .await?;
    Ok(answer.object)
}

/// Returns the default for objects that do not exist or may not be read.
fn or_unknown<T: Default>(answer: Result<T, EngineError>) -> Result<T, EngineError> {
    match answer {
        Err(EngineError::Forbidden { .. }) => Ok(T::default()),
        Err(error) if error.is_not_found() || error.is_unserved() => Ok(T::default()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakeReply, cluster};
    use super::*;

    fn ok(body: Value) -> FakeReply {
        Some((200, &[], body))
    }

    fn refusal(code: u16, message: &str) -> FakeReply {
        let body = json!({"kind": "Status", "status": "Failure", "message": message, "code": code,
            "details": {"name": "x"}});
        Some((code, &[], body))
    }

    fn forbidden() -> FakeReply {
        refusal(403, "x is forbidden: User \"u\" cannot get resource \"x\"")
    }

    #[tokio::test]
    async fn what_may_not_be_read_is_not_known() {
        let mut replies = vec![ok(json!({"gitVersion": "v1.36.3"}))];
        replies.extend((0..4).map(|_| forbidden()));
        replies.extend((0..3).map(|_| refusal(404, "x \"x\" not found")));
        let (cluster, asked) = cluster(replies);
        let facts = read(&cluster).await.unwrap();
        let version = "1.36.3".to_owned();
        let expected = TemplateFacts {
            version,
            ..TemplateFacts::default()
        };
        assert_eq!(facts, expected);
        let mut lines = asked.lines();
        lines.sort();
        assert_eq!(
            lines,
            [
                "GET /api/v1/namespaces/kube-system/configmaps/coredns",
                "GET /api/v1/namespaces/kube-system/configmaps/kube-proxy",
                "GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config",
                "GET /api/v1/namespaces/kube-system/services?limit=100",
                "GET /api/v1/nodes?limit=10",
                "GET /apis/apps/v1/daemonsets?limit=100",
                "GET /apis/networking.k8s.io/v1/servicecidrs/kubernetes",
                "GET /version",
            ]
        );
    }

    #[tokio::test]
    async fn a_server_that_breaks_is_an_error() {
        let mut replies = vec![ok(json!({"gitVersion": "v1.36.3"}))];
        replies.extend((0..7).map(|_| refusal(500, "etcdserver: request timed out")));
        let (cluster, _) = cluster(replies);
        let error = read(&cluster).await.unwrap_err();
        assert_eq!(error.code(), Some(500), "{error}");
    }

    async fn both(config_map: Value, secret: Value) -> Result<FactOverlays, OverlayError> {
        // Both requests are sent before one is answered: the responses fit either.
        let (cluster, asked) = cluster(vec![ok(config_map), ok(secret)]);
        let read = read_overlays(&cluster, "shop", false).await;
        assert_eq!(
            asked.lines(),
            [
                "GET /api/v1/namespaces/shop/configmaps/addon-template-data",
                "GET /api/v1/namespaces/shop/secrets/addon-template-data",
            ]
        );
        read
    }

    #[tokio::test]
    async fn the_cluster_object_of_kkp_states_facts() {
        let object = json!({"metadata": {"name": "abc"}, "spec": {
            "humanReadableName": "shop", "version": "1.36.3", "cloud": {"providerName": "aws", "dc": "eu"},
            "cniPlugin": {"type": "canal", "version": "v3.28"}}});
        let overlay = json!({"data": {"data.yaml": "Cluster: {CNIPlugin: {Type: cilium}}"}});
        let (cluster, asked) = cluster(vec![ok(overlay), ok(object)]);
        let stated = read_stated(&cluster, "cluster-abc").await.unwrap();
        // What an administrator writes beside the records takes precedence.
        let expected = json!({"Cluster": {
            "Name": "abc", "HumanReadableName": "shop", "CloudProviderName": "aws",
            "CNIPlugin": {"Type": "cilium", "Version": "v3.28"},
        }});
        assert_eq!(stated.config_map, Some(expected));
        assert_eq!(
            asked.lines(),
            [
                "GET /api/v1/namespaces/cluster-abc/configmaps/addon-template-data",
                "GET /apis/kubermatic.k8c.io/v1/clusters/abc",
            ]
        );
    }

    #[tokio::test]
    async fn without_kkp_nothing_is_stated() {
        for reply in [forbidden(), refusal(404, "the server could not find it")] {
            let (cluster, _) = cluster(vec![refusal(404, "x not found"), reply]);
            let stated = read_stated(&cluster, "cluster-abc").await.unwrap();
            assert_eq!(stated, FactOverlays::default());
        }
        let (cluster, asked) = cluster(vec![refusal(404, "x not found")]);
        let stated = read_stated(&cluster, "shop").await.unwrap();
        assert_eq!(stated, FactOverlays::default());
        assert_eq!(asked.lines().len(), 1);
    }

    #[tokio::test]
    async fn both_objects_and_both_keys_are_read() {
        let config_map = json!({"metadata": {"uid": "c"}, "data": {
            "data.yaml": "DatacenterName: eu\nCluster: {Name: a}\n", "data.json": r#"{"Cluster": {"Name": "b"}}"#,
            "notes": "- no data"}});
        let labels = json!({"kubectl-addons.dev/values": "true"});
        let secret = json!({"metadata": {"uid": "s", "resourceVersion": "7", "labels": labels},
            "data": {"data.yaml": STANDARD.encode("Credentials: {Hetzner: {Token: s3cret}}\n")}});
        let overlays = both(config_map, secret).await.unwrap();
        assert_eq!(
            overlays.config_map,
            Some(json!({"DatacenterName": "eu", "Cluster": {"Name": "b"}}))
        );
        let secret = overlays.secret.unwrap();
        assert_eq!(secret.revision, "s/7");
        assert_eq!(
            secret.document,
            json!({"Credentials": {"Hetzner": {"Token": "s3cret"}}})
        );
        let nothing = json!({"metadata": {}, "data": null});
        let overlays = both(nothing.clone(), nothing).await.unwrap();
        assert_eq!(overlays, FactOverlays::default());
    }

    #[tokio::test]
    async fn a_secret_without_the_label_is_not_for_values() {
        let secret = json!({"data": {"data.yaml": STANDARD.encode("a: 1")}});
        let error = both(json!({}), secret).await.unwrap_err();
        let expected = SecretValuesError::Unlabelled {
            namespace: "shop".to_owned(),
            name: TEMPLATE_DATA.to_owned(),
        };
        assert!(
            matches!(&error, OverlayError::NotValues(why) if *why == expected),
            "{error}"
        );
    }

    #[tokio::test]
    async fn errors_name_object_and_key_and_nothing_secret() {
        let secret = |text: &str| json!({"data": {"data.yaml": text}});
        for (text, message) in [
            (
                STANDARD.encode("s3cret: [\n"),
                "shop/Secret addon-template-data, data.yaml:1:9: cannot be read as YAML",
            ),
            (
                STANDARD.encode("- s3cret\n"),
                "shop/Secret addon-template-data, data.yaml:1: the data of templates is one map, as in `Cluster: {Name: shop}`",
            ),
            (
                "s3cret!".to_owned(),
                "shop/Secret addon-template-data, data.yaml: it is not base64",
            ),
        ] {
            let error = both(json!({}), secret(&text)).await.unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(!format!("{error:?}").contains("s3cret"));
        }
        let (cluster, _) = cluster(vec![forbidden(), forbidden()]);
        let error = read_overlays(&cluster, "shop", true).await.unwrap_err();
        assert!(
            matches!(error, OverlayError::Engine(EngineError::Forbidden { .. })),
            "{error}"
        );
    }
}
