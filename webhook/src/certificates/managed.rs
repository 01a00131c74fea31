//! The authority that all replicas share in one Secret, and the certificate that this replica signs with it.
//!
//! Every pass reads the current state and does what is due, so it does not matter which replica took the last step: the next pass repairs
//! a step that a replica did not finish, an emptied Secret, and a wiped caBundle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use certs::authority::{Authority, CertificateLife};
use certs::inject::{InjectedConfiguration, SERVICE};
use certs::rotation::{self, LeafState, Lifetimes, RotationStep};
use certs::serving::ServedCertificate;
use certs::serving::{CertificateMaterial, verify};
use certs::shared::SharedAuthorities;
use jiff::Timestamp;
use kube::Client;
use kube::core::ApiResource;
use tokio::time::Instant;
use tracing::{info, warn};

use super::objects::{CertificateObjects, WriteOutcome};
use crate::server;
use crate::state::WebhookState;

/// The pause after a failed pass.
const RETRY: Duration = Duration::from_secs(2);
/// The pause between two passes that the clock did not start. It doubles as long as each pass writes: if another client keeps writing the
/// same fields, neither of the two may keep the API server busy.
const PAUSE: Duration = Duration::from_millis(100);

/// Keeps the authority, the configurations and the certificate up to date.
pub struct CertificateManager {
    objects: CertificateObjects,
    lifetimes: Lifetimes,
    names: Vec<String>,
    served: Arc<ServedCertificate>,
    signed: Option<SignedCertificate>,
    carried: CarriedAuthorities,
}

/// The served certificate.
#[derive(Debug)]
struct SignedCertificate {
    life: CertificateLife,
    authority_pem: String,
}

/// Since when the configurations carry which authorities, as far as this replica has seen.
#[derive(Debug, Default)]
struct CarriedAuthorities(BTreeMap<String, Instant>);

impl CertificateManager {
    /// Creates a manager for the Service in this namespace. Nothing is read or written yet.
    pub fn new(
        client: Client,
        lifetimes: Lifetimes,
        namespace: &str,
        served: Arc<ServedCertificate>,
    ) -> Self {
        let name = format!("{SERVICE}.{namespace}.svc");
        Self {
            objects: CertificateObjects::new(client, namespace),
            lifetimes,
            names: vec![name.clone(), format!("{name}.cluster.local")],
            served,
            signed: None,
            carried: CarriedAuthorities::default(),
        }
    }

    /// Makes a pass on every change of a configuration, and by the clock. The wall clock decides what is due, because timers stand still
    /// while a machine sleeps.
    pub async fn keep(mut self, state: &WebhookState) {
        let mut changes = self
            .objects
            .watch_configurations(&state.metrics.watch_failures);
        let interval = self.lifetimes.interval();
        let mut pause = PAUSE;
        loop {
            let wait = match self.pass().await {
                Ok(WriteOutcome::Done) => {
                    pause = PAUSE;
                    interval
                }
                Ok(WriteOutcome::Lost) => {
                    pause = (pause * 2).min(interval);
                    pause
                }
                Err(error) => {
                    warn!(
                        error = format!("{error:#}"),
                        "the certificate cannot be kept, trying again"
                    );
                    RETRY.min(interval)
                }
            };
            super::publish(state);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // A burst of changes causes a single pass.
                Some(()) = changes.next() => tokio::time::sleep(pause).await,
            }
        }
    }

    /// Makes one pass over everything; [`WriteOutcome::Lost`] if it has to be repeated because something was written.
    async fn pass(&mut self) -> anyhow::Result<WriteOutcome> {
        let now = Timestamp::now();
        // Read before the Secret: a patch fails if a configuration has changed since, so it never removes an authority that another
        // replica announced after a write of the Secret that this one has not seen.
        let read = self.objects.read_configurations().await;
        let (configurations, failed) = match read {
            Ok(configurations) => (configurations, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let stored = self.objects.read_secret(now).await;
        let (secret, data, mut shared) = stored
            .context("the Secret with the authority cannot be read")?
            .into_parts();
        if let Some(signed) = self
            .signed
            .as_ref()
            .filter(|signed| !signed.life.is_expired(now))
        {
            shared.keep_announcing(&signed.authority_pem, signed.life.end);
        }
        self.carried.observe(&shared, &configurations);
        let settled = |authority: &Authority| {
            let settling = self.lifetimes.settling_time();
            self.carried.is_settled(authority, settling)
        };
        let due = rotation::next_step(&shared, shared.next.as_ref().is_some_and(settled), now);
        if due != RotationStep::Nothing {
            let shared = shared.advance(due, now, &self.lifetimes)?;
            let written = self.objects.store(secret, &data, &shared).await;
            let written = written.context("the Secret with the authority cannot be written")?;
            if written == WriteOutcome::Done {
                info!(step = ?due, "wrote the Secret with the authority");
            }
            return Ok(WriteOutcome::Lost);
        }
        let announced = self.announce(&shared, &configurations).await;
        self.sign(&shared, now)?;
        if let Some(error) = failed {
            return Err(error).context("the webhook configurations cannot be read");
        }
        announced.context("the webhook configurations cannot be written")
    }

    /// Adds all authorities to the configurations that lack them.
    async fn announce(
        &self,
        shared: &SharedAuthorities,
        configurations: &[(ApiResource, InjectedConfiguration)],
    ) -> kube::Result<WriteOutcome> {
        let bundle = shared.bundle();
        let mut written = WriteOutcome::Done;
        for (resource, configuration) in configurations {
            if let Some(patch) = configuration.patch(&bundle) {
                if self.objects.patch(resource, patch).await? == WriteOutcome::Done {
                    info!(kind = resource.kind, "announced the authority");
                }
                written = WriteOutcome::Lost;
            }
        }
        Ok(written)
    }

    /// Signs and serves a certificate if one is due.
    fn sign(&mut self, shared: &SharedAuthorities, now: Timestamp) -> anyhow::Result<()> {
        let Some(current) = &shared.current else {
            return Ok(());
        };
        let authority_pem = current.certificate_pem();
        let leaf = self.signed.as_ref().map(|signed| LeafState {
            life: signed.life,
            is_current: signed.authority_pem == authority_pem,
            is_trusted: self.carried.has(&signed.authority_pem),
        });
        let is_settled = self
            .carried
            .is_settled(current, self.lifetimes.settling_time());
        if !rotation::needs_new_leaf(leaf, self.carried.has(authority_pem), is_settled, now) {
            return Ok(());
        }
        // A certificate never outlives its authority.
        let rest = Duration::try_from(current.life().end.duration_since(now)).unwrap_or_default();
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let issued = current.issue(&names, now, self.lifetimes.leaf.min(rest))?;
        let material = CertificateMaterial {
            chain_pem: issued.certificate_pem.as_bytes(),
            key_pem: issued.key_pem.as_bytes(),
            authority_pem: Some(authority_pem.as_bytes()),
        };
        let serving = verify(&material, &self.names, server::now())
            .context("the certificate that was issued would be refused")?;
        self.served.swap(serving);
        info!(not_after = %issued.life.end, "serving a new certificate");
        self.signed = Some(SignedCertificate {
            life: issued.life,
            authority_pem: authority_pem.to_owned(),
        });
        Ok(())
    }
}

impl CarriedAuthorities {
    /// Records which authorities the configurations carry now.
    fn observe(
        &mut self,
        shared: &SharedAuthorities,
        configurations: &[(ApiResource, InjectedConfiguration)],
    ) {
        let carried = shared.certificates().filter(|certificate| {
            let mut all = configurations.iter();
            !configurations.is_empty() && all.all(|(_, one)| one.trusts(certificate))
        });
        let since = |certificate: &str| {
            let since = self.0.get(certificate).copied();
            since.unwrap_or_else(Instant::now)
        };
        let carried = carried.map(|certificate| (certificate.to_owned(), since(certificate)));
        self.0 = carried.collect();
    }

    fn has(&self, certificate_pem: &str) -> bool {
        self.0.contains_key(certificate_pem)
    }

    fn is_settled(&self, authority: &Authority, settling: Duration) -> bool {
        let since = self.0.get(authority.certificate_pem());
        since.is_some_and(|since| since.elapsed() >= settling)
    }
}
