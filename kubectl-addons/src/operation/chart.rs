//! Charts: what helm is given, and what it renders.

use anyhow::{Context as _, Result, bail};
use common::render::chart::release_name::release_name;
use common::render::package::Package;
use common::render::text::Text;
use common::values::layers::{Layers, Values};
use serde_json::Value;

use crate::progress::patiently;
use crate::session::Session;
use addons_helm;
use addons_helm::dependencies;
use addons_helm::template::{TIMEOUT, TemplateRequest, template};

use super::candidate::Candidate;

/// The key under which the data of templates reaches a chart, beside its values (semantics 10).
const TEMPLATE_DATA: &str = "templateData";

/// A chart with everything that helm needs to install it.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Name of the release.
    pub release: String,
    /// The chart, with its dependencies.
    pub package: Package,
    /// The merged values.
    pub values: Value,
    /// Text out of Secrets: in no error.
    pub secrets: Vec<String>,
}

/// What helm takes for a candidate.
///
/// # Errors
/// No helm; no chart; a dependency that cannot be had; a name that helm refuses.
pub async fn ready(session: &Session, candidate: &Candidate, package: Package) -> Result<Ready> {
    let inputs = &candidate.inputs;
    let set = candidate.entry.version.template.helm.as_ref();
    let set = set.and_then(|helm| helm.release_name.as_deref());
    let release = release_name(set, &candidate.name.name)?;
    let helm = session.helm().await?;
    let access = session.access();
    let fetching = format!(
        "{}  helm fetches what the chart depends on",
        candidate.entry.addon
    );
    let complete = dependencies::complete(helm, &package, access.cache, access.offline);
    let package = patiently(&fetching, complete).await?.into_owned();
    let chart = addons_helm::chart(&package)?;
    let layers: Layers = inputs.with_package(Values::new("values.yaml of the chart", chart.values));
    let mut values = layers.merged();
    let data = inputs.document(&values);
    // Schemas of some charts refuse what they do not name.
    if let (Value::Object(values), false) = (&mut values, chart.is_closed) {
        values.insert(TEMPLATE_DATA.to_owned(), data);
    }
    Ok(Ready {
        release,
        package,
        values,
        secrets: inputs.mask().parts().to_vec(),
    })
}

/// What helm renders of a chart.
///
/// # Errors
/// Those of [`ready`]; helm's own; a Kubernetes version that is not known.
pub async fn text(
    session: &Session,
    candidate: &Candidate,
    package: Package,
    is_upgrade: bool,
) -> Result<Text> {
    let ready = ready(session, candidate, package).await?;
    let data = candidate.inputs.document(&Value::Null);
    let version = data
        .pointer("/Cluster/Version")
        .and_then(Value::as_str)
        .filter(|version| !version.is_empty());
    let Some(version) = version else {
        bail!("a chart is rendered for a version of Kubernetes: give it with --k8s");
    };
    let api_versions = if candidate.inputs.is_of_cluster() {
        session
            .api_versions()
            .await
            .context("cannot tell what the cluster serves")?
    } else {
        &[]
    };
    let request = TemplateRequest {
        release_name: &ready.release,
        namespace: candidate.target_namespace(),
        values: &ready.values,
        secrets: &ready.secrets,
        kube_version: &format!("v{}", version.trim_start_matches('v')),
        api_versions,
        is_upgrade,
        include_crds: true,
        timeout: TIMEOUT,
    };
    let rendering = format!("{}  helm renders the chart", candidate.entry.addon);
    let text = template(session.helm().await?, &ready.package, &request);
    let text = patiently(&rendering, text).await?;
    Ok(Text::of_chart(text))
}
