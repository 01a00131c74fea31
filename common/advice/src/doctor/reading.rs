//! Reads the facts that [`crate::doctor`] diagnoses: at the same time, each with its own timeout. A fact that cannot be read hides no other
//! one.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::doctor::{
    Asked, Certificate, Checked, Facts, Lease, Namespace, Pair, Problem, Server, Unread, Webhook,
    diagnose,
};
use addons_engine::webhooks::Answer;
use addons_engine::{Cluster, EngineError, catalogues, identity, inspect, lease, record, secret};
use addons_plan::standing::Health;
use addons_versions::kubernetes;
use certs::authority;
use certs::inject::{Configuration, SERVICE};
use certs::serving::{Material, verify};
use common::api::installation::AddonInstallation;
use common::api::names::{GROUP, SYSTEM_NAMESPACE};
use common::right::Right;
use futures::future::try_join_all;
use rustls::pki_types::UnixTime;
use serde_json::Value;

use addons_operation::builtin;
use addons_operation::context::Context;
use addons_operation::error::OperationError;
use addons_operation::health;

/// Timeout of one check.
const BOUND: Duration = Duration::from_secs(10);
/// The Secret with the authority that the webhook manages, and the one with a certificate that another tool issues.
const MANAGED: &str = "addons-webhook-ca";
const GIVEN: &str = "addons-webhook-tls";
/// Name of the reconciler's Lease.
const LEASE: &str = "addons-reconciler";
/// The oldest minor version that serves admission policies.
const OLDEST: u64 = 30;

/// Reads the facts and returns the problems of the cluster.
///
/// # Errors
/// The cluster has no configuration to connect with.
pub async fn problems(ctx: &Context) -> Result<Vec<Problem>, OperationError> {
    let cluster = ctx.home().await?;
    let system = ctx.settings().system_namespace.clone();
    let server = match bounded(server(cluster)).await {
        Ok(server) => server,
        // Nothing else can be read.
        Err(unread) => return Ok(vec![Problem::Unreachable { why: unread.why }]),
    };
    let definitions = builtin::definitions()?;
    let policies = builtin::policy_objects()?;
    let rights = rights(&system);
    let (definitions, lacking, webhook, policies, records) = tokio::join!(
        bounded(pairs(cluster, definitions)),
        bounded(async { Ok(inspect::lacking(cluster, &rights).await?) }),
        bounded(read_webhook(ctx, cluster)),
        bounded(pairs(cluster, policies)),
        bounded(async { Ok(record::list(cluster, None).await?) }),
    );
    let (catalogues, lease, owned, namespaces, uid) = tokio::join!(
        bounded(async { Ok(catalogues::list(cluster, &system).await?) }),
        bounded(reconciler(cluster, &system)),
        bounded(async { Ok(inspect::owned(cluster).await?) }),
        bounded(async { Ok(inspect::namespaces(cluster).await?) }),
        bounded(async { Ok(identity::cluster_uid(cluster).await?) }),
    );
    let health = bounded(read_health(ctx, &records, &namespaces)).await;
    Ok(diagnose(&Facts {
        now: cluster.now(),
        system: system.clone(),
        server,
        definitions,
        lacking,
        webhook,
        policies,
        records,
        health,
        catalogues,
        lease,
        owned,
        namespaces,
        cluster: uid,
    }))
}

/// Runs a check with a timeout, and turns its error into text.
async fn bounded<T>(check: impl Future<Output = Result<T, OperationError>>) -> Checked<T> {
    match tokio::time::timeout(BOUND, check).await {
        Ok(Ok(fact)) => Ok(fact),
        Ok(Err(error)) => Err(Unread {
            why: words(&error),
            is_forbidden: error.is_forbidden(),
        }),
        Err(_) => Err(Unread {
            why: format!("no answer within {} s", BOUND.as_secs()),
            is_forbidden: false,
        }),
    }
}

fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    let mut text = String::new();
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

async fn server(cluster: &Cluster) -> Result<Server, OperationError> {
    let version = cluster.kubernetes_version().await?;
    let parsed = kubernetes::parse(&version).ok();
    let is_supported = parsed.is_none_or(|it| (it.major, it.minor) >= (1, OLDEST));
    Ok(Server {
        version,
        is_supported,
    })
}

/// Reads the live counterparts of objects of this release.
async fn pairs(cluster: &Cluster, wanted: Vec<Value>) -> Result<Vec<Pair>, OperationError> {
    let read = wanted.into_iter().map(async |wanted| {
        let live = inspect::object(cluster, &wanted).await?;
        Ok::<_, EngineError>(Pair { wanted, live })
    });
    Ok(try_join_all(read).await?)
}

/// Returns the rights that commands need to read and write records.
fn rights(system: &str) -> Vec<Right> {
    let ours = |verb, resource: &str, namespace: Option<&str>| Right {
        verb,
        group: GROUP.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.map(str::to_owned),
        ..Right::default()
    };
    let writes = ["create", "update", "delete"];
    let writes = writes.map(|verb| ours(verb, "addoninstallations", Some(system)));
    let mut rights = vec![
        ours("list", "addoninstallations", None),
        ours("list", "addoncatalogues", Some(system)),
        ours("update", "addoninstallations/status", Some(system)),
        Right {
            verb: "get",
            resource: "namespaces".to_owned(),
            ..Right::default()
        },
    ];
    rights.extend(writes);
    rights
}

/// Reads the health of the installations of this cluster, by owner hash; empty without records or namespaces.
async fn read_health(
    ctx: &Context,
    records: &Checked<Vec<AddonInstallation>>,
    namespaces: &Checked<BTreeMap<String, Namespace>>,
) -> Result<BTreeMap<String, Health>, OperationError> {
    let (Ok(records), Ok(namespaces)) = (records, namespaces) else {
        return Ok(BTreeMap::new());
    };
    let system = &ctx.settings().system_namespace;
    let is_here = |record: &&AddonInstallation| {
        let namespace = record.metadata.namespace.as_ref();
        let about = namespace.and_then(|namespace| namespaces.get(namespace));
        namespace == Some(system) || about.is_some_and(|about| about.is_local)
    };
    let records: Vec<_> = records.iter().filter(is_here).collect();
    Ok(health::troubles(ctx.home().await?, &records, false).await?)
}

async fn read_webhook(ctx: &Context, cluster: &Cluster) -> Result<Webhook, OperationError> {
    let mut base = builtin::webhook_objects()?;
    // The Secret is checked along with its certificate, and the webhook works without a PodDisruptionBudget.
    base.retain(|object| object["kind"] != "Secret" && object["kind"] != "PodDisruptionBudget");
    let mut parts = pairs(cluster, base).await?;
    let mut live = parts.iter().filter_map(|part| part.live.as_ref());
    let is_given = live.any(builtin::webhook::has_own_certificate);
    if is_given {
        parts.retain_mut(|part| builtin::webhook::without_managed_certificate(&mut part.wanted));
    }
    let asked = match builtin::webhook::ask(ctx).await? {
        Answer::Denied => Asked::Denied,
        Answer::Accepted => Asked::Accepted,
        Answer::Unanswered(why) => Asked::Unanswered(why),
        Answer::Refused(why) => Asked::Refused(why),
    };
    Ok(Webhook {
        asked,
        ready: inspect::ready(cluster, SYSTEM_NAMESPACE, SERVICE).await?,
        certificate: bounded(certificate(cluster, &parts, is_given)).await,
        parts,
    })
}

/// Reads the Secret of the webhook, and checks whether the configurations trust its authority. `is_given`: another tool issues its
/// certificate.
async fn certificate(
    cluster: &Cluster,
    parts: &[Pair],
    is_given: bool,
) -> Result<Certificate, OperationError> {
    let name = if is_given { GIVEN } else { MANAGED };
    let mut found = Certificate {
        secret: name.to_owned(),
        ..Certificate::default()
    };
    let Some(secret) = secret::get(cluster, SYSTEM_NAMESPACE, name).await? else {
        found.unusable = Some("it does not exist".to_owned());
        return Ok(found);
    };
    let data = secret.data.unwrap_or_default();
    let bytes = |key: &str| data.get(key).map_or(&[][..], |value| &value.0);
    let authority = String::from_utf8_lossy(bytes("ca.crt")).into_owned();
    if is_given {
        let material = Material {
            chain_pem: bytes("tls.crt"),
            key_pem: bytes("tls.key"),
            authority_pem: Some(authority.as_bytes()),
        };
        let now = u64::try_from(cluster.now().as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let names = [format!("{SERVICE}.{SYSTEM_NAMESPACE}.svc")];
        found.unusable = verify(&material, &names, now)
            .err()
            .map(|error| words(&error));
    } else {
        match authority::life(&authority) {
            Ok(life) => found.end = Some(life.end),
            Err(error) => found.unusable = Some(words(&error)),
        }
    }
    if found.unusable.is_none() {
        let live = parts.iter().filter_map(|part| part.live.as_ref());
        let untrusting = live.filter(|live| {
            live["webhooks"].is_array()
                && !Configuration::read(live, SYSTEM_NAMESPACE).carries(&authority)
        });
        let named = untrusting.filter_map(|live| {
            let name = live["metadata"]["name"].as_str()?;
            Some(format!("{} {name}", live["kind"].as_str()?))
        });
        found.untrusted_by = named.collect();
    }
    Ok(found)
}

async fn reconciler(cluster: &Cluster, system: &str) -> Result<Option<Lease>, OperationError> {
    let found = lease::get(cluster, system, LEASE).await?;
    Ok(found.and_then(|lease| lease.spec).map(|spec| Lease {
        holder: spec.holder_identity.unwrap_or_default(),
        renewed: spec.renew_time.map(|time| time.0),
        seconds: i64::from(spec.lease_duration_seconds.unwrap_or_default()),
    }))
}
