//! A route, what closes it, and the table of all of them.

use std::fmt;

use addons_admission::trust::{self, Guard};
use addons_tests::raw::Send;
use anyhow::{Context as _, Result};
use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use serde::Deserialize;
use serde_json::Value;

use super::world::TENANT;

const ROUTES: &str = include_str!("../../data/bypass/routes.yaml");
const OUT_OF_SCOPE: &str = include_str!("../../data/bypass/out-of-scope.yaml");
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// `system:masters`, but not of the core group.
    Admin,
    /// May write namespaces, and change but not create installations.
    Tenant,
    /// Of the core group.
    Core,
    /// Of the group that may break the glass.
    Glass,
    /// The user of `sync`, whose writes do not wait for the webhook.
    Sync,
    /// The ServiceAccount of the loop, whose writes do not wait either.
    Reconciler,
    /// The ServiceAccount that the loop installs with.
    Account,
    /// The ServiceAccount of the webhook.
    Webhook,
}

/// Which layer answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A denial of the webhook.
    Webhook,
    /// A denial of one of our policies.
    Policy,
    /// The webhook is asked and does not answer: failurePolicy Fail.
    #[serde(rename = "no answer")]
    NoAnswer,
    /// The schema or a CEL rule of it.
    Schema,
    /// The rights of the user.
    Rights,
    /// The API server itself, whatever is asked.
    Server,
    /// Nothing: it is allowed.
    Allowed,
    /// Something else.
    #[serde(skip)]
    Other(String),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Webhook => "webhook",
            Self::Policy => "policy",
            Self::NoAnswer => "no answer",
            Self::Schema => "schema",
            Self::Rights => "rights",
            Self::Server => "server",
            Self::Allowed => "allowed",
            Self::Other(message) => message,
        })
    }
}

/// A way around a guard, or one that must stay open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// What is tried.
    pub route: String,
    /// Who sends it.
    pub who: Who,
    /// How.
    pub send: Send,
    /// Where.
    pub path: String,
    /// What.
    #[serde(default)]
    pub body: Value,
    /// What answers while the webhook runs.
    pub up: By,
    /// What answers while it does not, and the policies are there.
    pub down: By,
}

/// A way that is closed elsewhere.
#[derive(Clone, Debug, Deserialize)]
struct OutOfScope {
    route: String,
    why: String,
}

/// All of them.
pub fn routes() -> Result<Vec<Route>> {
    let ours = |namespace: &str| format!("/apis/{API_VERSION}/namespaces/{namespace}");
    let catalogues = format!("{}/addoncatalogues", ours(SYSTEM_NAMESPACE));
    let records = format!("{}/addoninstallations", ours(SYSTEM_NAMESPACE));
    let mut routes: Vec<Route> = serde_saphyr::from_str(ROUTES).context("routes.yaml")?;
    for route in &mut routes {
        let path = route.path.replace("RECORDS", &records);
        let path = path.replace("TENANT", &ours(TENANT));
        let path = path.replace("CATALOGUES", &catalogues);
        let path = path.replace("DEFINITIONS", DEFINITIONS);
        route.path = path.replace("WEBHOOKS", WEBHOOKS);
    }
    Ok(routes)
}

/// Where the trust model promises something that no route proves: each guard names one that others than its principals try, and that
/// the layers of the guard close.
pub fn unproven(routes: &[Route]) -> Vec<String> {
    let wrong = trust::GUARDS.iter().filter_map(|guard| {
        let found = routes.iter().find(|route| route.route == guard.proof);
        let is_proof = found.is_some_and(|route| {
            let is_other = matches!(route.who, Who::Admin | Who::Tenant);
            let is_up = (route.up == By::Webhook) == guard.webhook;
            is_other && is_up && (route.down == By::Policy) == guard.policy
        });
        let Guard {
            object,
            part,
            proof,
            ..
        } = guard;
        (!is_proof)
            .then(|| format!("{object}: {part}: {proof}: not closed as the trust model says"))
    });
    wrong.collect()
}

/// The table, as lines.
pub fn print(routes: &[Route], up: &[By], down: &[By]) -> Result<String> {
    let out: Vec<OutOfScope> = serde_saphyr::from_str(OUT_OF_SCOPE).context("out-of-scope.yaml")?;
    let names = routes.iter().map(|route| &route.route);
    let names = names.chain(out.iter().map(|row| &row.route));
    let width = names.map(String::len).max().unwrap_or_default();
    let found = up.iter().zip(down);
    let rows = routes.iter().zip(found).map(|(route, (up, down))| {
        let who = format!("{:?}", route.who).to_lowercase();
        format!("{:width$}  {who:10}  {up:8}  {down}", route.route)
    });
    let out = out
        .iter()
        .map(|row| format!("{:width$}  out of scope: {}", row.route, row.why));
    let head = format!("{:width$}  {:10}  {:8}  {}", "route", "who", "up", "down");
    let rows = std::iter::once(head).chain(rows).chain(out);
    Ok(rows.collect::<Vec<_>>().join("\n  "))
}
