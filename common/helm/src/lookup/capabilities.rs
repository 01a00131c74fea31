//! `.Capabilities` of a rendering without a cluster: those of one with our endpoint are made the same.

use std::path::Path;

use serde::Deserialize;

use common::entrance;

use crate::process::Call;
use crate::template::{MAX_OUTPUT, TemplateRequest, arguments};
use crate::workspace::Workspace;
use crate::{Helm, HelmError};

const FOLDER: &str = "capabilities";
/// A chart that prints them. What helm's library knows counts as served, too, and differs from helm to helm.
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
/// How the line with them begins.
const LINE: &str = "all: ";

/// What a chart can ask about the cluster.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Capabilities {
    /// Its version.
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

/// Asks helm.
///
/// # Errors
/// Those of a rendering.
pub(crate) async fn capabilities(
    helm: &Helm,
    workspace: &Workspace,
    request: &TemplateRequest<'_>,
) -> Result<Capabilities, HelmError> {
    for (name, text) in FILES {
        workspace.write(&Path::new(FOLDER).join(name), text.as_bytes())?;
    }
    let path = workspace.path().join(FOLDER);
    let call =
        Call::new("template", request.timeout, MAX_OUTPUT).args(arguments(request, path.into()));
    let text = helm.run(workspace, call).await?.text()?;
    let line = text.lines().find_map(|line| line.strip_prefix(LINE));
    let read = line.and_then(|line| entrance::from_str(line).ok());
    read.ok_or(HelmError::Answer { verb: "template" })
}
