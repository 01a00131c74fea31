//! The source of the serving certificate: files that others renew, or an authority that the webhook manages itself.

mod managed;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use certs::reload::{ReloadOutcome, Reloader};
use certs::serving::ServedCertificate;
use kube::Client;
use tracing::{info, warn};

use self::managed::CertificateManager;
use crate::args::Args;
use crate::server::now;
use crate::state::WebhookState;

/// Keeps the served certificate valid.
pub enum Certificates {
    /// Files, and how often they are read.
    Files(Reloader, Duration),
    /// The authority in the Secret that all replicas share.
    Managed(Box<CertificateManager>),
}

impl Certificates {
    /// Chooses the source by the flags. Files are read and verified at once; a managed certificate is issued by [`Certificates::keep`].
    pub fn new(
        args: &Args,
        client: Client,
        served: &Arc<ServedCertificate>,
    ) -> anyhow::Result<Self> {
        let served = Arc::clone(served);
        let Some(files) = args.files() else {
            let manager =
                CertificateManager::new(client, args.lifetimes()?, &args.system_namespace, served);
            return Ok(Self::Managed(Box::new(manager)));
        };
        let reloader = Reloader::new(files, served, now())
            .context("the serving certificate cannot be used")?;
        let interval = Duration::from_secs(args.tls_poll_seconds);
        Ok(Self::Files(reloader, interval))
    }

    /// Renews the certificate until it is aborted.
    pub async fn keep(self, state: Arc<WebhookState>) {
        match self {
            Self::Files(reloader, interval) => reload(reloader, &state, interval).await,
            Self::Managed(manager) => manager.keep(&state).await,
        }
    }
}

/// Reads the files every `interval`.
async fn reload(mut reloader: Reloader, state: &WebhookState, interval: Duration) {
    loop {
        let not_after = publish(state);
        tokio::time::sleep(interval).await;
        match reloader.poll(now()) {
            ReloadOutcome::Unchanged => {}
            ReloadOutcome::Swapped => info!(not_after, "serving a new certificate"),
            ReloadOutcome::Kept(error) => {
                state.metrics.certificate_refusals.inc();
                let error = anyhow::Error::new(error);
                warn!(
                    error = format!("{error:#}"),
                    "the new certificate is not served"
                );
            }
        }
    }
}

/// Writes the expiry of the served certificate to the metrics, or 0 if none is served, and returns it.
fn publish(state: &WebhookState) -> i64 {
    let not_after = state.certificate.not_after();
    let seconds = not_after.map_or(0, |at| i64::try_from(at.as_secs()).unwrap_or(i64::MAX));
    state.metrics.certificate_not_after.set(seconds);
    seconds
}
