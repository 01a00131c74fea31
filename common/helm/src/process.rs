//! Runs helm once. From the caller's environment, helm gets only proxies and certificates, and only if it contacts a cluster. The run is
//! limited in time and output, and in memory if the caller says so. If helm does not end, its whole process group is stopped.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use addons_sources::child::{self, FinishedRun, RunFailure, RunLimits, RunningProgram};
use common::values::mask::SecretMask;
use tokio::process::Command;
use tokio::sync::watch;

use super::workspace::Workspace;
use super::{Helm, HelmError};

/// Maximum number of bytes that are kept of stderr.
const MAX_WORDS: usize = 64 << 10;
/// Maximum number of bytes of a message that are shown.
const SHOWN: usize = 4 << 10;
/// Messages of a Go program that cannot allocate memory.
const NO_MEMORY: [&str; 3] = [
    "fatal error: out of memory",
    "fatal error: runtime: out of memory",
    "runtime: cannot allocate memory",
];
/// Time in which helm can mark a release as failed after it was asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// A run of helm: its arguments, environment and limits.
#[derive(Debug)]
pub(super) struct HelmCall<'a> {
    verb: &'static str,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    bound: Duration,
    output: usize,
    memory: Option<u64>,
    input: Vec<u8>,
    /// Hides values of Secrets in messages; `None` if helm reads none.
    mask: Option<&'a SecretMask>,
    /// If set, helm writes to a cluster until this becomes true; it is then asked to stop before it is killed.
    writes: Option<watch::Receiver<bool>>,
    /// Whether helm contacts a cluster. Otherwise it needs no network.
    online: bool,
    /// Whether helm gets the caller's environment, for programs that the kubeconfig names, which must run as they do for kubectl.
    ambient: bool,
}

/// The output of a run that succeeded.
#[derive(Debug)]
pub(super) struct HelmOutput {
    verb: &'static str,
    stdout: Vec<u8>,
}

impl<'a> HelmCall<'a> {
    /// `output` is the maximum number of bytes of stdout.
    pub(super) fn new(verb: &'static str, bound: Duration, output: usize) -> Self {
        Self {
            verb,
            args: Vec::new(),
            env: Vec::new(),
            bound,
            output,
            memory: None,
            input: Vec::new(),
            mask: None,
            writes: None,
            online: false,
            ambient: false,
        }
    }

    pub(super) fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub(super) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Sets the input on stdin. Values are passed there, so they never reach the disk.
    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    pub(super) fn mask(mut self, mask: &'a SecretMask) -> Self {
        self.mask = Some(mask);
        self
    }

    pub(super) fn writes(mut self, stop: watch::Receiver<bool>) -> Self {
        self.writes = Some(stop);
        self
    }

    /// Lets helm contact a cluster; `ambient` passes the environment that programs of the kubeconfig need.
    pub(super) fn online(mut self, ambient: bool) -> Self {
        (self.online, self.ambient) = (true, ambient);
        self
    }
}

impl HelmOutput {
    pub(super) fn text(self) -> Result<String, HelmError> {
        let verb = self.verb;
        String::from_utf8(self.stdout).map_err(|_| HelmError::Answer { verb })
    }
}

impl Helm {
    /// Runs helm to its end, with its memory limit.
    ///
    /// # Errors
    /// The same as for [`run`].
    pub(super) async fn run(
        &self,
        workspace: &Workspace,
        mut call: HelmCall<'_>,
    ) -> Result<HelmOutput, HelmError> {
        call.memory = self.memory;
        run(&self.program, workspace, call).await
    }
}

/// Runs helm to its end.
///
/// # Errors
/// Helm cannot be started, does not end in time, prints too much, or fails; the last error contains helm's own message.
pub(super) async fn run(
    program: &Path,
    workspace: &Workspace,
    call: HelmCall<'_>,
) -> Result<HelmOutput, HelmError> {
    let wrong = |source| HelmError::Start {
        program: program.display().to_string(),
        source,
    };
    // Do not start if a stop was requested in the meantime: earlier questions may have taken a while.
    if call.writes.as_ref().is_some_and(|stop| *stop.borrow()) {
        return Err(HelmError::Interrupted { verb: call.verb });
    }
    let mut running =
        RunningProgram::start(&mut command(program, workspace, &call)).map_err(wrong)?;
    let limits = RunLimits {
        time: call.bound,
        stdout: call.output,
        stderr: MAX_WORDS,
        memory: call.memory,
    };
    let ended = tokio::select! {
        ended = running.finish(&call.input, limits) => ended.map_err(|failure| match failure {
            RunFailure::Io(source) => wrong(source),
            RunFailure::TimedOut => HelmError::TimedOut { verb: call.verb, bound: call.bound },
            RunFailure::TooMuch => HelmError::TooMuch { verb: call.verb, limit: call.output },
        }),
        () = wait_for_stop(call.writes.clone()) => Err(HelmError::Interrupted { verb: call.verb }),
    };
    match ended {
        Ok(ended) => check_exit(&call, ended),
        Err(error) => {
            // Ask a helm that writes to a cluster to stop; it then marks its release as failed.
            if call.writes.is_some() {
                running.terminate(GRACE).await;
            }
            Err(error)
        }
    }
}

fn check_exit(call: &HelmCall<'_>, ended: FinishedRun) -> Result<HelmOutput, HelmError> {
    let (verb, status) = (call.verb, ended.status);
    if status.success() {
        let stdout = ended.stdout;
        return Ok(HelmOutput { verb, stdout });
    }
    let words = String::from_utf8_lossy(&ended.stderr);
    if let Some(limit) = call.memory
        && NO_MEMORY.iter().any(|no_memory| words.contains(no_memory))
    {
        return Err(HelmError::Memory { verb, limit });
    }
    let mut message = failure_message(&words, call.mask);
    if message.is_empty() {
        message = format!("it ended with {status} and said nothing");
    }
    Err(HelmError::Failed { verb, message })
}

fn command(program: &Path, workspace: &Workspace, call: &HelmCall<'_>) -> Command {
    let mut command = Command::new(program);
    command.args(&call.args);
    if call.ambient {
        for (name, _) in std::env::vars_os() {
            let is_helms = name.to_str().is_some_and(|name| name.starts_with("HELM_"));
            if is_helms || name == "KUBECONFIG" {
                command.env_remove(name);
            }
        }
    } else {
        command.current_dir(workspace.path());
        match call.online {
            true => child::isolate(&mut command),
            false => child::offline(&mut command),
        }
    }
    for (variable, folder) in workspace.variables() {
        // Programs of the kubeconfig look for their settings in the user's home.
        if !call.ambient || variable.starts_with("HELM_") {
            command.env(variable, folder);
        }
    }
    command.env("NO_COLOR", "1");
    if let Some(memory) = call.memory {
        // Makes Go collect garbage before the limit is reached.
        command.env("GOMEMLIMIT", (memory / 4 * 3).to_string());
    }
    command.envs(call.env.iter().map(|(name, value)| (name, value)));
    command
}

/// Ends when helm has to stop. The request is a state, not a signal, so it counts even if it comes just before helm starts. Helm receives
/// no signal itself, because it is in a process group of its own.
async fn wait_for_stop(stop: Option<watch::Receiver<bool>>) {
    if let Some(mut stop) = stop
        && stop.wait_for(|stops| *stops).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Extracts helm's error message, from `Error:` on, because warnings before it repeat values.
fn failure_message(words: &str, mask: Option<&SecretMask>) -> String {
    let start = words
        .match_indices("Error: ")
        .find(|(at, _)| {
            words
                .get(..*at)
                .is_none_or(|before| matches!(before.chars().last(), None | Some('\n')))
        })
        .map_or(0, |(at, found)| at + found.len());
    let lines = words.get(start..).unwrap_or_default().lines();
    let lines = lines
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with("Use --debug flag"));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    text.retain(|c| c == '\n' || !c.is_control());
    // Mask before shortening: half of a value would not be recognised.
    if let Some(mask) = mask {
        text = mask.mask_text(&text);
    }
    if text.len() > SHOWN {
        let end = (0..=SHOWN).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

/// Returns an argument `--NAME=VALUE`, so that a value that begins with `-` is not read as a flag.
pub(super) fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn what_writes_is_stopped_before_and_after_it_begins() {
        let (asked, stop) = watch::channel(false);
        let workspace = Workspace::new().unwrap();
        let run = async |program: &str| {
            let call = HelmCall::new("upgrade", Duration::from_secs(600), SHOWN).args(["600"]);
            run(Path::new(program), &workspace, call.writes(stop.clone())).await
        };
        let begun = Instant::now();
        // It is started before it is polled again, and stopped then.
        let ask = async { asked.send_replace(true) };
        let (started, _) = tokio::join!(run("/bin/sleep"), ask);
        // What is not started need not exist.
        for said in [started, run("/nonexistent").await] {
            let is_interrupted = matches!(said, Err(HelmError::Interrupted { .. }));
            assert!(is_interrupted, "{said:?}");
        }
        assert!(begun.elapsed() < GRACE, "{:?}", begun.elapsed());
    }

    #[test]
    fn words_of_helm() {
        let secrets = serde_json::json!(["s3cret", "ab", "first line\nsecond line"]);
        let mask = SecretMask::from_values([secrets].iter());
        for (words, expected) in [
            ("Error: a: b\n", "a: b"),
            (
                "warning: (map[password:x])\nError: a\n\nUse --debug flag to render out invalid YAML\n",
                "a",
            ),
            (
                "Error: values don't meet the specifications of the schema(s)\nweb:\n- (root): x is required\n",
                "values don't meet the specifications of the schema(s)\nweb:\n- (root): x is required",
            ),
            ("no helm\n", "no helm"),
            (
                "Error: fail s3cret ab second line\u{1b}[31m",
                "fail *** ab ***[31m",
            ),
            ("", ""),
        ] {
            assert_eq!(failure_message(words, Some(&mask)), expected);
        }
        assert_eq!(
            failure_message(&"ä".repeat(SHOWN), None).len(),
            SHOWN + "…".len()
        );
    }
}
