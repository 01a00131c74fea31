//! Verifies provenance files of charts with the real helm: OpenPGP in this program would be larger than all its other cryptography.

use std::path::Path;
use std::time::Duration;

use addons_render::package::Package;
use common::manifest::digest::sha256;

use super::HelmError;
use super::binary::Helm;
use super::process::HelmCall;
use super::workspace::Workspace;

/// Time limit.
const BOUND: Duration = Duration::from_secs(60);
const OUTPUT: usize = 64 << 10;
/// Folder for the chart and its provenance file.
const FOLDER: &str = "signed";

/// The signature of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartProvenance {
    /// The signer's name in the keyring.
    pub signer: String,
    /// Fingerprint of the key.
    pub fingerprint: String,
    /// Digest of the archive, `sha256:…`.
    pub digest: String,
}

/// Verifies the archive of a chart with its provenance file. `keyring` contains the public keys, as `gpg --export` writes them.
///
/// # Errors
/// No key of the keyring signed this archive, or helm cannot be run.
pub async fn verify(
    helm: &Helm,
    archive: &Package,
    provenance: &[u8],
    keyring: &[u8],
) -> Result<ChartProvenance, HelmError> {
    let verb = "verify";
    let file = archive.as_file().ok_or(HelmError::Answer { verb })?;
    let workspace = Workspace::new()?;
    // The provenance file refers to the archive by its file name.
    let name = Path::new(&file.path).file_name().unwrap_or_default();
    let chart = Path::new(FOLDER).join(name);
    let path = workspace.write(&chart, &file.bytes)?;
    let mut beside = chart.into_os_string();
    beside.push(".prov");
    workspace.write(Path::new(&beside), provenance)?;
    let ring = workspace.write(Path::new("keyring.gpg"), keyring)?;
    let mut flag = std::ffi::OsString::from("--keyring=");
    flag.push(ring);
    let call =
        HelmCall::new(verb, BOUND, OUTPUT).args(["verify".into(), path.into_os_string(), flag]);
    let said = helm.run(&workspace, call).await?.text()?;
    let found = parse_output(&said).ok_or(HelmError::Answer { verb })?;
    if found.digest != format!("sha256:{}", sha256(&file.bytes)) {
        return Err(HelmError::Answer { verb });
    }
    Ok(found)
}

fn parse_output(said: &str) -> Option<ChartProvenance> {
    let of = |key: &str| {
        let mut lines = said.lines();
        let line = lines.find_map(|line| line.strip_prefix(key));
        line.map(|value| value.trim().to_owned())
    };
    Some(ChartProvenance {
        signer: of("Signed by:")?,
        fingerprint: of("Using Key With Fingerprint:")?,
        digest: of("Chart Hash Verified:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helm_prints_is_read() {
        let said = "Signed by: Web <web@example.com>\nUsing Key With Fingerprint: AB12\n\
                    Chart Hash Verified: sha256:c0ffee\n";
        let expected = ChartProvenance {
            signer: "Web <web@example.com>".to_owned(),
            fingerprint: "AB12".to_owned(),
            digest: "sha256:c0ffee".to_owned(),
        };
        assert_eq!(parse_output(said), Some(expected));
        assert_eq!(parse_output("Signed by: Web"), None);
    }
}
