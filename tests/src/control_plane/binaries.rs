//! Where the programs of the control plane come from: what is there already, else built once from pinned Go modules.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::guard;

/// The minor version that the tests are written for.
const MINOR: &str = "v1.36.";
/// How often a long build says that it lives.
const PROGRESS: Duration = Duration::from_secs(10);

/// The programs, each an absolute path.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub apiserver: PathBuf,
    /// kube-controller-manager.
    pub controller_manager: PathBuf,
    /// kube-scheduler.
    pub scheduler: PathBuf,
    /// kwok, which plays the kubelets.
    pub kwok: PathBuf,
    /// kwok's stages node/fast, node/heartbeat and pod/fast, from the same module, in one file.
    pub stages: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
}

/// A Go module under `tests/control-plane` that pins some of the programs.
struct Module {
    folder: &'static str,
    /// Program and the package of its main function.
    programs: &'static [(&'static str, &'static str)],
    ldflags: &'static str,
    /// How long the first build takes on 2 cores.
    takes: &'static str,
}

const KUBERNETES: Module = Module {
    folder: "kubernetes",
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        (
            "kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
              -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
    takes: "5 minutes",
};
const ETCD: Module = Module {
    folder: "etcd",
    programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
    ldflags: "-s -w",
    takes: "1 minute",
};
const KWOK: Module = Module {
    folder: "kwok",
    programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
    ldflags: "-s -w",
    takes: "1 minute",
};
const HELM: Module = Module {
    folder: "helm",
    programs: &[("helm", "helm.sh/helm/v4/cmd/helm")],
    ldflags: "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1",
    takes: "3 minutes",
};
const REGISTRY: Module = Module {
    folder: "registry",
    programs: &[(
        "registry",
        "github.com/distribution/distribution/v3/cmd/registry",
    )],
    ldflags: "-s -w",
    takes: "1 minute",
};
/// The stages beside kwok, in the cache and in `KUBEBUILDER_ASSETS`.
const STAGES: &str = "kwok-stages.yaml";

/// Finds every program: in `KUBEBUILDER_ASSETS`, on PATH where the whole set has the right minor version, in the cache,
/// which is filled by `go build` where it is empty.
///
/// # Errors
/// Where something has to be built and Go is missing or fails.
pub fn locate() -> Result<Binaries> {
    let on_path = servers_on_path();
    let server = |name: &str, module: &Module| -> Result<PathBuf> {
        let on_path = on_path.iter().find(|(found, _)| *found == name);
        match asset(name).or_else(|| on_path.map(|(_, path)| path.clone())) {
            Some(path) => Ok(path),
            None => Ok(module.built()?.join(name)),
        }
    };
    // kwok is of no use without the stages of its own version.
    let kwok = match (asset("kwok"), asset(STAGES)) {
        (Some(kwok), Some(stages)) => (kwok, stages),
        _ => {
            let folder = KWOK.built()?;
            (folder.join("kwok"), folder.join(STAGES))
        }
    };
    Ok(Binaries {
        etcd: server("etcd", &ETCD)?,
        apiserver: server("kube-apiserver", &KUBERNETES)?,
        controller_manager: server("kube-controller-manager", &KUBERNETES)?,
        scheduler: server("kube-scheduler", &KUBERNETES)?,
        kubectl: match asset("kubectl").or_else(kubectl_on_path) {
            Some(path) => path,
            None => KUBERNETES.built()?.join("kubectl"),
        },
        kwok: kwok.0,
        stages: kwok.1,
    })
}

/// The peer of the benchmark: in `KUBEBUILDER_ASSETS`, else built like the control plane. One on PATH may be any version.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn helm() -> Result<PathBuf> {
    match asset("helm") {
        Some(path) => Ok(path),
        None => Ok(HELM.built()?.join("helm")),
    }
}

/// A registry of images: in `KUBEBUILDER_ASSETS`, else built like the control plane.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn registry() -> Result<PathBuf> {
    match asset("registry") {
        Some(path) => Ok(path),
        None => Ok(REGISTRY.built()?.join("registry")),
    }
}

/// A program in `KUBEBUILDER_ASSETS`.
fn asset(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os("KUBEBUILDER_ASSETS")?).join(name);
    path.is_file().then_some(path)
}

/// The servers on PATH: all of them, or none where one is missing or of another minor version.
fn servers_on_path() -> Vec<(&'static str, PathBuf)> {
    let servers = [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ];
    let found: Option<Vec<_>> = servers
        .into_iter()
        .map(|name| {
            let path = which(name)?;
            let fits = name == "etcd" || output(&path, &["--version"])?.contains(MINOR);
            fits.then_some((name, path))
        })
        .collect();
    found.unwrap_or_default()
}

/// kubectl on PATH, of any version, if it runs: it may be a dispatcher that downloads the real one.
fn kubectl_on_path() -> Option<PathBuf> {
    let path = which("kubectl")?;
    output(&path, &["version", "--client"])?;
    Some(path)
}

/// The first executable `name` on PATH.
#[must_use]
pub fn which(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn output(program: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Module {
    /// The folder with the built programs; builds them where it is not there.
    fn built(&self) -> Result<PathBuf> {
        let cache = cache_folder()?;
        let target = cache.join(format!("{}-{}", self.folder, self.fingerprint()?));
        if target.is_dir() {
            return Ok(target);
        }
        let Some(go) = which("go") else {
            let names = self.names();
            bail!(
                "{names} not found: install Go 1.26 or later (https://go.dev/dl), with which they are built once in about \
                 {}, or set KUBEBUILDER_ASSETS to a folder with {names}",
                self.takes
            );
        };
        fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
        let lock_path = cache.join(format!("{}.lock", self.folder));
        let lock = File::create(&lock_path).with_context(|| lock_path.display().to_string())?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(&format!(
                    "{}: another process builds it, waiting",
                    self.folder
                ));
                lock.lock()
                    .with_context(|| lock_path.display().to_string())?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| lock_path.display().to_string());
            }
        }
        if target.is_dir() {
            return Ok(target);
        }
        // Only the holder of the lock writes here, so what is left was cut off.
        let unfinished = cache.join(format!("{}.unfinished", self.folder));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(|| unfinished.display().to_string())?;
        }
        fs::create_dir_all(&unfinished).with_context(|| unfinished.display().to_string())?;
        self.build(&go, &unfinished)?;
        if self.folder == KWOK.folder {
            fs::write(unfinished.join(STAGES), self.stages(&go)?)?;
        }
        fs::rename(&unfinished, &target).with_context(|| target.display().to_string())?;
        Ok(target)
    }

    /// What the programs depend on, so that another pin is another folder.
    fn fingerprint(&self) -> Result<String> {
        let mut digest = Sha256::new();
        for file in ["go.mod", "go.sum"] {
            let path = self.source().join(file);
            digest.update(fs::read(&path).with_context(|| path.display().to_string())?);
        }
        digest.update(self.ldflags);
        let hex: String = digest
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(hex.chars().take(16).collect())
    }

    /// The programs, for messages.
    fn names(&self) -> String {
        let names: Vec<_> = self.programs.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("control-plane")
            .join(self.folder)
    }

    fn build(&self, go: &Path, into: &Path) -> Result<()> {
        let names = self.names();
        say(&format!(
            "building {names} once into {} (about {} on 2 cores)",
            into.display(),
            self.takes
        ));
        let began = Instant::now();
        let mut command = guard::command(go);
        command
            .args(["build", "-v", "-trimpath", "-ldflags", self.ldflags, "-o"])
            .env("CGO_ENABLED", "0")
            .current_dir(self.source())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // A main package in the root of a major version is called after the folder above it (etcd: `server`).
        match self.programs {
            [(name, package)] => command.arg(into.join(name)).arg(package),
            programs => command
                .arg(into)
                .args(programs.iter().map(|(_, package)| package)),
        };
        let mut go = guard::spawn(&mut command, b"").context("cannot start go build")?;
        let mut tail = Vec::new();
        let (mut packages, mut said) = (0_usize, Instant::now());
        if let Some(stderr) = go.stderr() {
            for line in BufReader::new(stderr).lines() {
                tail.push(line?);
                packages += 1;
                if tail.len() > 20 {
                    tail.remove(0);
                }
                if said.elapsed() >= PROGRESS {
                    said = Instant::now();
                    let package = tail.last().map_or("", String::as_str);
                    let elapsed = began.elapsed().as_secs();
                    say(&format!(
                        "  {elapsed:>4} s  {packages:>4} packages  {package}"
                    ));
                }
            }
        }
        if !go.wait()?.success() {
            bail!(
                "go build of {names} failed in {}:\n{}",
                self.source().display(),
                tail.join("\n")
            );
        }
        say(&format!("built {names} in {} s", began.elapsed().as_secs()));
        Ok(())
    }

    /// The stages of the kwok module, joined.
    fn stages(&self, go: &Path) -> Result<String> {
        let output = Command::new(go)
            .args(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"])
            .current_dir(self.source())
            .output()
            .context("cannot start go list")?;
        let module = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let mut documents = Vec::new();
        for folder in ["node/fast", "node/heartbeat", "pod/fast"] {
            let folder = module.join("kustomize/stage").join(folder);
            let mut files: Vec<_> = fs::read_dir(&folder)
                .with_context(|| folder.display().to_string())?
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .map(|entry| entry.path())
                .filter(|path| {
                    path.extension()
                        .is_some_and(|extension| extension == "yaml")
                })
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|name| name != "kustomization.yaml")
                })
                .collect();
            files.sort();
            for file in files {
                documents
                    .push(fs::read_to_string(&file).with_context(|| file.display().to_string())?);
            }
        }
        Ok(documents.join("---\n"))
    }
}

/// Outside `target`, for `cargo clean` must not cost minutes.
fn cache_folder() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context(
            "neither XDG_CACHE_HOME nor HOME is set: where can the control plane be cached?",
        )?;
    Ok(base.join("kubectl-addons-tests/control-plane"))
}

/// A line on stderr, past the capture of the test runner.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("control plane: {line}\n").as_bytes());
}
