//! Running the plugin and kubectl as a user does: from a shell of their own, against one cluster.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::binaries;
use crate::control_plane::ControlPlane;
use crate::guard::{self, Folder, Guarded};
use crate::times;

/// A user's environment: home, caches and PATH are private, nothing of the caller's environment comes in.
pub struct Plugin {
    binary: PathBuf,
    measured: PathBuf,
    kubeconfig: PathBuf,
    home: Folder,
    path: OsString,
    variables: Vec<(String, String)>,
    /// What every command of the plugin is given besides its own arguments.
    flags: Vec<String>,
}

/// What a program said and took.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The data.
    pub stdout: String,
    /// All else.
    pub stderr: String,
    /// The exit code; 128 + n where signal n killed it.
    pub code: i32,
    /// Wall time from start to end.
    pub elapsed: Duration,
    /// CPU time in user and kernel mode, of the program and the children it waited for.
    pub cpu: Duration,
    /// Peak resident memory in bytes.
    pub max_rss: u64,
}

#[derive(Deserialize)]
struct Report {
    wall_us: u64,
    user_us: u64,
    system_us: u64,
    peak_bytes: u64,
}

impl Plugin {
    /// The kubeconfig of the user.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// For a user with this kubeconfig; on the PATH are `kubectl`, `kubectl-addons`, `kubectl_complete-addons` and what
    /// the caller has on it.
    ///
    /// # Errors
    /// Where the workspace does not build.
    pub fn new(cluster: &ControlPlane, kubeconfig: &Path) -> Result<Self> {
        let binary = binaries::plugin()?;
        let home = Folder::new("kubectl-addons-home-")?;
        let bin = home.path().join("bin");
        fs::create_dir(&bin)?;
        let kubectl = &cluster.binaries().kubectl;
        // A kubectl on the PATH may be a dispatcher that looks at its own name and place.
        if !std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| kubectl.parent() == Some(&folder))
        {
            symlink(kubectl, bin.join("kubectl"))?;
        }
        symlink(&binary, bin.join("kubectl-addons"))?;
        symlink(&binary, bin.join("kubectl_complete-addons"))?;
        let mut path = bin.into_os_string();
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        Ok(Self {
            binary,
            measured: binaries::measured()?,
            kubeconfig: kubeconfig.to_owned(),
            home,
            path,
            variables: Vec::new(),
            flags: Vec::new(),
        })
    }

    /// For the administrator.
    ///
    /// # Errors
    /// As [`Plugin::new`].
    pub fn admin(cluster: &ControlPlane) -> Result<Self> {
        Self::new(cluster, cluster.kubeconfig())
    }

    /// Sets a variable for everything that is run from now on.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes a namespace the system namespace of everything that the plugin runs from now on: tests that share a cluster do not
    /// meet each other's catalogues and installations.
    #[must_use]
    pub fn system_namespace(mut self, name: &str) -> Self {
        self.flags = vec![format!("--system-namespace={name}")];
        self
    }

    /// The arguments with the flags that every command is given.
    fn with_flags<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let flags = self.flags.iter().map(String::as_str);
        let is_given = args.iter().any(|arg| arg.starts_with("--system-namespace"));
        let flags = flags.filter(|_| !is_given);
        args.iter().copied().chain(flags).collect()
    }

    /// The private home folder; files for `-f` may lie in it.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs `kubectl-addons ARGS`.
    ///
    /// # Errors
    /// Where it cannot be started. That it fails is in [`Output::code`].
    pub async fn run(&self, args: &[&str]) -> Result<Output> {
        self.program(&self.binary, &self.with_flags(args)).await
    }

    /// Runs `kubectl-addons ARGS` with something on its stdin, 64 KiB at most.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub async fn run_with_input(&self, args: &[&str], input: &str) -> Result<Output> {
        self.program_with_input(&self.binary, &self.with_flags(args), input)
            .await
    }

    /// Runs `kubectl ARGS`.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.program(Path::new("kubectl"), args).await
    }

    /// Runs `kubectl ARGS` with something on its stdin, 64 KiB at most.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub async fn kubectl_with_input(&self, args: &[&str], input: &str) -> Result<Output> {
        self.program_with_input(Path::new("kubectl"), args, input)
            .await
    }

    /// Runs any other program as this user.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub async fn program(&self, program: &Path, args: &[&str]) -> Result<Output> {
        self.program_with_input(program, args, "").await
    }

    /// Starts `kubectl-addons ARGS` and returns at once, for tests that kill it; its output goes to two files in the
    /// home folder, `stdout` and `stderr`.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub fn start(&self, args: &[&str]) -> Result<Guarded> {
        let mut command = guard::command(&self.binary);
        self.environment(&mut command);
        command
            .args(self.with_flags(args))
            .stdout(fs::File::create(self.home().join("stdout"))?)
            .stderr(fs::File::create(self.home().join("stderr"))?);
        Ok(guard::spawn(&mut command, b"")?)
    }

    /// Runs `kubectl-addons ARGS` on a terminal of its own (`script` of util-linux), where somebody types `typed` and then ends
    /// the input; both streams are in [`Output::stdout`], with the line ends of a terminal.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub async fn run_on_terminal(&self, args: &[&str], typed: &str) -> Result<Output> {
        let command = self.command_line(args);
        let args = ["--quiet", "--return", "--command", &command, "/dev/null"];
        self.program_with_input(Path::new("script"), &args, typed)
            .await
    }

    /// Starts `kubectl-addons ARGS` on a terminal of its own, for tests that answer what they see; what it says goes to the
    /// file `stdout` in the home folder.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub fn talk(&self, args: &[&str]) -> Result<(Guarded, ChildStdin)> {
        let mut command = guard::command(Path::new("script"));
        self.environment(&mut command);
        command
            .args(["--quiet", "--return", "--flush", "--command"])
            .args([&self.command_line(args), "/dev/null"])
            .stdout(fs::File::create(self.home().join("stdout"))?)
            .stderr(fs::File::create(self.home().join("stderr"))?);
        let (process, stdin) = guard::spawn_to_talk(&mut command)?;
        Ok((process, stdin.context("script has no stdin")?))
    }

    /// The plugin with these arguments, for a shell.
    fn command_line(&self, args: &[&str]) -> String {
        let program = self.binary.to_string_lossy();
        let words = std::iter::once(&*program).chain(self.with_flags(args));
        let quoted = words.map(|word| format!("'{}'", word.replace('\'', r"'\''")));
        let quoted: Vec<String> = quoted.collect();
        format!("exec {}", quoted.join(" "))
    }

    async fn program_with_input(
        &self,
        program: &Path,
        args: &[&str],
        input: &str,
    ) -> Result<Output> {
        let scratch = tempfile::tempdir()?;
        let report = scratch.path().join("report");
        let mut command = guard::command(&self.measured);
        self.environment(&mut command);
        command
            .args([report.as_os_str(), program.as_os_str()])
            .args(args)
            .stdout(fs::File::create(scratch.path().join("stdout"))?)
            .stderr(fs::File::create(scratch.path().join("stderr"))?);
        let mut process = guard::spawn(&mut command, input.as_bytes())
            .with_context(|| format!("cannot start {}", program.display()))?;
        // The thread that waits goes on when this future is dropped, as by a test's time-out.
        let _leash = process.leash();
        let status = tokio::task::spawn_blocking(move || process.wait()).await??;
        let text = |name: &str| -> Result<String> {
            let bytes = fs::read(scratch.path().join(name))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let Ok(report) = text("report") else {
            bail!(
                "cannot run {}: {}",
                program.display(),
                text("stderr")?.trim()
            );
        };
        let report: Report = serde_json::from_str(&report)?;
        let cpu = Duration::from_micros(report.user_us + report.system_us);
        times::program_ended(program, cpu);
        Ok(Output {
            stdout: text("stdout")?,
            stderr: text("stderr")?,
            code: status.code().unwrap_or(-1),
            elapsed: Duration::from_micros(report.wall_us),
            cpu,
            max_rss: report.peak_bytes,
        })
    }

    fn environment(&self, command: &mut Command) {
        let home: &OsStr = self.home().as_os_str();
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", home)
            .env("XDG_CACHE_HOME", self.home().join("cache"))
            .env("KUBECONFIG", &self.kubeconfig)
            // Records of tests name indexes in many folders.
            .env("KUBECTL_ADDONS_OWN_ACCESS", "/")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(home)
            .stdin(Stdio::piped());
    }
}

impl Output {
    /// The output itself where the program ended with 0, else an error with what it said.
    ///
    /// # Errors
    /// Where the exit code is not 0.
    pub fn done(self) -> Result<Self> {
        self.ended(0)
    }

    /// The output itself where the program ended with this code, else an error with what it said.
    ///
    /// # Errors
    /// Where the exit code is another one.
    pub fn ended(self, code: i32) -> Result<Self> {
        if self.code == code {
            return Ok(self);
        }
        bail!(
            "exit code {} instead of {code}\n{}{}",
            self.code,
            self.stdout,
            self.stderr
        )
    }
}
