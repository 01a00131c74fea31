//! `helm template`: renders a chart with values to the text of manifests, which our own engine applies.
//!
//! Helm contacts no cluster: we pass it the versions and kinds that the cluster serves. Kinds that its own library knows count as served as
//! well. `lookup` finds only the objects that the caller provides ([`super::lookup`]).

use std::ffi::OsString;
use std::time::{Duration, Instant};

use addons_render::chart::overrides;
use addons_render::package::Package;
use common::values::mask::SecretMask;
use serde_json::Value;

use super::lookup::{Endpoint, Lookup, read_capabilities, unmapped_kinds};
use super::process::{HelmCall, flag};
use super::workspace::Workspace;
use super::{Helm, HelmError, read_chart};

/// Default time limit of a rendering.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of the manifests that a chart may render, in bytes.
pub const MAX_OUTPUT: usize = 64 << 20;
/// Maximum size of one argument, in bytes. Systems allow 128 KiB.
const MAX_ARGUMENT: usize = 64 << 10;
/// Maximum number of attempts. After each one, helm may name further kinds that are not served yet.
const ATTEMPTS: usize = 8;
/// Number of requests that helm may send at once. The endpoint needs no rate limit.
const BURST: &str = "100000";

/// Inputs of a rendering.
#[derive(Clone, Debug)]
pub struct TemplateRequest<'a> {
    /// Name of the release ([`addons_render::chart::release_name`]).
    pub release_name: &'a str,
    /// The target namespace.
    pub namespace: &'a str,
    /// The merged values, including those of the chart. A default that a later layer removed stays removed.
    pub values: &'a Value,
    /// Assignments of those values that must stay whole numbers, as `--set` takes them ([`common::values::set::whole_number_assignments`]).
    pub whole_numbers: &'a [String],
    /// Hides values of Secrets in errors.
    pub mask: &'a SecretMask,
    /// `v1.36.3`.
    pub kube_version: &'a str,
    /// All versions and kinds that the cluster serves: `v1`, `apps/v1`, `apps/v1/Deployment`.
    pub api_versions: &'a [String],
    /// Whether the release is already installed.
    pub is_upgrade: bool,
    /// Whether the output contains the definitions in `crds/`.
    pub include_crds: bool,
    /// Time limit.
    pub timeout: Duration,
    /// What `lookup` finds; `None` means nothing.
    pub lookup: Option<&'a Lookup<'a>>,
}

/// Renders a chart: an archive, or a folder with all its dependencies ([`super::dependencies::complete_chart`]).
///
/// # Errors
/// The package is not a chart or is a library chart; or helm does not end, prints more than [`MAX_OUTPUT`], or fails, with its own message.
pub async fn template(
    helm: &Helm,
    package: &Package,
    request: &TemplateRequest<'_>,
) -> Result<String, HelmError> {
    let chart = read_chart(package)?;
    let workspace = Workspace::new()?;
    let path = workspace.write_chart(package)?;
    let values = overrides(&chart.values, request.values);
    let input = values.to_string().into_bytes();
    let args = template_arguments(request, path.into());
    let Some(lookup) = request.lookup else {
        let call = HelmCall::new("template", request.timeout, MAX_OUTPUT)
            .args(args)
            .input(input)
            .mask(request.mask);
        return helm.run(&workspace, call).await?.text();
    };
    let begun = Instant::now();
    let capabilities = read_capabilities(helm, &workspace, request);
    let capabilities = lookup.capabilities.get_or_try_init(|| capabilities).await?;
    let endpoint = Endpoint::open(capabilities, lookup, request.is_upgrade).await?;
    let kubeconfig = endpoint.kubeconfig(&workspace)?;
    let mask = request.mask.clone().with_text(endpoint.token());
    for _ in 0..ATTEMPTS {
        let left = request.timeout.saturating_sub(begun.elapsed());
        let call = HelmCall::new("template", left, MAX_OUTPUT)
            .args(args.clone())
            .args(["--dry-run=server", "--disable-openapi-validation"])
            .args([flag("kubeconfig", &kubeconfig)])
            // A folder for the discovery cache cannot be created below a file, so helm lists again to map objects. That takes less time
            // than writing the cache.
            .env("KUBECACHEDIR", &kubeconfig)
            // Each discovery sends a request for each group and version.
            .env("HELM_BURST_LIMIT", BURST)
            .input(input.clone())
            .mask(&mask);
        let ended = endpoint.serve_while(helm.run(&workspace, call)).await;
        match ended {
            Err(HelmError::Failed { message, .. })
                if endpoint.begin_rendering(unmapped_kinds(&message)) => {}
            ended => return ended?.text(),
        }
    }
    Err(HelmError::Answer { verb: "template" })
}

/// Returns the arguments to render a chart.
pub(super) fn template_arguments(request: &TemplateRequest<'_>, chart: OsString) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![
        "template".into(),
        request.release_name.into(),
        chart,
        flag("namespace", request.namespace),
        flag("kube-version", request.kube_version),
        flag("values", "-"),
    ];
    let served = request.api_versions.iter();
    args.extend(served.map(|version| flag("api-versions", version)));
    args.extend(set_flags(request.whole_numbers));
    if request.include_crds {
        args.push("--include-crds".into());
    }
    if request.is_upgrade {
        args.push("--is-upgrade".into());
    }
    args
}

/// Returns `--set` flags for assignments, as few as the maximum length of an argument allows.
pub(super) fn set_flags(assignments: &[String]) -> Vec<OsString> {
    let mut joined: Vec<String> = Vec::new();
    for assignment in assignments {
        match joined.last_mut() {
            Some(last) if last.len() + assignment.len() < MAX_ARGUMENT => {
                last.push(',');
                last.push_str(assignment);
            }
            _ => joined.push(assignment.clone()),
        }
    }
    joined.iter().map(|joined| flag("set", joined)).collect()
}
