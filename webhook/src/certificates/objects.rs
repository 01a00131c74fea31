//! The Secret with the authority, and the two configurations that announce it.

use std::fmt::Debug;
use std::time::Duration;

use addons_telemetry::metrics::WatchFailures;
use certs::inject::{CONFIGURATION, InjectedConfiguration};
use certs::shared::{SecretData, SharedAuthorities};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::debug;
use zeroize::Zeroizing;

use crate::follow::{FollowedEvent, Follower};

/// The name of the Secret (`deploy/base`).
pub const SECRET: &str = "addons-webhook-ca";
/// The field manager of all writes.
const MANAGER: &str = "addons-webhook";
/// A configuration is listed again after this long without a word from the API server, which sends a bookmark about every minute.
const QUIET: Duration = Duration::from_secs(300);

/// Reads and writes the objects that the webhook may write.
pub struct CertificateObjects {
    client: Client,
    namespace: String,
}

/// Changes of the two configurations.
pub struct ConfigurationChanges(Receiver<FollowedEvent<()>>);

/// The Secret as it was read, and its content.
pub struct StoredSecret {
    secret: Secret,
    data: SecretData,
    /// The usable part of the content.
    pub shared: SharedAuthorities,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The write succeeded.
    Done,
    /// Another client wrote in between: the object has to be read again.
    Lost,
}

impl CertificateObjects {
    /// Uses the namespace in which the webhook runs.
    pub fn new(client: Client, namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        Self { client, namespace }
    }

    /// Reads the Secret, and creates an empty one if it does not exist.
    pub async fn read_secret(&self, now: Timestamp) -> kube::Result<StoredSecret> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let mut secret = match secrets.get_opt(SECRET).await? {
            Some(secret) => secret,
            // Created by server-side apply, because RBAC then knows the name: the right to create is limited to this Secret. It sets no
            // data, so two replicas that do it at the same time do not undo each other.
            None => {
                let empty = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": SECRET, "namespace": self.namespace},
                });
                let params = PatchParams::apply(MANAGER);
                secrets.patch(SECRET, &params, &Patch::Apply(empty)).await?
            }
        };
        let data = secret.data.take().unwrap_or_default().into_iter();
        let data: SecretData = data
            .map(|(key, value)| (key, Zeroizing::new(value.0)))
            .collect();
        let shared = SharedAuthorities::read(&data, now);
        Ok(StoredSecret {
            secret,
            data,
            shared,
        })
    }

    /// Writes the content, if the Secret is still the one that was read.
    pub async fn store(
        &self,
        mut secret: Secret,
        before: &SecretData,
        shared: &SharedAuthorities,
    ) -> kube::Result<WriteOutcome> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let data = shared.write(before).into_iter();
        let data = data.map(|(key, value)| (key, ByteString(value.to_vec())));
        secret.data = Some(data.collect());
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        to_write_outcome(secrets.replace(SECRET, &params, &secret).await)
    }

    /// Reads the configurations that exist.
    pub async fn read_configurations(
        &self,
    ) -> kube::Result<Vec<(ApiResource, InjectedConfiguration)>> {
        let mut found = Vec::new();
        for resource in [
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ] {
            let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
            if let Some(object) = api.get_opt(CONFIGURATION).await? {
                let object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
                found.push((
                    resource,
                    InjectedConfiguration::read(&object, &self.namespace),
                ));
            }
        }
        Ok(found)
    }

    /// Sends a patch of a configuration, if it is still the one that was read.
    pub async fn patch(&self, resource: &ApiResource, patch: Value) -> kube::Result<WriteOutcome> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), resource);
        let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Json::<()>(patch);
        to_write_outcome(api.patch(CONFIGURATION, &params, &patch).await)
    }

    /// Watches the configurations in the background, for as long as the receiver exists.
    pub fn watch_configurations(&self, failures: &WatchFailures) -> ConfigurationChanges {
        let (sender, changes) = channel(1);
        let mutating = follow_configuration::<MutatingWebhookConfiguration>(
            self.client.clone(),
            "mutatingwebhookconfigurations",
            failures.clone(),
            sender.clone(),
        );
        let validating = follow_configuration::<ValidatingWebhookConfiguration>(
            self.client.clone(),
            "validatingwebhookconfigurations",
            failures.clone(),
            sender,
        );
        tokio::spawn(async { tokio::join!(mutating, validating) });
        ConfigurationChanges(changes)
    }
}

impl ConfigurationChanges {
    /// Waits until one of the configurations changes; `None` if they are no longer watched.
    pub async fn next(&mut self) -> Option<()> {
        loop {
            match self.0.recv().await? {
                FollowedEvent::Bookmark => {}
                FollowedEvent::Listed(_) | FollowedEvent::Changed(..) => return Some(()),
            }
        }
    }
}

impl StoredSecret {
    /// Returns the Secret, its data, and the usable part of the data.
    pub fn into_parts(self) -> (Secret, SecretData, SharedAuthorities) {
        (self.secret, self.data, self.shared)
    }
}

/// Converts the result of a write. A conflict with another write is not an error.
fn to_write_outcome<T>(result: kube::Result<T>) -> kube::Result<WriteOutcome> {
    match result {
        Ok(_) => Ok(WriteOutcome::Done),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {
            debug!(
                code = status.code,
                message = status.message,
                "a write was lost"
            );
            Ok(WriteOutcome::Lost)
        }
        Err(error) => Err(error),
    }
}

/// Follows one of the configurations. Only the fact that it changes matters.
async fn follow_configuration<K>(
    client: Client,
    resource: &'static str,
    failures: WatchFailures,
    sender: Sender<FollowedEvent<()>>,
) where
    K: Resource<DynamicType = ()> + Clone + Debug,
{
    let follower = Follower {
        resource,
        api: Api::<PartialObjectMeta<K>>::all(client),
        name: Some(CONFIGURATION),
        reduce: |_| Some(()),
        weigh: |()| 0,
        max_weight: 0,
        to_message: |event| event,
        max_silence: QUIET,
        failures,
        sender,
    };
    follower.run().await;
}
