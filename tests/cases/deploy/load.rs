//! Reviews without a pause: through the API server, and by a client that trusts the caBundle of the moment.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addons_tests::control_plane::cluster::client;
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::names::SYSTEM_NAMESPACE;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::world::{World, duplicate};

/// The name that the API server dials.
const HOST: &str = "addons-webhook.kubectl-addons.svc";

/// Callers that go on until they are stopped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    callers: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    reviews: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Load {
    /// So many callers, each with the next review as soon as it has the answer of the last one. All of them must be denied, so
    /// whatever is let pass is a failure as well.
    pub(crate) async fn start(kubeconfig: &Path, callers: usize) -> Result<Self> {
        let shared = Arc::<Shared>::default();
        let mut tasks = JoinSet::new();
        let object: AddonCatalogue = serde_json::from_value(duplicate())?;
        let client = client(kubeconfig).await?;
        let api = Api::<AddonCatalogue>::namespaced(client, SYSTEM_NAMESPACE);
        for _ in 0..callers {
            let (shared, api, object) = (Arc::clone(&shared), api.clone(), object.clone());
            tasks.spawn(async move {
                let params = PostParams {
                    dry_run: true,
                    ..PostParams::default()
                };
                while !shared.is_over.load(Ordering::Relaxed) {
                    match api.create(&params, &object).await {
                        Err(kube::Error::Api(status))
                            if status.message.contains("denied the request") => {}
                        other => shared.failed(format!("{other:?}")),
                    }
                    shared.reviews.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Ok(Self {
            shared,
            callers: tasks,
        })
    }

    /// How many reviews were answered.
    pub(crate) fn reviews(&self) -> usize {
        self.shared.reviews.load(Ordering::Relaxed)
    }

    /// Reviews over a new connection to each Pod that is ready, trusting what the configurations announce now.
    pub(crate) async fn dial(&self, world: &World) -> Result<()> {
        let bundles = world.bundles().await?;
        let bundle = bundles.first().context("no bundle")?;
        for (pod, address) in world.kubelet.reviews() {
            self.ask(&pod, (HOST, address), bundle).await?;
        }
        Ok(())
    }

    /// A review over a new connection to a server, which must prove that it is `host` to whoever trusts `authorities`.
    pub(crate) async fn ask(
        &self,
        server: &str,
        (host, address): (&str, SocketAddr),
        authorities: &str,
    ) -> Result<()> {
        let roots = reqwest::Certificate::from_pem_bundle(authorities.as_bytes())?;
        let client = reqwest::Client::builder()
            .tls_certs_only(roots)
            .no_proxy()
            .resolve(host, address)
            .timeout(Duration::from_secs(10))
            .build()?;
        let url = format!("https://{host}:{}/validate", address.port());
        let request = client
            .post(url)
            .header("Content-Type", "application/json")
            .body(review().to_string());
        match request.send().await {
            Ok(answer) if answer.status() == 200 => {}
            other => self.shared.failed(format!("{server}: {other:?}")),
        }
        self.shared.reviews.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether at least one caller still calls.
    pub(crate) fn is_going_on(&self) -> bool {
        !self.callers.is_empty() && !self.shared.is_over.load(Ordering::Relaxed)
    }

    /// Ends the callers after their last review: how many there were.
    ///
    /// # Errors
    /// Where a review failed, with what the servers logged.
    pub(crate) async fn stop(mut self, logs: impl FnOnce() -> String) -> Result<usize> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while self.callers.join_next().await.is_some() {}
        let reviews = self.reviews();
        let failures = self.shared.failures.lock();
        let failures = failures.unwrap_or_else(PoisonError::into_inner);
        ensure!(
            failures.is_empty(),
            "{} of {reviews} reviews failed, as {:?}\n{}",
            failures.len(),
            failures.first(),
            logs()
        );
        Ok(reviews)
    }
}

impl Shared {
    fn failed(&self, why: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(why);
    }
}

/// A small review.
fn review() -> Value {
    let group = "kubectl-addons.dev";
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "dialled", "operation": "CREATE", "name": "x", "namespace": SYSTEM_NAMESPACE,
            "kind": {"group": group, "version": "v1alpha1", "kind": "AddonCatalogue"},
            "resource": {"group": group, "version": "v1alpha1", "resource": "addoncatalogues"},
            "userInfo": {"username": "jane"}, "object": duplicate(), "oldObject": null,
        },
    })
}
