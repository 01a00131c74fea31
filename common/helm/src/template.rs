//! `helm template`: from a chart and values to the text of manifests, for our own engine to apply.
//!
//! Helm asks no cluster: the versions and kinds that the cluster serves are told to it. Kinds that its own library knows count as
//! served, too: that is how helm renders. `lookup` finds what the caller lets it find ([`super::lookup`]).

use std::ffi::OsString;
use std::time::{Duration, Instant};

use addons_render::chart::overrides;
use addons_render::package::Package;
use common::values::mask::Mask;
use serde_json::Value;

use super::lookup::{Endpoint, Lookup, capabilities, unmapped};
use super::process::{Call, flag};
use super::workspace::Workspace;
use super::{Helm, HelmError, chart};

/// Bound of one rendering, by default.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of manifests that a chart may render.
pub const MAX_OUTPUT: usize = 64 << 20;
/// Bytes of one argument; systems allow 128 KiB.
const MAX_ARGUMENT: usize = 64 << 10;
/// Renderings in which helm may name further kinds that are not served yet.
const ATTEMPTS: usize = 8;
/// Requests that helm may send at once: the endpoint has no need to be spared.
const BURST: &str = "100000";

/// What a chart is rendered with.
#[derive(Clone, Debug)]
pub struct TemplateRequest<'a> {
    /// Name of the release ([`addons_render::chart::release_name`]).
    pub release_name: &'a str,
    /// The target namespace.
    pub namespace: &'a str,
    /// The merged values, those of the chart included: what an earlier layer set and a later one took away stays away.
    pub values: &'a Value,
    /// Those of the values that have to stay whole numbers, as `--set` takes them ([`common::values::set::whole_numbers`]).
    pub whole_numbers: &'a [String],
    /// Hides what comes from Secrets in errors.
    pub mask: &'a Mask,
    /// `v1.36.3`.
    pub kube_version: &'a str,
    /// All that the cluster serves: `v1`, `apps/v1`, `apps/v1/Deployment`.
    pub api_versions: &'a [String],
    /// Whether something is installed.
    pub is_upgrade: bool,
    /// Whether the definitions of `crds/` are part of the text.
    pub include_crds: bool,
    /// Bound of the run.
    pub timeout: Duration,
    /// What `lookup` finds; `None` = nothing.
    pub lookup: Option<&'a Lookup<'a>>,
}

/// Renders a chart: a folder with everything that it is made of ([`super::dependencies::complete`]), or an archive.
///
/// # Errors
/// No chart, or a library; helm does not end, prints more than [`MAX_OUTPUT`], or fails: then its own words.
pub async fn template(
    helm: &Helm,
    package: &Package,
    request: &TemplateRequest<'_>,
) -> Result<String, HelmError> {
    let chart = chart(package)?;
    let workspace = Workspace::new()?;
    let path = workspace.chart(package)?;
    let values = overrides(&chart.values, request.values);
    let input = values.to_string().into_bytes();
    let args = arguments(request, path.into());
    let Some(lookup) = request.lookup else {
        let call = Call::new("template", request.timeout, MAX_OUTPUT)
            .args(args)
            .input(input)
            .mask(request.mask);
        return helm.run(&workspace, call).await?.text();
    };
    let begun = Instant::now();
    let capabilities = capabilities(helm, &workspace, request);
    let capabilities = lookup.capabilities.get_or_try_init(|| capabilities).await?;
    let endpoint = Endpoint::open(capabilities, lookup, request.is_upgrade).await?;
    let kubeconfig = endpoint.kubeconfig(&workspace)?;
    let mask = request.mask.clone().with_text(endpoint.token());
    for _ in 0..ATTEMPTS {
        let left = request.timeout.saturating_sub(begun.elapsed());
        let call = Call::new("template", left, MAX_OUTPUT)
            .args(args.clone())
            .args(["--dry-run=server", "--disable-openapi-validation"])
            .args([flag("kubeconfig", &kubeconfig)])
            // Below a file, no cache of discovery can be made: helm lists again what it maps objects by. That takes less time than to
            // write the cache.
            .env("KUBECACHEDIR", &kubeconfig)
            // Each listing has a request for each group and version.
            .env("HELM_BURST_LIMIT", BURST)
            .input(input.clone())
            .mask(&mask);
        let ended = endpoint.during(helm.run(&workspace, call)).await;
        match ended {
            Err(HelmError::Failed { message, .. }) if endpoint.begin(unmapped(&message)) => {}
            ended => return ended?.text(),
        }
    }
    Err(HelmError::Answer { verb: "template" })
}

/// The arguments for a chart.
pub(super) fn arguments(request: &TemplateRequest<'_>, chart: OsString) -> Vec<OsString> {
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
    args.extend(set(request.whole_numbers));
    if request.include_crds {
        args.push("--include-crds".into());
    }
    if request.is_upgrade {
        args.push("--is-upgrade".into());
    }
    args
}

/// The flags `--set` for assignments: as few as fit the length that an argument may have.
pub(super) fn set(assignments: &[String]) -> Vec<OsString> {
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
