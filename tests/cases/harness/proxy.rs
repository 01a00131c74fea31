//! The proxy counts and breaks exactly what it is told to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::proxy::{Action, Fault, Proxy};
use anyhow::Result;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};

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
    use futures::StreamExt as _;
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
