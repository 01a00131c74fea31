//! `template.helm.mode: release` on a real control plane: helm installs, upgrades and uninstalls, and what it left half done is
//! put right.

mod hooks;
mod mode;
mod released;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use addons_helm::release::{ReleaseClient, ReleasePhase, ReleaseRecovery, ReleaseRequest};
use addons_helm::{Helm, HelmError};
use addons_render::package::{Package, PackagedFile};
use addons_tests::control_plane::{ControlPlane, binaries};
use anyhow::{Context as _, Result, ensure};
use common::values::mask::SecretMask;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-map}\ndata: {size: {{ .Values.size | quote }}}\n";

static NOTHING: LazyLock<SecretMask> = LazyLock::new(SecretMask::default);

struct Stage {
    cluster: Arc<ControlPlane>,
    client: Client,
    config: Config,
    helm: Helm,
}

impl Stage {
    async fn new() -> Result<Self> {
        let cluster = ControlPlane::shared().await?;
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
        let options = KubeConfigOptions::default();
        Ok(Self {
            client: cluster.client().await?,
            config: Config::from_custom_kubeconfig(kubeconfig, &options).await?,
            helm: Helm::find(Some(&binaries::helm()?), None).await?,
            cluster,
        })
    }

    async fn size(&self, namespace: &str) -> Result<Option<String>> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let map = api.get_opt("web-map").await?;
        Ok(map.and_then(|map| map.data?.get("size").cloned()))
    }

    /// Marks the newest revision as one that a helm left behind in the middle of its work.
    async fn interrupt(&self, namespace: &str, phase: &str) -> Result<()> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let records = api
            .list(&ListParams::default().labels("owner=helm,name=web"))
            .await?;
        let newest = records.items.into_iter().max_by_key(|record| {
            let version = record
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get("version"));
            version.and_then(|version| version.parse::<u32>().ok())
        });
        let newest = newest.context("no record of helm")?;
        let data = newest.data.as_ref().and_then(|data| data.get("release"));
        let changed = rewrite(&data.context("an empty record")?.0, phase)?;
        let patch =
            json!({"metadata": {"labels": {"status": phase}}, "stringData": {"release": changed}});
        let name = newest.metadata.name.unwrap_or_default();
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }
}

/// A record of helm is base64 of gzip of JSON.
fn rewrite(record: &[u8], phase: &str) -> Result<String> {
    use std::io::{Read as _, Write as _};

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::read::GzDecoder;
    use flate2::write::GzEncoder;
    let mut text = String::new();
    GzDecoder::new(STANDARD.decode(record)?.as_slice()).read_to_string(&mut text)?;
    let mut release: Value = serde_json::from_str(&text)?;
    release["info"]["status"] = phase.into();
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(release.to_string().as_bytes())?;
    Ok(STANDARD.encode(gz.finish()?))
}

fn chart(version: &str, template: &str) -> Result<Package> {
    let about = format!("apiVersion: v2\nname: web\nversion: {version}\n");
    let files = [
        ("Chart.yaml", about.as_str()),
        ("values.yaml", "size: 1\nextra: x\n"),
        ("templates/map.yaml", template),
    ];
    let files = files.map(|(path, text)| PackagedFile {
        path: path.to_owned(),
        bytes: text.as_bytes().to_vec(),
    });
    Ok(Package::from_folder(files.to_vec())?)
}

fn wanted<'a>(package: &'a Package, values: &'a Value) -> ReleaseRequest<'a> {
    ReleaseRequest {
        package,
        values,
        whole_numbers: &[],
        mask: &NOTHING,
        owner: "0123456789abcdef",
        create_namespace: false,
        skip_crds: false,
        wait: true,
        timeout: TIMEOUT,
        takes_fields: false,
    }
}

#[tokio::test]
async fn a_release_is_installed_upgraded_and_uninstalled() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = addons_tests::control_plane::unique("helm-release");
    let release = ReleaseClient::new(&stage.helm, &stage.config, "web", &namespace)?;
    ensure!(release.status().await?.is_none() && release.history().await?.is_empty());
    ensure!(release.recover(TIMEOUT).await?.is_none());
    ensure!(!release.uninstall(true, TIMEOUT).await?, "there was none");
    let first = chart("1.0.0", MAP)?;
    let big = json!({"size": 5, "extra": "x"});
    // Not made unless it is asked for.
    let error = release.upgrade(&wanted(&first, &big)).await;
    ensure!(matches!(error, Err(HelmError::Failed { .. })), "{error:?}");
    let making = ReleaseRequest {
        create_namespace: true,
        ..wanted(&first, &big)
    };
    release.upgrade(&making).await?;
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    ensure!(namespaces.get_opt(&namespace).await?.is_some());
    let status = release.status().await?.context("no release")?;
    ensure!(
        (status.revision, status.phase) == (1, ReleasePhase::Deployed),
        "{status:?}"
    );
    ensure!(stage.size(&namespace).await?.as_deref() == Some("5"));
    // Values of the release before do not come back.
    let none = json!({"size": 1});
    release
        .upgrade(&wanted(&chart("1.1.0", MAP)?, &none))
        .await?;
    ensure!(stage.size(&namespace).await?.as_deref() == Some("1"));
    let history = release.history().await?;
    let phases: Vec<_> = history
        .iter()
        .map(|r| (r.revision, r.phase, r.chart.as_str()))
        .collect();
    let expected = [
        (1, ReleasePhase::Superseded, "web-1.0.0"),
        (2, ReleasePhase::Deployed, "web-1.1.0"),
    ];
    ensure!(phases == expected, "{phases:?}");
    ensure!(release.uninstall(true, TIMEOUT).await?);
    ensure!(stage.size(&namespace).await?.is_none() && release.status().await?.is_none());
    Ok(())
}

#[tokio::test]
async fn what_was_left_half_done_is_put_right() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.cluster.namespace("helm-recovery").await?;
    let release = ReleaseClient::new(&stage.helm, &stage.config, "web", &namespace)?;
    let chart = chart("1.0.0", MAP)?;
    let (one, two) = (json!({"size": 1}), json!({"size": 2}));
    // The first installation was cut off.
    release.upgrade(&wanted(&chart, &one)).await?;
    stage.interrupt(&namespace, "pending-install").await?;
    let refused = release.upgrade(&wanted(&chart, &one)).await;
    let refused = refused
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(refused.contains("another operation"), "{refused}");
    let recovery = release.recover(TIMEOUT).await?;
    ensure!(
        recovery == Some(ReleaseRecovery::Uninstalled { revision: 1 }),
        "{recovery:?}"
    );
    ensure!(release.status().await?.is_none());
    release.upgrade(&wanted(&chart, &one)).await?;
    // An upgrade was, and then a rollback.
    for (phase, expected) in [("pending-upgrade", (2, 1)), ("pending-rollback", (4, 3))] {
        release.upgrade(&wanted(&chart, &two)).await?;
        stage.interrupt(&namespace, phase).await?;
        // What ran before is what helm calls superseded by then.
        let recovery = release.recover(TIMEOUT).await?;
        let (revision, to) = expected;
        ensure!(
            recovery == Some(ReleaseRecovery::RolledBack { revision, to }),
            "{recovery:?}"
        );
        ensure!(
            stage.size(&namespace).await?.as_deref() == Some("1"),
            "{phase}"
        );
        ensure!(release.recover(TIMEOUT).await?.is_none());
    }
    release.upgrade(&wanted(&chart, &two)).await?;
    ensure!(stage.size(&namespace).await?.as_deref() == Some("2"));
    release.uninstall(true, TIMEOUT).await?;
    Ok(())
}

#[tokio::test]
async fn helm_is_the_user_that_we_are() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.cluster.namespace("helm-user").await?;
    let package = chart("1.0.0", MAP)?;
    let values = json!({"size": 1});
    // As somebody who may do nothing.
    let mut config = stage.config.clone();
    config.auth_info.impersonate = Some("jane".to_owned());
    let release = ReleaseClient::new(&stage.helm, &config, "web", &namespace)?;
    let error = release.upgrade(&wanted(&package, &values)).await;
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(error.contains("\"jane\" cannot"), "{error}");
    let error = release.status().await;
    ensure!(error.is_err(), "{error:?}");
    // A failure shows no secret.
    let secret = json!({"size": "correct-horse"});
    let wrong = chart(
        "1.0.0",
        "apiVersion: v1\nkind: {{ .Values.size }}\nmetadata: {name: x}\n",
    )?;
    let mask = SecretMask::from_values(std::iter::once(&secret));
    let release = ReleaseClient::new(&stage.helm, &stage.config, "web", &namespace)?;
    let wanted = ReleaseRequest {
        whole_numbers: &[],
        mask: &mask,
        ..wanted(&wrong, &secret)
    };
    let error = release.upgrade(&wanted).await;
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(error.contains("***") && !error.contains("horse"), "{error}");
    Ok(())
}
