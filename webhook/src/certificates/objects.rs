//! The Secret with the authority, and the two configurations that announce it.

use std::fmt::Debug;
use std::time::Duration;

use certs::inject::{CONFIGURATION, Configuration};
use certs::shared::{Data, Shared};
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

use crate::follow::{Event, Follower};

/// The name of the Secret (`deploy/base`).
pub const SECRET: &str = "addons-webhook-ca";
/// The field manager of all writes.
const MANAGER: &str = "addons-webhook";
/// A configuration is listed again after this long without a word from the API server, which sends a bookmark about every minute.
const QUIET: Duration = Duration::from_secs(300);

/// Reads and writes the objects that the webhook may write.
pub struct Objects {
    client: Client,
    namespace: String,
}

/// Changes of the two configurations.
pub struct Changes(Receiver<Event<()>>);

/// The Secret as it was read, and its content.
pub struct Stored {
    secret: Secret,
    data: Data,
    /// The usable part of the content.
    pub shared: Shared,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The write succeeded.
    Done,
    /// Another client wrote in between: the object has to be read again.
    Lost,
}

impl Objects {
    /// Uses the namespace in which the webhook runs.
    pub fn new(client: Client, namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        Self { client, namespace }
    }

    /// Reads the Secret, and creates an empty one if it does not exist.
    pub async fn secret(&self, now: Timestamp) -> kube::Result<Stored> {
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
        let data: Data = data
            .map(|(key, value)| (key, Zeroizing::new(value.0)))
            .collect();
        let shared = Shared::read(&data, now);
        Ok(Stored {
            secret,
            data,
            shared,
        })
    }

    /// Writes the content, if the Secret is still the one that was read.
    pub async fn store(
        &self,
        mut secret: Secret,
        before: &Data,
        shared: &Shared,
    ) -> kube::Result<Write> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let data = shared.write(before).into_iter();
        let data = data.map(|(key, value)| (key, ByteString(value.to_vec())));
        secret.data = Some(data.collect());
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        settle(secrets.replace(SECRET, &params, &secret).await)
    }

    /// Reads the configurations that exist.
    pub async fn configurations(&self) -> kube::Result<Vec<(ApiResource, Configuration)>> {
        let mut found = Vec::new();
        for resource in [
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ] {
            let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
            if let Some(object) = api.get_opt(CONFIGURATION).await? {
                let object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
                found.push((resource, Configuration::read(&object, &self.namespace)));
            }
        }
        Ok(found)
    }

    /// Sends a patch of a configuration, if it is still the one that was read.
    pub async fn patch(&self, resource: &ApiResource, patch: Value) -> kube::Result<Write> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), resource);
        let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Json::<()>(patch);
        settle(api.patch(CONFIGURATION, &params, &patch).await)
    }

    /// Watches the configurations in the background, for as long as the receiver exists.
    pub fn changes(&self) -> Changes {
        let (sender, changes) = channel(1);
        let mutating = follow::<MutatingWebhookConfiguration>(
            self.client.clone(),
            "mutatingwebhookconfigurations",
            sender.clone(),
        );
        let validating = follow::<ValidatingWebhookConfiguration>(
            self.client.clone(),
            "validatingwebhookconfigurations",
            sender,
        );
        tokio::spawn(async { tokio::join!(mutating, validating) });
        Changes(changes)
    }
}

impl Changes {
    /// Waits until one of the configurations changes; `None` if they are no longer watched.
    pub async fn next(&mut self) -> Option<()> {
        loop {
            match self.0.recv().await? {
                Event::Bookmark => {}
                Event::Listed(_) | Event::Changed(..) => return Some(()),
            }
        }
    }
}

impl Stored {
    /// Returns the Secret, its data, and the usable part of the data.
    pub fn into_parts(self) -> (Secret, Data, Shared) {
        (self.secret, self.data, self.shared)
    }
}

/// Converts the result of a write. A conflict with another write is not an error.
fn settle<T>(result: kube::Result<T>) -> kube::Result<Write> {
    match result {
        Ok(_) => Ok(Write::Done),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {
            debug!(
                code = status.code,
                message = status.message,
                "a write was lost"
            );
            Ok(Write::Lost)
        }
        Err(error) => Err(error),
    }
}

/// Follows one of the configurations. Only the fact that it changes matters.
async fn follow<K>(client: Client, resource: &'static str, sender: Sender<Event<()>>)
where
    K: Resource<DynamicType = ()> + Clone + Debug,
{
    let follower = Follower {
        resource,
        api: Api::<PartialObjectMeta<K>>::all(client),
        name: Some(CONFIGURATION),
        reduce: |_| Some(()),
        weigh: |()| 0,
        most: 0,
        change: |event| event,
        quiet: QUIET,
        sender,
    };
    follower.run().await;
}
