//! Where the programs of the control plane come from: what is there already, else built once from pinned Go modules.

mod module;

use std::env;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::Result;

use module::{Module, Program};

/// The minor version that the tests are written for.
const MINOR: &str = "v1.36.";

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
    /// kubectl.
    pub kubectl: PathBuf,
}

/// One module, so that the packages that these programs share are compiled once.
const CLUSTER: Module = Module {
    folder: "cluster",
    programs: &[
        Program {
            name: "etcd",
            package: "go.etcd.io/etcd/server/v3",
        },
        Program {
            name: "kube-apiserver",
            package: "k8s.io/kubernetes/cmd/kube-apiserver",
        },
        Program {
            name: "kube-controller-manager",
            package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        },
        Program {
            name: "kube-scheduler",
            package: "k8s.io/kubernetes/cmd/kube-scheduler",
        },
        Program {
            name: "kubectl",
            package: "k8s.io/kubernetes/cmd/kubectl",
        },
    ],
    ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
              -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
};
const HELM: Module = Module {
    folder: "helm",
    programs: &[Program {
        name: "helm",
        package: "helm.sh/helm/v4/cmd/helm",
    }],
    ldflags: "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1",
};
const KAPP: Module = Module {
    folder: "kapp",
    programs: &[Program {
        name: "kapp",
        package: "carvel.dev/kapp/cmd/kapp",
    }],
    ldflags: "-s -w",
};
const REGISTRY: Module = Module {
    folder: "registry",
    programs: &[Program {
        name: "registry",
        package: "github.com/distribution/distribution/v3/cmd/registry",
    }],
    ldflags: "-s -w",
};
const KOPS: Module = Module {
    folder: "kops",
    programs: &[Program {
        name: "channels",
        package: "k8s.io/kops/channels/cmd/channels",
    }],
    ldflags: "-s -w",
};
const KREW: Module = Module {
    folder: "krew",
    programs: &[
        Program {
            name: "kubectl-krew",
            package: "sigs.k8s.io/krew/cmd/krew",
        },
        Program {
            name: "validate-krew-manifest",
            package: "sigs.k8s.io/krew/cmd/validate-krew-manifest",
        },
    ],
    ldflags: "-s -w",
};
const SERVERS: [&str; 4] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// What is there without building anything, each by its name.
struct Found(Vec<(&'static str, PathBuf)>);

/// Finds every program: in `KUBEBUILDER_ASSETS`, on PATH where the whole set has the right minor version, in the cache,
/// which is filled by `go build` where it is empty.
///
/// # Errors
/// Where something has to be built and Go is missing or fails.
pub fn locate() -> Result<Binaries> {
    let found = Found::now();
    let folder = CLUSTER.provide(&found.others())?;
    let path = |name: &str| found.get(name).unwrap_or_else(|| folder.join(name));
    Ok(Binaries {
        etcd: path("etcd"),
        apiserver: path("kube-apiserver"),
        controller_manager: path("kube-controller-manager"),
        scheduler: path("kube-scheduler"),
        kubectl: path("kubectl"),
    })
}

/// The programs that [`locate`] has to build first; empty where everything is there.
///
/// # Errors
/// Where something has to be built and Go is missing.
pub fn missing() -> Result<Vec<&'static str>> {
    let missing = CLUSTER.missing(&Found::now().others())?;
    if !missing.is_empty() {
        CLUSTER.go(&missing)?;
    }
    Ok(missing)
}

/// About how long `count` things take on the cores of this machine, of which one core does so many in a minute.
#[must_use]
pub fn about(count: usize, per_minute: f64) -> String {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let minutes = (count as f64 / per_minute / cores as f64).ceil().max(1.0);
    format!("about {minutes} min on {cores} cores")
}

impl Found {
    fn now() -> Self {
        let mut found = servers_on_path();
        let assets = SERVERS.map(|name| Some((name, asset(name)?)));
        // Those of KUBEBUILDER_ASSETS come first.
        found.splice(0..0, assets.into_iter().flatten());
        if let Some(kubectl) = asset("kubectl").or_else(kubectl_on_path) {
            found.push(("kubectl", kubectl));
        }
        Self(found)
    }

    fn get(&self, name: &str) -> Option<PathBuf> {
        let found = self.0.iter().find(|(found, _)| *found == name);
        found.map(|(_, path)| path.clone())
    }

    /// The programs that are not there.
    fn others(&self) -> Vec<&'static str> {
        let names = CLUSTER.programs.iter().map(|program| program.name);
        names.filter(|name| self.get(name).is_none()).collect()
    }
}

/// The peer of the benchmark: in `KUBEBUILDER_ASSETS`, else built like the control plane. One on PATH may be any version.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn helm() -> Result<PathBuf> {
    match asset("helm") {
        Some(path) => Ok(path),
        None => Ok(HELM.provide(&["helm"])?.join("helm")),
    }
}

/// A tool that add-ons are adopted from: in `KUBEBUILDER_ASSETS`, else built like the control plane.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn kapp() -> Result<PathBuf> {
    match asset("kapp") {
        Some(path) => Ok(path),
        None => Ok(KAPP.provide(&["kapp"])?.join("kapp")),
    }
}

/// A registry of images: in `KUBEBUILDER_ASSETS`, else built like the control plane.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn registry() -> Result<PathBuf> {
    match asset("registry") {
        Some(path) => Ok(path),
        None => Ok(REGISTRY.provide(&["registry"])?.join("registry")),
    }
}

/// kops' own tool for channels, the peer of `channel apply`: in `KUBEBUILDER_ASSETS`, else built like the control plane.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn channels() -> Result<PathBuf> {
    match asset("channels") {
        Some(path) => Ok(path),
        None => Ok(KOPS.provide(&["channels"])?.join("channels")),
    }
}

/// A folder with krew, as the plugin of kubectl that it is, and with the program that checks manifests for its index.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn krew() -> Result<PathBuf> {
    let names = ["kubectl-krew", "validate-krew-manifest"];
    match (env::var_os("KUBEBUILDER_ASSETS"), names.map(asset)) {
        (Some(assets), [Some(_), Some(_)]) => Ok(assets.into()),
        _ => KREW.provide(&names),
    }
}

/// A program in `KUBEBUILDER_ASSETS`.
fn asset(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os("KUBEBUILDER_ASSETS")?).join(name);
    path.is_file().then_some(path)
}

/// The servers on PATH: all of them, or none where one is missing or of another minor version.
fn servers_on_path() -> Vec<(&'static str, PathBuf)> {
    let found: Option<Vec<_>> = SERVERS
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

/// The linter of workflows, built like the control plane.
///
/// # Errors
/// Where it has to be built and Go is missing or fails.
pub fn actionlint() -> Result<PathBuf> {
    const ACTIONLINT: Module = Module {
        folder: "actionlint",
        programs: &[Program {
            name: "actionlint",
            package: "github.com/rhysd/actionlint/cmd/actionlint",
        }],
        ldflags: "-s -w",
    };
    Ok(ACTIONLINT.provide(&["actionlint"])?.join("actionlint"))
}
