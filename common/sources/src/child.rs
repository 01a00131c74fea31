//! Other programs (git, ssh, helm, kubectl, kustomize) as children of this one: what they get of our environment, how much they may
//! print and how long they may take, and how they and their own children end.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::platform;

/// How the network is reached.
const NETWORK: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Clears the environment of a program but for what every program needs: no settings and no credentials of this machine.
pub fn clear(command: &mut Command) {
    command.env_clear();
    pass(command, &platform::PASSED);
}

/// How programs are told of a proxy, by its scheme.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
/// No proxy: nothing listens at the port of the protocol `discard`.
const NOWHERE: &str = "http://127.0.0.1:9";

/// As [`clear`], for a program that needs no network: it finds no way to other machines.
pub fn offline(command: &mut Command) {
    clear(command);
    command.envs(PROXIES.map(|name| (name, NOWHERE)));
}

/// Clears the environment of a program but for what every program needs, proxies and certificate authorities.
pub fn isolate(command: &mut Command) {
    clear(command);
    pass(command, &NETWORK);
}

fn pass(command: &mut Command, names: &[&str]) {
    for name in names {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// The limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// Bytes of stdout; a program that prints more is stopped.
    pub output: usize,
    /// Bytes of stderr that are kept; the rest is read and dropped.
    pub words: usize,
    /// Bytes of memory that it may take, and each program that it starts; `None` = any. Only Linux limits that.
    pub memory: Option<u64>,
}

/// A run that ended by itself.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code.
    pub status: ExitStatus,
    /// Its stdout.
    pub output: Vec<u8>,
    /// The beginning of its stderr.
    pub words: Vec<u8>,
}

/// Why a run did not end by itself.
#[derive(Debug)]
pub enum Failure {
    /// It cannot be read from.
    Io(std::io::Error),
    /// It took longer than [`Limits::time`].
    TimedOut,
    /// It printed more than [`Limits::output`].
    TooMuch,
}

/// A program that was started. It and its own children are killed when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

/// stdin, stdout and stderr of a program.
pub type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl Running {
    /// Starts a program in a process group of its own.
    ///
    /// # Errors
    /// It does not exist, or cannot be run.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        platform::own_group(command);
        command.spawn().map(Self)
    }

    /// Takes its pipes.
    ///
    /// # Errors
    /// They were taken before.
    pub fn pipes(&mut self) -> std::io::Result<Pipes> {
        match (
            self.0.stdin.take(),
            self.0.stdout.take(),
            self.0.stderr.take(),
        ) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes `input` to the program and waits for its end. After an error it still runs, until it is dropped.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn end(&mut self, input: &[u8], limits: Limits) -> Result<Ended, Failure> {
        if let Some(bytes) = limits.memory {
            platform::limit_memory(&self.0, bytes).map_err(Failure::Io)?;
        }
        let (mut stdin, stdout, stderr) = self.pipes().map_err(Failure::Io)?;
        let feed = async {
            // A program that does not read its input explains itself by its exit code.
            let _ = stdin.write_all(input).await;
            drop(stdin);
            Ok(())
        };
        let output = async {
            let output = all(stdout, limits.output).await.map_err(Failure::Io)?;
            output.ok_or(Failure::TooMuch)
        };
        let words = async { beginning(stderr, limits.words).await.map_err(Failure::Io) };
        let ended = timeout(limits.time, async {
            let ((), output, words) = tokio::try_join!(feed, output, words)?;
            let status = self.0.wait().await.map_err(Failure::Io)?;
            Ok(Ended {
                status,
                output,
                words,
            })
        });
        ended.await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Asks the program to end, and waits for that no longer than `grace`.
    pub async fn ask(&mut self, grace: Duration) {
        platform::terminate_group(&self.0);
        let _ = timeout(grace, self.0.wait()).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        platform::kill_group(&self.0);
    }
}

/// All that a pipe holds; `None` where that is more than `limit`.
async fn all(pipe: impl AsyncRead + Unpin, limit: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    pipe.take(limit as u64 + 1).read_to_end(&mut bytes).await?;
    Ok((bytes.len() <= limit).then_some(bytes))
}

/// The beginning of what a pipe holds; the rest is read, because a full pipe would hold the program for ever.
///
/// # Errors
/// Those of the pipe.
pub async fn beginning(mut pipe: impl AsyncRead + Unpin, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut pipe)
        .take(limit as u64)
        .read_to_end(&mut bytes)
        .await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(bytes)
}
