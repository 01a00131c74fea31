//! One run of helm: nothing of the caller's environment but, where it asks a cluster, proxies and certificates; bounded in time, output
//! and, where its caller says so, memory; its whole process group stopped where it does not end.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use addons_sources::child::{self, FinishedRun, RunFailure, RunLimits, RunningProgram};
use common::values::mask::Mask;
use tokio::process::Command;
use tokio::sync::watch;

use super::workspace::Workspace;
use super::{Helm, HelmError};

/// What is kept of its words.
const MAX_WORDS: usize = 64 << 10;
/// What is shown of them.
const SHOWN: usize = 4 << 10;
/// What a program in Go says that gets no more memory.
const NO_MEMORY: [&str; 3] = [
    "fatal error: out of memory",
    "fatal error: runtime: out of memory",
    "runtime: cannot allocate memory",
];
/// For a release to be marked as failed, once helm was asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// What to run.
#[derive(Debug)]
pub(super) struct Call<'a> {
    verb: &'static str,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    bound: Duration,
    output: usize,
    memory: Option<u64>,
    input: Vec<u8>,
    /// Hides what comes from Secrets; none where helm reads nothing of them.
    mask: Option<&'a Mask>,
    /// It writes to a cluster, until this is true: it is asked to stop before it is killed.
    writes: Option<watch::Receiver<bool>>,
    /// It asks a cluster; everything else needs no network.
    online: bool,
    /// A program that the kubeconfig names has to run as it does for kubectl.
    ambient: bool,
}

/// What it said, where it succeeded.
#[derive(Debug)]
pub(super) struct Said {
    verb: &'static str,
    stdout: Vec<u8>,
}

impl<'a> Call<'a> {
    /// `output`: bytes of stdout that are read at most.
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

    /// A variable of its environment.
    pub(super) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// What it reads on stdin: values never touch the disk.
    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    pub(super) fn mask(mut self, mask: &'a Mask) -> Self {
        self.mask = Some(mask);
        self
    }

    pub(super) fn writes(mut self, stop: watch::Receiver<bool>) -> Self {
        self.writes = Some(stop);
        self
    }

    /// Asks a cluster; `ambient`: with what a program of the kubeconfig needs.
    pub(super) fn online(mut self, ambient: bool) -> Self {
        (self.online, self.ambient) = (true, ambient);
        self
    }
}

impl Said {
    pub(super) fn text(self) -> Result<String, HelmError> {
        let verb = self.verb;
        String::from_utf8(self.stdout).map_err(|_| HelmError::Answer { verb })
    }
}

impl Helm {
    /// Runs it to its end, with the memory that it may take.
    ///
    /// # Errors
    /// As [`run`].
    pub(super) async fn run(
        &self,
        workspace: &Workspace,
        mut call: Call<'_>,
    ) -> Result<Said, HelmError> {
        call.memory = self.memory;
        run(&self.program, workspace, call).await
    }
}

/// Runs helm to its end.
///
/// # Errors
/// It cannot be started, does not end in time, prints too much, or fails: then its own words are in the error.
pub(super) async fn run(
    program: &Path,
    workspace: &Workspace,
    call: Call<'_>,
) -> Result<Said, HelmError> {
    let wrong = |source| HelmError::Start {
        program: program.display().to_string(),
        source,
    };
    // It does not begin any more: the questions before it may have taken their time.
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
        () = interrupted(call.writes.clone()) => Err(HelmError::Interrupted { verb: call.verb }),
    };
    match ended {
        Ok(ended) => finished(&call, ended),
        Err(error) => {
            // One that writes to a cluster is asked first, and then marks its release as failed.
            if call.writes.is_some() {
                running.terminate(GRACE).await;
            }
            Err(error)
        }
    }
}

fn finished(call: &Call<'_>, ended: FinishedRun) -> Result<Said, HelmError> {
    let (verb, status) = (call.verb, ended.status);
    if status.success() {
        let stdout = ended.stdout;
        return Ok(Said { verb, stdout });
    }
    let words = String::from_utf8_lossy(&ended.stderr);
    if let Some(limit) = call.memory
        && NO_MEMORY.iter().any(|no_memory| words.contains(no_memory))
    {
        return Err(HelmError::Memory { verb, limit });
    }
    let mut message = message(&words, call.mask);
    if message.is_empty() {
        message = format!("it ended with {status} and said nothing");
    }
    Err(HelmError::Failed { verb, message })
}

fn command(program: &Path, workspace: &Workspace, call: &Call<'_>) -> Command {
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
        // The programs of a kubeconfig look for their settings at home.
        if !call.ambient || variable.starts_with("HELM_") {
            command.env(variable, folder);
        }
    }
    command.env("NO_COLOR", "1");
    if let Some(memory) = call.memory {
        // It collects its garbage before it is refused more.
        command.env("GOMEMLIMIT", (memory / 4 * 3).to_string());
    }
    command.envs(call.env.iter().map(|(name, value)| (name, value)));
    command
}

/// Ends once helm has to stop. It is a state, not a signal: one that comes just before helm is started counts too. Helm hears no signal
/// itself, for it is in a process group of its own.
async fn interrupted(stop: Option<watch::Receiver<bool>>) {
    if let Some(mut stop) = stop
        && stop.wait_for(|stops| *stops).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// What helm says of its failure, on one line or few: from `Error:` on, for warnings before it repeat values.
fn message(words: &str, mask: Option<&Mask>) -> String {
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
    // Before it is shortened: half of a value cannot be recognised.
    if let Some(mask) = mask {
        text = mask.text(&text);
    }
    if text.len() > SHOWN {
        let end = (0..=SHOWN).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

/// An argument `--NAME=VALUE`: a value that begins with `-` is not read as a flag then.
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
            let call = Call::new("upgrade", Duration::from_secs(600), SHOWN).args(["600"]);
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
        let mask = Mask::of([secrets].iter());
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
            assert_eq!(message(words, Some(&mask)), expected);
        }
        assert_eq!(message(&"ä".repeat(SHOWN), None).len(), SHOWN + "…".len());
    }
}
