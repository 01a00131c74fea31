//! Decodes a release as helm stores it: compressed JSON in base64. Used to learn, without running helm, which objects a release names and
//! which values a user gave.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

use common::entrance;

/// The maximum size of a decompressed release. A Secret holds 1 MiB; manifests compress well.
const LARGEST: u64 = 64 << 20;
/// The magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The parts of a release that are read. They may contain content of Secrets.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct StoredRelease {
    /// All objects, as one YAML stream.
    pub manifest: String,
    /// The values that a user gave.
    pub config: Option<Value>,
    /// The hooks of the release.
    pub hooks: Vec<Hook>,
    #[serde(rename = "chart")]
    of_chart: Option<OfChart>,
}

/// A hook of a release.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Hook {
    /// Its object, as YAML.
    pub manifest: String,
}

#[derive(Clone, Deserialize)]
struct OfChart {
    metadata: ChartMetadata,
}

#[derive(Clone, Deserialize)]
struct ChartMetadata {
    #[serde(flatten)]
    name: ChartName,
    #[serde(default)]
    dependencies: Option<Vec<Subchart>>,
}

/// A chart that the chart of a release contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subchart {
    /// Its name.
    pub name: String,
    /// The version, or the range of versions, that the chart asks for.
    pub version: String,
    /// The key of its values, if it is not its name.
    pub alias: Option<String>,
}

impl Subchart {
    /// Returns the key of its values in those of the chart.
    #[must_use]
    pub fn key(&self) -> &str {
        let alias = self.alias.as_deref().filter(|alias| !alias.is_empty());
        alias.unwrap_or(&self.name)
    }
}

/// The chart of a release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ChartName {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl StoredRelease {
    /// Returns the chart, if the release names it.
    #[must_use]
    pub fn chart(&self) -> Option<ChartName> {
        let chart = self.of_chart.as_ref();
        chart.map(|chart| chart.metadata.name.clone())
    }

    /// Returns the charts that the chart contains.
    #[must_use]
    pub fn subcharts(&self) -> &[Subchart] {
        let chart = self.of_chart.as_ref();
        let subcharts = chart.and_then(|chart| chart.metadata.dependencies.as_deref());
        subcharts.unwrap_or_default()
    }
}

/// The error for text that is not a stored release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not as helm 3 and 4 store a release")]
pub struct StoredError;

/// Decodes the value of the key `release` of a ConfigMap, or of a Secret, which encodes it in base64 once more.
///
/// # Errors
/// [`StoredError`].
pub fn read(text: &[u8]) -> Result<StoredRelease, StoredError> {
    let mut bytes = STANDARD.decode(text).map_err(|_| StoredError)?;
    if !bytes.starts_with(&GZIP) {
        bytes = STANDARD.decode(&bytes).map_err(|_| StoredError)?;
    }
    let mut json = Vec::new();
    let mut limited = GzDecoder::new(bytes.as_slice()).take(LARGEST + 1);
    limited.read_to_end(&mut json).map_err(|_| StoredError)?;
    if json.len() as u64 > LARGEST {
        return Err(StoredError);
    }
    entrance::from_slice(&json).map_err(|_| StoredError)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn stored(json: &str) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(json.as_bytes()).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    }

    #[test]
    fn a_release_is_read_from_a_config_map_and_from_a_secret() {
        let text = stored(
            r#"{"name":"web","manifest":"a: 1","config":{"b":2},"chart":{"metadata":{"name":"c","version":"1.0.0"}}}"#,
        );
        for text in [text.clone(), STANDARD.encode(&text)] {
            let read = read(text.as_bytes()).unwrap();
            assert_eq!(read.manifest, "a: 1");
            assert_eq!(read.config, Some(serde_json::json!({"b": 2})));
            let chart = read.chart().unwrap();
            assert_eq!(
                (chart.name.as_str(), chart.version.as_str()),
                ("c", "1.0.0")
            );
        }
        let umbrella = stored(
            r#"{"chart":{"metadata":{"name":"c","version":"1.0.0","dependencies":[{"name":"a","version":"8.x"},{"name":"b","alias":"second"}]}}}"#,
        );
        let read_umbrella = read(umbrella.as_bytes()).unwrap();
        let keys = read_umbrella.subcharts().iter().map(Subchart::key);
        assert_eq!(keys.collect::<Vec<_>>(), ["a", "second"]);
        for text in ["", "a", "YWJj", &stored("{"), &stored("3")] {
            assert_eq!(read(text.as_bytes()).err(), Some(StoredError), "{text}");
        }
    }
}
