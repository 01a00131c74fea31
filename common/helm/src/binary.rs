//! Finds helm, and checks its version once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use addons_sources::platform;
use addons_versions::tolerant;

use super::HelmError;
use super::process::{HelmCall, run};
use super::workspace::Workspace;

/// Environment variable with the path of helm.
pub const VARIABLE: &str = "KUBECTL_ADDONS_HELM";
/// The first version with the output and the flags that we use.
const OLDEST: (u64, u64) = (3, 14);
/// Time limit for printing the version.
const BOUND: Duration = Duration::from_secs(20);
const OUTPUT: usize = 64 << 10;

/// The helm on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helm {
    /// Path of the program.
    pub program: PathBuf,
    /// Version: `v4.3.1`.
    pub version: String,
    /// Memory limit in bytes; `None` means no limit.
    pub memory: Option<u64>,
}

/// Why there is no usable helm.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// There is no helm on PATH.
    #[error("this add-on is a Helm chart, and there is no helm on PATH")]
    Missing,
    /// The path given for helm is not a file.
    #[error("helm: {program} is not a file")]
    NoFile {
        /// The path as given.
        program: String,
    },
    /// The program does not run, or is not helm.
    #[error("{program} does not print its version as helm does")]
    NotHelm {
        /// Path of the program.
        program: String,
        /// What happened.
        #[source]
        source: HelmError,
    },
    /// The version is older than what we support.
    #[error("{program} is helm {version}; charts need 3.14 or later, or 4")]
    TooOld {
        /// Path of the program.
        program: String,
        /// Version of the program.
        version: String,
    },
}

impl Helm {
    /// Returns whether helm applies on the server, which reports conflicts with other field managers. Helm 4 does.
    #[must_use]
    pub fn finds_conflicts(&self) -> bool {
        tolerant::parse(&self.version).is_ok_and(|version| version.major >= 4)
    }

    /// Finds the helm that the user named, else the first one on `path` (the value of PATH).
    ///
    /// # Errors
    /// [`BinaryError`].
    pub async fn find(
        named: Option<&Path>,
        path: Option<&std::ffi::OsStr>,
    ) -> Result<Self, BinaryError> {
        let program = match named {
            Some(program) if program.is_file() => program.to_owned(),
            Some(program) => {
                return Err(BinaryError::NoFile {
                    program: program.display().to_string(),
                });
            }
            None => find_on_path(path.unwrap_or_default()).ok_or(BinaryError::Missing)?,
        };
        // Helm runs in a folder of its own, so a relative path would not work.
        let program = std::path::absolute(&program).unwrap_or(program);
        let shown = program.display().to_string();
        let version = read_version(&program)
            .await
            .map_err(|source| BinaryError::NotHelm {
                program: shown.clone(),
                source,
            })?;
        let is_known =
            tolerant::parse(&version).is_ok_and(|version| (version.major, version.minor) >= OLDEST);
        if !is_known {
            return Err(BinaryError::TooOld {
                program: shown,
                version,
            });
        }
        Ok(Self {
            program,
            version,
            memory: None,
        })
    }
}

async fn read_version(program: &Path) -> Result<String, HelmError> {
    let workspace = Workspace::new()?;
    let args = ["version", "--template", "{{.Version}}"];
    let call = HelmCall::new("version", BOUND, OUTPUT).args(args);
    let said = run(program, &workspace, call).await?;
    let text = said.text()?;
    let version = text.trim();
    if version.is_empty() || version.len() > 64 || version.contains(char::is_whitespace) {
        return Err(HelmError::Answer { verb: "version" });
    }
    Ok(version.to_owned())
}

fn find_on_path(path: &std::ffi::OsStr) -> Option<PathBuf> {
    let name = format!("helm{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    let metadata = program.metadata();
    metadata.is_ok_and(|metadata| platform::is_executable(&metadata))
}
