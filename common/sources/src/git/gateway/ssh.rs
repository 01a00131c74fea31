//! Connects git to a server with the program `ssh`, either with the key and the known hosts of a Secret or
//! with the configuration of the user. The data passes unchanged and is counted.

use std::convert::Infallible;
use std::fs;
use std::future::pending;
use std::io::{self, Write};
use std::path::{MAIN_SEPARATOR, Path};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::Traffic;
use crate::child::{self, RunningProgram};
use crate::credentials::{Credentials, Proof};
use crate::git::GitProblem;
use crate::git::program::{MAX_WORDS, last_line, not_started};
use crate::git::remote::SshRemote;
use crate::http::guard;
use crate::loopback::Loopback;
use crate::platform;
use crate::reach::Addresses;

/// The timeout for connecting, in seconds.
const CONNECT_TIMEOUT: u8 = 10;
/// The start of the request of git, before the path.
const SERVICE: &str = "git-upload-pack /";

/// A server that is reached over ssh.
pub struct SshBackend<'a> {
    ssh: &'a SshRemote,
    has_credentials: bool,
    arguments: Vec<String>,
}

impl<'a> SshBackend<'a> {
    /// Sets up ssh for a server. The key is written to `home`.
    ///
    /// # Errors
    /// The host has a forbidden address, or the key cannot be written.
    pub async fn new(
        ssh: &'a SshRemote,
        credentials: Option<&Credentials>,
        addresses: Addresses,
        home: &Path,
    ) -> Result<Self, GitProblem> {
        let mut arguments =
            arguments(credentials, home).map_err(|source| GitProblem::Folder { source })?;
        if let Some(port) = ssh.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        arguments.extend(host_options(ssh, addresses).await?);
        Ok(Self {
            ssh,
            has_credentials: credentials.is_some(),
            arguments,
        })
    }

    /// Serves one connection of git.
    pub async fn serve(&self, loopback: &Loopback, traffic: &Traffic, mut stream: TcpStream) {
        if has_token(loopback, &mut stream).await
            && let Err(problem) = self.exchange(traffic, stream).await
        {
            traffic.fail(problem);
        }
    }

    /// Runs ssh until the server, git or the caller ends.
    async fn exchange(&self, traffic: &Traffic, stream: TcpStream) -> Result<(), GitProblem> {
        let failed = |source: io::Error| GitProblem::Connection {
            source: source.into(),
        };
        let mut running = RunningProgram::start(&mut self.command())
            .map_err(|source| not_started("ssh", source))?;
        let (mut stdin, mut stdout, stderr) = running.pipes().map_err(failed)?;
        let (mut from_git, mut to_git) = stream.into_split();
        let up = async {
            // If ssh stops reading, its messages say why.
            let _ = tokio::io::copy(&mut from_git, &mut stdin).await;
            drop(stdin);
            pending::<Infallible>().await
        };
        let down = async {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let count = stdout.read(&mut buffer).await.map_err(failed)?;
                let read = buffer.get(..count).unwrap_or_default();
                if read.is_empty() {
                    return Ok(());
                }
                traffic.received(count)?;
                to_git.write_all(read).await.map_err(failed)?;
            }
        };
        let words = async {
            child::read_beginning(stderr, MAX_WORDS)
                .await
                .map_err(failed)
        };
        // Git sees the end only after the messages of ssh have been read.
        let ended = async {
            let ((), words) = tokio::try_join!(down, words)?;
            Ok::<_, GitProblem>(words)
        };
        let words = tokio::select! {
            ended = ended => ended?,
            never = up => match never {},
        };
        match classify_failure(&String::from_utf8_lossy(&words), self.has_credentials) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("ssh");
        command.args(&self.arguments);
        if self.has_credentials {
            // ssh does not get the agent, the settings and the home folder of the user.
            child::clear(&mut command);
        }
        let host = match &self.ssh.user {
            Some(user) => format!("{user}@{}", self.ssh.host),
            None => self.ssh.host.clone(),
        };
        let service = format!("git-upload-pack {}", quote_for_shell(&self.ssh.path));
        command
            .args(["--", &host, &service])
            .env("GIT_PROTOCOL", "version=2");
        command
    }
}

/// Reads the first line of git, which is `git-upload-pack /PATH`, a zero byte and more, and returns whether
/// the path is the token.
async fn has_token(loopback: &Loopback, stream: &mut TcpStream) -> bool {
    let mut length = [0; 4];
    if stream.read_exact(&mut length).await.is_err() {
        return false;
    }
    let length = std::str::from_utf8(&length).ok();
    let length = length.and_then(|length| usize::from_str_radix(length, 16).ok());
    let mut line = vec![0; length.unwrap_or_default().saturating_sub(4)];
    if stream.read_exact(&mut line).await.is_err() {
        return false;
    }
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let token = std::str::from_utf8(line).ok();
    let token = token.and_then(|line| line.strip_prefix(SERVICE));
    token.is_some_and(|token| loopback.is_token(token))
}

/// Quotes a word for the shell of the server as git does.
fn quote_for_shell(word: &str) -> String {
    let quoted = word.replace('\'', r"'\''").replace('!', r"'\!'");
    format!("'{quoted}'")
}

/// Checks the addresses of the host, and returns options that make ssh connect to a checked address but look
/// up the host key by name.
async fn host_options(ssh: &SshRemote, addresses: Addresses) -> Result<Vec<String>, GitProblem> {
    let found = guard::checked_address(&ssh.host, addresses).await;
    let found = found.map_err(|refused| GitProblem::Http {
        source: refused.into(),
    })?;
    let Some(address) = found else {
        return Ok(Vec::new());
    };
    let alias = match ssh.port {
        Some(port) if port != 22 => format!("[{}]:{port}", ssh.host),
        _ => ssh.host.clone(),
    };
    let options = [
        format!("HostName={address}"),
        format!("HostKeyAlias={alias}"),
    ];
    Ok(options
        .into_iter()
        .flat_map(|option| ["-o".to_owned(), option])
        .collect())
}

/// Returns the arguments of ssh.
fn arguments(credentials: Option<&Credentials>, folder: &Path) -> io::Result<Vec<String>> {
    let mut options = vec![
        "BatchMode=yes".to_owned(),
        format!("ConnectTimeout={CONNECT_TIMEOUT}"),
        "SendEnv=GIT_PROTOCOL".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
    ];
    let mut arguments = vec!["-T".to_owned()];
    if let Some(Proof::Ssh {
        private_key,
        known_hosts,
    }) = credentials.map(|credentials| &credentials.proof)
    {
        let (key, hosts) = (folder.join("key"), folder.join("known_hosts"));
        write(&key, private_key)?;
        write(&hosts, known_hosts)?;
        arguments.extend(["-F".to_owned(), "/dev/null".to_owned()]);
        options.extend([
            format!("IdentityFile={}", quote_path(&key)?),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            format!("UserKnownHostsFile={}", quote_path(&hosts)?),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "UpdateHostKeys=no".to_owned(),
            "PreferredAuthentications=publickey".to_owned(),
        ]);
    }
    for option in options {
        arguments.extend(["-o".to_owned(), option]);
    }
    Ok(arguments)
}

/// Quotes a path as the value of an ssh option. ssh splits values at blanks and expands `%` and `${`.
fn quote_path(path: &Path) -> io::Result<String> {
    // ssh on Windows accepts `/` too.
    let path = path.to_str().map(|path| path.replace(MAIN_SEPARATOR, "/"));
    match path {
        Some(text) if !text.contains(['"', '\\', '$', '\n']) => {
            Ok(format!("\"{}\"", text.replace('%', "%%")))
        }
        _ => Err(io::Error::other(
            "the path of the temporary folder has characters that ssh cannot be given; set TMPDIR",
        )),
    }
}

/// Writes a file that only the user can read.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    let mut file = platform::create_private(path)?;
    file.write_all(bytes)?;
    // ssh rejects a key without a final line break, which many editors of Secrets remove.
    if !bytes.ends_with(b"\n") {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// Derives the error from the messages of ssh or of git on the server.
fn classify_failure(said: &str, with_credentials: bool) -> Option<GitProblem> {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let has = |words: &[&str]| {
        let found = lines
            .iter()
            .find(|line| words.iter().any(|word| line.contains(word)));
        found.map(|line| line.replace(|c: char| c.is_control(), " "))
    };
    if let Some(text) = has(&[
        "Host key verification failed",
        "host key is known",
        "HOST IDENTIFICATION",
    ]) {
        return Some(GitProblem::HostKey { text });
    }
    if let Some(status) = has(&[
        "Permission denied",
        "invalid format",
        "error in libcrypto",
        "Too many authentication",
    ]) {
        let way_out = if with_credentials {
            "the key of auth.secretRef is wrong or needs a passphrase, or may not read this repository"
        } else {
            "ssh has no key that the server takes; try: ssh -T HOST"
        };
        return Some(GitProblem::Denied {
            status,
            way_out: way_out.to_owned(),
        });
    }
    if let Some(status) = has(&[
        "does not appear to be a git repository",
        "not found",
        "does not exist",
        "No such file",
    ]) {
        return Some(GitProblem::Missing { status });
    }
    last_line(said).map(|last| GitProblem::Connection {
        source: last.into(),
    })
}
