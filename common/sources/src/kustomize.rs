//! Builds local kustomizations with kubectl or kustomize, in a reduced environment and with limits for time
//! and output. The restrictions of kustomize stay in force: no plugins run, and no files outside the folder
//! are read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addons_render::package::{Package, PackageError, PackagedFile};
use tokio::process::Command;

use crate::child::{self, FinishedRun, RunFailure, RunLimits, RunningProgram};
use crate::platform;
use crate::scratch::Scratch;

/// The file names that make a folder a kustomization.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The programs that build kustomizations, in order of preference, with the argument before the folder.
const PROGRAMS: [(&str, &str); 2] = [("kubectl", "kustomize"), ("kustomize", "build")];
/// The limits of a build. The time includes fetching remote bases.
const LIMITS: RunLimits = RunLimits {
    time: Duration::from_secs(60),
    stdout: 16 << 20,
    stderr: 4 << 10,
    memory: None,
};

/// The environment of git when it fetches a remote base: only over https, without a password and without
/// settings of the machine. ssh is excluded because it would find the keys of the user regardless of HOME.
const GIT: [(&str, &str); 4] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ALLOW_PROTOCOL", "https"),
];

/// Why a kustomization cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum KustomizeError {
    /// No program on PATH can build kustomizations.
    #[error(
        "{folder} is a kustomization, and neither kubectl nor kustomize is on PATH to build it"
    )]
    Missing {
        /// The folder.
        folder: String,
    },
    /// The program cannot be started or read from.
    #[error("{command} cannot be run")]
    Start {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The build exceeds the time limit.
    #[error("{command} took longer than {} s and was stopped", LIMITS.time.as_secs())]
    TimedOut {
        /// The command.
        command: String,
    },
    /// The output exceeds the limit.
    #[error("{command} prints more than {} MiB and was stopped", LIMITS.stdout >> 20)]
    TooMuch {
        /// The command.
        command: String,
    },
    /// The build failed.
    #[error("{command}: {message}")]
    Failed {
        /// The command.
        command: String,
        /// The message of the program.
        message: String,
    },
    /// The output cannot be a package.
    #[error("{command} prints what cannot be a manifest")]
    Package {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: PackageError,
    },
}

/// Whether a folder is a kustomization.
#[must_use]
pub fn is_kustomization(folder: &Path) -> bool {
    NAMES.iter().any(|name| folder.join(name).is_file())
}

/// Builds a kustomization and returns its manifests as a folder with one file. `path` is the value of PATH.
///
/// # Errors
/// [`KustomizeError`].
pub async fn build(folder: &Path, path: &OsStr) -> Result<Package, KustomizeError> {
    let named = folder.display().to_string();
    let Some((program, verb)) = find_program(path) else {
        return Err(KustomizeError::Missing { folder: named });
    };
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    // The command as the user could type it.
    let shown = format!("{name} {verb} {named}");
    let wrong = |source| KustomizeError::Start {
        command: shown.clone(),
        source,
    };
    let home = Scratch::new("kubectl-addons-kustomize-").map_err(wrong)?;
    let folder = std::path::absolute(folder).map_err(wrong)?;
    let mut command = command(&program, verb, &folder, home.path(), path);
    let mut running = RunningProgram::start(&mut command).map_err(wrong)?;
    match running.finish(&[], LIMITS).await {
        Ok(ended) => manifests(shown, ended),
        Err(RunFailure::Io(source)) => Err(wrong(source)),
        Err(RunFailure::TimedOut) => Err(KustomizeError::TimedOut { command: shown }),
        Err(RunFailure::TooMuch) => Err(KustomizeError::TooMuch { command: shown }),
    }
}

fn manifests(command: String, ended: FinishedRun) -> Result<Package, KustomizeError> {
    let status = ended.status;
    if !status.success() {
        let mut message = error_message(&String::from_utf8_lossy(&ended.stderr));
        if message.is_empty() {
            message = format!("it ended with {status} and said nothing");
        }
        return Err(KustomizeError::Failed { command, message });
    }
    let file = PackagedFile {
        path: "manifest.yaml".to_owned(),
        bytes: ended.stdout,
    };
    Package::from_folder(vec![file]).map_err(|source| KustomizeError::Package { command, source })
}

/// Finds the first program on PATH that builds kustomizations.
fn find_program(path: &OsStr) -> Option<(PathBuf, &'static str)> {
    PROGRAMS.into_iter().find_map(|(name, verb)| {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        let program = folders.find_map(|folder| {
            let program = folder.join(&name);
            program.is_file().then_some(program)
        })?;
        Some((program, verb))
    })
}

fn command(program: &Path, verb: &str, folder: &Path, home: &Path, path: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.arg(verb).arg("--").arg(folder).current_dir(home);
    child::isolate(&mut command);
    let folders = [platform::HOME, platform::TEMPORARY];
    for name in folders
        .into_iter()
        .chain(["XDG_CONFIG_HOME", "XDG_CACHE_HOME"])
    {
        command.env(name, home);
    }
    command.env("PATH", path).envs(GIT);
    command
}

/// Extracts the error message from the stderr of a program.
fn error_message(words: &str) -> String {
    let lines = words.lines().map(|line| {
        let line = line.trim_end();
        // kubectl logs that the command failed.
        if let Some((_, error)) = line.split_once("\"command failed\" err=\"") {
            return error.trim_end_matches('"');
        }
        line.strip_prefix("error: ")
            .or_else(|| line.strip_prefix("Error: "))
            .unwrap_or(line)
    });
    let mut text = lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    text.retain(|c| c == '\n' || !c.is_control());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_kubectl_are_extracted() {
        let words = "error: accumulating resources: \u{1b}[31mno a.yaml\n\n";
        assert_eq!(
            error_message(words),
            "accumulating resources: [31mno a.yaml"
        );
        let logged =
            "E1124 20:05:48.893021   13481 run.go:72] \"command failed\" err=\"no a.yaml\"\n";
        assert_eq!(error_message(logged), "no a.yaml");
        assert_eq!(error_message(""), "");
    }

    /// Runs scripts instead of kubectl.
    #[cfg(unix)]
    #[tokio::test]
    async fn output_is_bounded_and_the_environment_is_reduced() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("kubectl");
        let folders = [folder.path(), Path::new("/usr/bin"), Path::new("/bin")];
        let path = std::env::join_paths(folders).unwrap();
        for (script, expected) in [
            ("yes a: b", "prints more than 16 MiB and was stopped"),
            (
                "head -c 300000 /dev/zero >&2; exit 1",
                "it ended with exit status: 1 and said nothing",
            ),
            ("echo error: no base >&2; exit 1", "/srv: no base"),
            ("echo $1 $2 $3 >&2; exit 1", ": kustomize -- /srv"),
            ("echo $HOME >&2; exit 1", "kubectl-addons-kustomize-"),
            ("echo ${CARGO_MANIFEST_DIR-none} >&2; exit 1", ": none"),
            ("echo $GIT_ALLOW_PROTOCOL >&2; exit 1", ": https"),
        ] {
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&program, mode).unwrap();
            let ended = build(Path::new("/srv"), &path).await;
            let said = ended.unwrap_err().to_string();
            assert!(said.contains(expected), "{script}: {said}");
        }
        std::fs::write(&program, "#!/bin/sh\necho 'a: b'\n").unwrap();
        let built = build(Path::new("/srv"), &path).await.unwrap();
        assert_eq!(built.get("manifest.yaml").unwrap().bytes, b"a: b\n");
    }

    #[tokio::test]
    async fn without_a_program_it_is_refused() {
        let folder = Path::new("/srv/web");
        let error = build(folder, OsStr::new("/none")).await.unwrap_err();
        let text =
            "/srv/web is a kustomization, and neither kubectl nor kustomize is on PATH to build it";
        assert_eq!(error.to_string(), text);
    }
}
