//! What the connected side has: an image for two platforms with a signature of each kind, a chart, and a catalogue.

use std::io::Write as _;

use addons_tests::servers::registry::signing::Cosign;
use addons_tests::servers::registry::{Door, Layer, Registry, digest, tar};
use addons_tests::stage::{Stage, deployment, sha256};
use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const WEB: &str = "team/web";
/// The content of the layer that is asked for last.
pub const LAST: &str = "of the other platform, which is asked for last";

/// The registry and what is in it.
pub struct Upstream {
    pub registry: Registry,
    /// The digest of the layer with [`LAST`].
    pub last_layer: String,
    /// The tag of the list of signatures, and the signature that it has.
    pub listed: (String, String),
    /// Repository, name and bytes of what a site has to have.
    wanted: Vec<(String, String, Vec<u8>)>,
    home: String,
}

impl Upstream {
    pub async fn start(stage: &Stage) -> Result<Self> {
        let registry = Registry::start(Door::Open).await?;
        let mut images = Vec::new();
        for (tag, text) in [("amd64", "of this platform"), ("arm64", LAST)] {
            let layers = [described("shared"), described(text)];
            images.push(registry.push(WEB, tag, CONFIG, &layers).await?);
        }
        let platforms = [
            ("linux", "amd64", images[0].as_str()),
            ("linux", "arm64", images[1].as_str()),
        ];
        let index = registry.push_index(WEB, "1.0.0", &platforms).await?;
        let signature = signature(&registry, &index).await?;
        let tag = index.replace(':', "-");
        let cosign = format!("{tag}.sig");
        registry
            .push(WEB, &cosign, CONFIG, &[described("cosign")])
            .await?;
        let chart = [Layer {
            media_type: CHART,
            bytes: chart(&registry.host, 1)?,
            title: None,
        }];
        registry
            .push("charts/db", "1.0.0", CHART_CONFIG, &chart)
            .await?;
        registry
            .push("team/db", "1.0.0", CONFIG, &[described("db")])
            .await?;
        let mut wanted = Vec::new();
        for (repository, name) in [
            (WEB, "1.0.0"),
            (WEB, &*images[0]),
            (WEB, &*images[1]),
            (WEB, &*signature),
            (WEB, &*cosign),
            ("charts/db", "1.0.0"),
            ("team/db", "1.0.0"),
        ] {
            let bytes = registry.manifest(repository, name).await?;
            let bytes = bytes.with_context(|| format!("no {repository} {name}"))?;
            wanted.push((repository.to_owned(), name.to_owned(), bytes));
        }
        let upstream = Self {
            last_layer: digest(&layer(LAST)),
            listed: (tag, signature),
            wanted,
            home: stage.plugin.home().display().to_string(),
            registry,
        };
        upstream.write(stage, &upstream.registry.host)?;
        Ok(upstream)
    }

    /// Writes the catalogue and the manifest with names of this registry.
    pub fn write(&self, stage: &Stage, host: &str) -> Result<()> {
        let image = format!("{host}/{WEB}:1.0.0");
        let manifest = deployment("web", 1, None).replace("example.test/web:1", &image);
        stage.write("web.yaml", &manifest)?;
        let catalogue = super::catalogue(&stage.namespace, host);
        stage.write("catalogue.json", &catalogue)?;
        Ok(())
    }

    /// The command with the path of the catalogue.
    pub fn at_home(&self, line: &str) -> String {
        line.replace("catalogue.json", &format!("{}/catalogue.json", self.home))
    }

    /// Has its catalogue require the signatures of a key, and signs the chart with it.
    pub async fn require(&self, stage: &Stage, cosign: &Cosign) -> Result<()> {
        let chart = self.registry.manifest("charts/db", "1.0.0").await?;
        let chart = digest(&chart.context("no chart")?);
        cosign.sign(&self.registry, "charts/db", &chart).await?;
        let catalogue = super::catalogue(&stage.namespace, &self.registry.host);
        let mut catalogue: Value = serde_json::from_str(&catalogue)?;
        catalogue["spec"]["signature"] = json!({"key": cosign.public()});
        let manifest = std::fs::read_to_string(stage.plugin.home().join("web.yaml"))?;
        let version = &mut catalogue["spec"]["addons"][0]["versions"][0];
        version["manifestHash"] = json!(sha256(manifest.trim()));
        stage.write("catalogue.json", &catalogue.to_string())?;
        Ok(())
    }

    /// Pushes another chart under this tag.
    pub async fn push_other_chart(&self, tag: &str) -> Result<()> {
        let chart = [Layer {
            media_type: CHART,
            bytes: chart(&self.registry.host, 2)?,
            title: None,
        }];
        let push = self.registry.push("charts/db", tag, CHART_CONFIG, &chart);
        push.await.map(drop)
    }

    /// Stops it; returns what a site has to have.
    pub fn stop(self) -> Vec<(String, String, Vec<u8>)> {
        self.wanted
    }
}

/// A layer with a file.
pub fn layer(text: &str) -> Vec<u8> {
    tar(&[("file", text)]).unwrap_or_default()
}

/// The same, to be pushed.
pub fn described(text: &str) -> Layer {
    Layer {
        media_type: LAYER,
        bytes: layer(text),
        title: None,
    }
}

/// A signature with a subject, listed under the tag of the subject: this registry has no API for that.
async fn signature(registry: &Registry, subject: &str) -> Result<String> {
    let index = registry.manifest(WEB, subject).await?;
    let size = index.context("no index")?.len();
    let config = registry.push_blob(WEB, b"{}").await?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": "application/vnd.example.signature",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "layers": [],
        "subject": {
            "mediaType": "application/vnd.oci.image.index.v1+json", "digest": subject, "size": size,
        },
    });
    let bytes = manifest.to_string();
    let signature = digest(bytes.as_bytes());
    registry.push_manifest(WEB, &signature, &manifest).await?;
    let list: Value = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": MANIFEST, "digest": signature, "size": bytes.len(),
            "artifactType": "application/vnd.example.signature",
        }],
    });
    let tag = subject.replace(':', "-");
    registry.push_manifest(WEB, &tag, &list).await?;
    Ok(signature)
}

/// A chart of one Deployment.
fn chart(host: &str, replicas: u32) -> Result<Vec<u8>> {
    let image = format!("{host}/team/db:1.0.0");
    let manifest = deployment("db", replicas, None).replace("example.test/db:1", &image);
    let about = "apiVersion: v2\nname: db\nversion: 1.0.0\n".to_owned();
    let files = [("db/Chart.yaml", about), ("db/templates/db.yaml", manifest)];
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&tar(&files)?)?;
    Ok(encoder.finish()?)
}
