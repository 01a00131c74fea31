//! Reads `.Capabilities` of a rendering without a cluster, so that a rendering with our endpoint gets the same.

use std::path::Path;

use serde::Deserialize;

use common::entrance;

use crate::process::HelmCall;
use crate::template::{MAX_OUTPUT, TemplateRequest, template_arguments};
use crate::workspace::Workspace;
use crate::{Helm, HelmError};

const FOLDER: &str = "capabilities";
/// A chart that prints its capabilities. They include the kinds that helm's library knows, which differ between versions of helm.
const FILES: [(&str, &str); 2] = [
    (
        "Chart.yaml",
        "apiVersion: v2\nname: capabilities\nversion: 1.0.0\n",
    ),
    (
        "templates/all.yaml",
        "apiVersion: v1\nkind: ConfigMap\nall: {{ .Capabilities | toJson }}\n",
    ),
];
/// Prefix of the line with the capabilities.
const LINE: &str = "all: ";

/// What a chart can find out about the cluster.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Capabilities {
    /// Version of the cluster.
    pub(super) kube_version: KubeVersion,
    /// `v1`, `apps/v1`, `apps/v1/Deployment`.
    #[serde(rename = "APIVersions")]
    pub(super) api_versions: Vec<String>,
}

/// The version of a cluster.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct KubeVersion {
    pub(super) version: String,
    pub(super) major: String,
    pub(super) minor: String,
}

/// Renders a chart with helm that prints its capabilities.
///
/// # Errors
/// The same as for any rendering.
pub(crate) async fn read_capabilities(
    helm: &Helm,
    workspace: &Workspace,
    request: &TemplateRequest<'_>,
) -> Result<Capabilities, HelmError> {
    for (name, text) in FILES {
        workspace.write(&Path::new(FOLDER).join(name), text.as_bytes())?;
    }
    let path = workspace.path().join(FOLDER);
    let call = HelmCall::new("template", request.timeout, MAX_OUTPUT)
        .args(template_arguments(request, path.into()));
    let text = helm.run(workspace, call).await?.text()?;
    let line = text.lines().find_map(|line| line.strip_prefix(LINE));
    let read = line.and_then(|line| entrance::from_str(line).ok());
    read.ok_or(HelmError::Answer { verb: "template" })
}
