//! The proxy counts and breaks exactly what it is told to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::proxy::{Action, Fault, Proxy};
use anyhow::Result;
use futures::StreamExt as _;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};

use super::config_map;

/// A namespace, and the ConfigMaps in it through the proxy and directly.
struct Setup {
    cluster: Arc<ControlPlane>,
    proxy: Proxy,
    through: Api<ConfigMap>,
    direct: Api<ConfigMap>,
}

impl Setup {
    async fn new() -> Result<Self> {
        let cluster = ControlPlane::shared().await?;
        let namespace = cluster.namespace("harness-proxy").await?;
        let proxy = Proxy::start(&cluster)?;
        let through = Api::namespaced(client(proxy.kubeconfig()).await?, &namespace);
        let direct = Api::namespaced(cluster.client().await?, &namespace);
        Ok(Self {
            cluster,
            proxy,
            through,
            direct,
        })
    }

    async fn create(&self, name: &str) -> Result<ConfigMap, kube::Error> {
        self.through
            .create(&PostParams::default(), &config_map(name))
            .await
    }

    fn statuses(&self) -> Vec<Option<u16>> {
        self.proxy
            .requests()
            .iter()
            .map(|seen| seen.status)
            .collect()
    }
}

#[tokio::test]
async fn requests_pass_in_the_name_of_the_clients_user() -> Result<()> {
    let setup = Setup::new().await?;
    setup.create("plain").await?;
    let jane = setup.cluster.user(&unique("jane"), &["ops"])?;
    let kubeconfig = setup.proxy.client("second", &jane)?;
    let answer = Api::<SelfSubjectReview>::all(client(&kubeconfig).await?)
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    let info = answer
        .status
        .and_then(|status| status.user_info)
        .unwrap_or_default();
    assert_eq!(info.username, Some(jane.name));
    assert!(info.groups.unwrap_or_default().contains(&"ops".to_owned()));
    let seen = setup.proxy.requests();
    let clients: Vec<_> = seen
        .iter()
        .map(|seen| (seen.client.as_str(), seen.method.as_str(), seen.status))
        .collect();
    assert_eq!(
        clients,
        [
            ("default", "POST", Some(201)),
            ("second", "POST", Some(201))
        ]
    );
    Ok(())
}

#[tokio::test]
async fn an_answer_in_place_of_the_api_server() -> Result<()> {
    let setup = Setup::new().await?;
    setup.proxy.fault(
        Fault::at(
            1,
            Action::Answer {
                status: 500,
                retry_after: None,
            },
        )
        .method("POST"),
    );
    let error = setup.create("refused").await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 500),
        "{error}"
    );
    assert!(setup.direct.get_opt("refused").await?.is_none());
    // kube tries a 429 again.
    setup.proxy.fault(
        Fault::at(
            1,
            Action::Answer {
                status: 429,
                retry_after: Some(0),
            },
        )
        .times(2),
    );
    setup.create("later").await?;
    assert_eq!(
        setup.statuses(),
        [Some(500), Some(429), Some(429), Some(201)]
    );
    Ok(())
}

#[tokio::test]
async fn a_cut_before_and_after_delivery() -> Result<()> {
    let setup = Setup::new().await?;
    setup
        .proxy
        .fault(Fault::at(2, Action::Cut { delivered: false }));
    setup
        .proxy
        .fault(Fault::at(3, Action::Cut { delivered: true }));
    setup.create("first").await?;
    setup.create("second").await.unwrap_err();
    setup.create("third").await.unwrap_err();
    setup.create("fourth").await?;
    assert!(
        setup.direct.get_opt("second").await?.is_none(),
        "not delivered"
    );
    assert!(setup.direct.get_opt("third").await?.is_some(), "delivered");
    assert_eq!(setup.statuses(), [Some(201), None, None, Some(201)]);
    Ok(())
}

#[tokio::test]
async fn a_stopped_client_is_gone_for_good_and_others_are_not() -> Result<()> {
    for delivered in [false, true] {
        let setup = Setup::new().await?;
        let kubeconfig = setup.proxy.client("other", setup.cluster.admin())?;
        let other = Api::<ConfigMap>::namespaced(
            client(&kubeconfig).await?,
            setup.direct.namespace().unwrap(),
        );
        setup
            .proxy
            .fault(Fault::at(2, Action::Stop { delivered }).client("default"));
        setup.create("first").await?;
        other.get("first").await?;
        setup.create("second").await.unwrap_err();
        setup.create("third").await.unwrap_err();
        assert_eq!(other.get_opt("second").await?.is_some(), delivered);
        assert!(other.get_opt("third").await?.is_none());
        setup.proxy.heal();
        setup.create("fourth").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_stop_ends_the_watches_of_the_client() -> Result<()> {
    let setup = Setup::new().await?;
    let mut events = setup
        .through
        .watch(&kube::api::WatchParams::default(), "0")
        .await?
        .boxed();
    setup
        .proxy
        .fault(Fault::at(1, Action::Stop { delivered: false }).method("POST"));
    setup.create("never").await.unwrap_err();
    // Whatever the watch began with, it ends instead of waiting for ever.
    while let Some(Ok(_)) = events.next().await {}
    Ok(())
}

#[tokio::test]
async fn a_read_is_answered_as_it_was_before() -> Result<()> {
    let setup = Setup::new().await?;
    let names = async || {
        let found = setup.through.list(&ListParams::default()).await?;
        let names = found.items.into_iter().map(|map| map.name_any());
        anyhow::Ok(
            names
                .filter(|name| name != "kube-root-ca.crt")
                .collect::<Vec<_>>(),
        )
    };
    setup.create("first").await?;
    setup.proxy.remember(true);
    assert_eq!(names().await?, ["first"]);
    setup.proxy.remember(false);
    setup.create("second").await?;
    assert_eq!(names().await?, ["first", "second"]);
    setup
        .proxy
        .fault(Fault::always(Action::Replay).path("/configmaps"));
    assert_eq!(names().await?, ["first"]);
    // What was not asked before, and what is no read.
    assert!(setup.through.get_opt("second").await?.is_some());
    setup.create("third").await?;
    setup.proxy.heal();
    assert_eq!(names().await?, ["first", "second", "third"]);
    Ok(())
}

#[tokio::test]
async fn a_hidden_event_never_comes() -> Result<()> {
    use futures::TryStreamExt as _;
    let setup = Setup::new().await?;
    setup.create("kept").await?;
    let begun = setup.through.list(&ListParams::default()).await?;
    let version = begun.metadata.resource_version.unwrap_or_default();
    let watched = WatchParams::default();
    let mut events = setup.through.watch(&watched, &version).await?.boxed();
    setup.proxy.hide("/configmaps", &["DELETED"], "kept");
    setup
        .direct
        .delete("kept", &DeleteParams::default())
        .await?;
    setup.create("next").await?;
    let mut seen = Vec::new();
    while let Some(event) = events.try_next().await? {
        let (WatchEvent::Added(map) | WatchEvent::Deleted(map)) = event else {
            continue;
        };
        // A controller adds a ConfigMap of its own to each namespace.
        seen.push(map.name_any());
        if map.name_any() == "next" {
            break;
        }
    }
    seen.retain(|name| name != "kube-root-ca.crt");
    assert_eq!(seen, ["next"]);
    assert_eq!(setup.proxy.hits(), 1);
    Ok(())
}

#[tokio::test]
async fn a_delay() -> Result<()> {
    let setup = Setup::new().await?;
    let delay = Duration::from_millis(300);
    setup
        .proxy
        .fault(Fault::always(Action::Delay(delay)).path("/configmaps"));
    let began = Instant::now();
    setup.create("slow").await?;
    assert!(began.elapsed() >= delay);
    Ok(())
}
