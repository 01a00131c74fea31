//! Reads the facts that [`crate::doctor`] diagnoses: at the same time, each with its own timeout. A fact that cannot be read hides no other
//! one.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::doctor::{
    CertificateFacts, DoctorFacts, DoctorProblem, FactResult, Lease, NamespaceState, ObjectPair,
    Server, UnreadFact, WebhookFacts, WebhookReply, diagnose,
};
use addons_engine::webhooks::WebhookAnswer;
use addons_engine::{Cluster, EngineError, catalogues, identity, inspect, lease, record, secret};
use addons_plan::standing::Health;
use addons_versions::tolerant;
use certs::authority;
use certs::inject::{InjectedConfiguration, SERVICE};
use certs::serving::{CertificateMaterial, verify};
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
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The Secret with the authority that the webhook manages, and the one with a certificate that another tool issues.
const MANAGED_SECRET: &str = "addons-webhook-ca";
const PROVIDED_SECRET: &str = "addons-webhook-tls";
/// Name of the reconciler's Lease.
const LEASE: &str = "addons-reconciler";
/// The oldest minor version that serves admission policies.
const OLDEST_MINOR: u64 = 30;

/// Reads the facts and returns the problems of the cluster.
///
/// # Errors
/// The cluster has no configuration to connect with.
pub async fn find_problems(ctx: &Context) -> Result<Vec<DoctorProblem>, OperationError> {
    let cluster = ctx.home().await?;
    let system = ctx.settings().system_namespace.clone();
    let server = match with_timeout(read_server(cluster)).await {
        Ok(server) => server,
        // Nothing else can be read.
        Err(unread) => return Ok(vec![DoctorProblem::Unreachable { why: unread.why }]),
    };
    let definitions = builtin::definitions()?;
    let policies = builtin::policy_objects()?;
    let rights = needed_rights(&system);
    let (definitions, lacking, webhook, policies, records) = tokio::join!(
        with_timeout(read_pairs(cluster, definitions)),
        with_timeout(async { Ok(inspect::missing_rights(cluster, &rights).await?) }),
        with_timeout(read_webhook(ctx, cluster)),
        with_timeout(read_pairs(cluster, policies)),
        with_timeout(async { Ok(record::list(cluster, None).await?) }),
    );
    let (catalogues, lease, owned, namespaces, uid) = tokio::join!(
        with_timeout(async { Ok(catalogues::list(cluster, &system).await?) }),
        with_timeout(read_lease(cluster, &system)),
        with_timeout(async { Ok(inspect::list_owned(cluster).await?) }),
        with_timeout(async { Ok(inspect::list_namespaces(cluster).await?) }),
        with_timeout(async { Ok(identity::cluster_uid(cluster).await?) }),
    );
    let health = with_timeout(read_health(ctx, &records, &namespaces)).await;
    Ok(diagnose(&DoctorFacts {
        now: cluster.now(),
        system: system.clone(),
        server,
        definitions,
        missing_rights: lacking,
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
async fn with_timeout<T>(check: impl Future<Output = Result<T, OperationError>>) -> FactResult<T> {
    match tokio::time::timeout(CHECK_TIMEOUT, check).await {
        Ok(Ok(fact)) => Ok(fact),
        Ok(Err(error)) => Err(UnreadFact {
            why: describe_error(&error),
            is_forbidden: error.is_forbidden(),
        }),
        Err(_) => Err(UnreadFact {
            why: format!("no answer within {} s", CHECK_TIMEOUT.as_secs()),
            is_forbidden: false,
        }),
    }
}

fn describe_error(error: &(dyn std::error::Error + 'static)) -> String {
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

async fn read_server(cluster: &Cluster) -> Result<Server, OperationError> {
    let version = cluster.kubernetes_version().await?;
    let parsed = tolerant::parse_kubernetes(&version).ok();
    let is_supported = parsed.is_none_or(|it| (it.major, it.minor) >= (1, OLDEST_MINOR));
    Ok(Server {
        version,
        is_supported,
    })
}

/// Reads the live counterparts of objects of this release.
async fn read_pairs(
    cluster: &Cluster,
    wanted: Vec<Value>,
) -> Result<Vec<ObjectPair>, OperationError> {
    let read = wanted.into_iter().map(async |wanted| {
        let live = inspect::read_object(cluster, &wanted).await?;
        Ok::<_, EngineError>(ObjectPair { wanted, live })
    });
    Ok(try_join_all(read).await?)
}

/// Returns the rights that commands need to read and write records.
fn needed_rights(system: &str) -> Vec<Right> {
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
    records: &FactResult<Vec<AddonInstallation>>,
    namespaces: &FactResult<BTreeMap<String, NamespaceState>>,
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
    Ok(health::find_troubles(ctx.home().await?, &records, false).await?)
}

async fn read_webhook(ctx: &Context, cluster: &Cluster) -> Result<WebhookFacts, OperationError> {
    let mut base = builtin::webhook_objects()?;
    // The Secret is checked along with its certificate, and the webhook works without a PodDisruptionBudget.
    base.retain(|object| object["kind"] != "Secret" && object["kind"] != "PodDisruptionBudget");
    let mut parts = read_pairs(cluster, base).await?;
    let mut live = parts.iter().filter_map(|part| part.live.as_ref());
    let is_given = live.any(builtin::webhook::has_own_certificate);
    if is_given {
        parts.retain_mut(|part| builtin::webhook::strip_managed_certificate(&mut part.wanted));
    }
    let asked = match builtin::webhook::probe(ctx).await? {
        WebhookAnswer::Denied => WebhookReply::Denied,
        WebhookAnswer::Accepted => WebhookReply::Accepted,
        WebhookAnswer::Unanswered(why) => WebhookReply::Unanswered(why),
        WebhookAnswer::Refused(why) => WebhookReply::Refused(why),
    };
    Ok(WebhookFacts {
        reply: asked,
        ready: inspect::count_ready_endpoints(cluster, SYSTEM_NAMESPACE, SERVICE).await?,
        certificate: with_timeout(read_certificate(cluster, &parts, is_given)).await,
        parts,
    })
}

/// Reads the Secret of the webhook, and checks whether the configurations trust its authority. `is_given`: another tool issues its
/// certificate.
async fn read_certificate(
    cluster: &Cluster,
    parts: &[ObjectPair],
    is_given: bool,
) -> Result<CertificateFacts, OperationError> {
    let name = if is_given {
        PROVIDED_SECRET
    } else {
        MANAGED_SECRET
    };
    let mut found = CertificateFacts {
        secret: name.to_owned(),
        ..CertificateFacts::default()
    };
    let Some(secret) = secret::get(cluster, SYSTEM_NAMESPACE, name).await? else {
        found.unusable = Some("it does not exist".to_owned());
        return Ok(found);
    };
    let data = secret.data.unwrap_or_default();
    let bytes = |key: &str| data.get(key).map_or(&[][..], |value| &value.0);
    let authority = String::from_utf8_lossy(bytes("ca.crt")).into_owned();
    if is_given {
        let material = CertificateMaterial {
            chain_pem: bytes("tls.crt"),
            key_pem: bytes("tls.key"),
            authority_pem: Some(authority.as_bytes()),
        };
        let now = u64::try_from(cluster.now().as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let names = [format!("{SERVICE}.{SYSTEM_NAMESPACE}.svc")];
        found.unusable = verify(&material, &names, now)
            .err()
            .map(|error| describe_error(&error));
    } else {
        match authority::read_life(&authority) {
            Ok(life) => found.end = Some(life.end),
            Err(error) => found.unusable = Some(describe_error(&error)),
        }
    }
    if found.unusable.is_none() {
        let live = parts.iter().filter_map(|part| part.live.as_ref());
        let untrusting = live.filter(|live| {
            live["webhooks"].is_array()
                && !InjectedConfiguration::read(live, SYSTEM_NAMESPACE).trusts(&authority)
        });
        let named = untrusting.filter_map(|live| {
            let name = live["metadata"]["name"].as_str()?;
            Some(format!("{} {name}", live["kind"].as_str()?))
        });
        found.untrusted_by = named.collect();
    }
    Ok(found)
}

async fn read_lease(cluster: &Cluster, system: &str) -> Result<Option<Lease>, OperationError> {
    let found = lease::get(cluster, system, LEASE).await?;
    Ok(found.and_then(|lease| lease.spec).map(|spec| Lease {
        holder: spec.holder_identity.unwrap_or_default(),
        renewed: spec.renew_time.map(|time| time.0),
        seconds: i64::from(spec.lease_duration_seconds.unwrap_or_default()),
    }))
}
