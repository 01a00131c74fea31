//! The program `ssh`: with the key and the hosts of a Secret, or with the user's own configuration. What git and the server say to each
//! other passes unchanged, and is counted.

use std::convert::Infallible;
use std::fs;
use std::future::pending;
use std::io::{self, Write};
use std::path::{MAIN_SEPARATOR, Path};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::Traffic;
use crate::child::{self, Running};
use crate::credentials::{Credentials, Proof};
use crate::git::Problem;
use crate::git::program::{MAX_WORDS, last_line, not_started};
use crate::git::remote::Ssh;
use crate::http::guard;
use crate::loopback::Loopback;
use crate::platform;
use crate::reach::Addresses;

/// Seconds until a host has answered.
const CONNECT_TIMEOUT: u8 = 10;
/// What git asks a server for, before the path.
const SERVICE: &str = "git-upload-pack /";

/// A server.
pub struct SshWay<'a> {
    ssh: &'a Ssh,
    has_credentials: bool,
    arguments: Vec<String>,
}

impl<'a> SshWay<'a> {
    /// A server with these credentials. The key is written into `home`.
    ///
    /// # Errors
    /// A host that is out of reach; the key cannot be written.
    pub async fn new(
        ssh: &'a Ssh,
        credentials: Option<&Credentials>,
        addresses: Addresses,
        home: &Path,
    ) -> Result<Self, Problem> {
        let mut arguments =
            arguments(credentials, home).map_err(|source| Problem::Folder { source })?;
        if let Some(port) = ssh.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        arguments.extend(judged(ssh, addresses).await?);
        Ok(Self {
            ssh,
            has_credentials: credentials.is_some(),
            arguments,
        })
    }

    /// Serves one connection of git.
    pub async fn serve(&self, loopback: &Loopback, traffic: &Traffic, mut stream: TcpStream) {
        if is_ours(loopback, &mut stream).await
            && let Err(problem) = self.exchange(traffic, stream).await
        {
            traffic.fail(problem);
        }
    }

    /// Runs ssh, until the server, git or the caller ends.
    async fn exchange(&self, traffic: &Traffic, stream: TcpStream) -> Result<(), Problem> {
        let failed = |source: io::Error| Problem::Connection {
            source: source.into(),
        };
        let mut running =
            Running::start(&mut self.command()).map_err(|source| not_started("ssh", source))?;
        let (mut stdin, mut stdout, stderr) = running.pipes().map_err(failed)?;
        let (mut from_git, mut to_git) = stream.into_split();
        let up = async {
            // ssh explains why it reads no more.
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
        let words = async { child::beginning(stderr, MAX_WORDS).await.map_err(failed) };
        // git hears of the end when the messages of ssh have been read.
        let ended = async {
            let ((), words) = tokio::try_join!(down, words)?;
            Ok::<_, Problem>(words)
        };
        let words = tokio::select! {
            ended = ended => ended?,
            never = up => match never {},
        };
        match judge(&String::from_utf8_lossy(&words), self.has_credentials) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("ssh");
        command.args(&self.arguments);
        if self.has_credentials {
            // Without the agent, the settings and the home folder of this machine.
            child::clear(&mut command);
        }
        let host = match &self.ssh.user {
            Some(user) => format!("{user}@{}", self.ssh.host),
            None => self.ssh.host.clone(),
        };
        let service = format!("git-upload-pack {}", for_shell(&self.ssh.path));
        command
            .args(["--", &host, &service])
            .env("GIT_PROTOCOL", "version=2");
        command
    }
}

/// Reads the first line of git, `git-upload-pack /PATH` and more behind a zero, and whether its path is the token.
async fn is_ours(loopback: &Loopback, stream: &mut TcpStream) -> bool {
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

/// A word for the shell of the server, quoted as git does.
fn for_shell(word: &str) -> String {
    let quoted = word.replace('\'', r"'\''").replace('!', r"'\!'");
    format!("'{quoted}'")
}

/// Judges the host by its addresses, and makes ssh connect to one that was judged; it knows the host by its name all the same.
async fn judged(ssh: &Ssh, addresses: Addresses) -> Result<Vec<String>, Problem> {
    let found = guard::address_of(&ssh.host, addresses).await;
    let found = found.map_err(|refused| Problem::Http {
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

/// Options of ssh.
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
            format!("IdentityFile={}", quoted(&key)?),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            format!("UserKnownHostsFile={}", quoted(&hosts)?),
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

/// A path as the value of an ssh option: ssh splits values at blanks and expands `%` and `${`.
fn quoted(path: &Path) -> io::Result<String> {
    // ssh of Windows reads `/` too.
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

/// Writes a file that only the user may read.
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

/// The error that the messages of ssh or of the remote git describe.
fn judge(said: &str, with_credentials: bool) -> Option<Problem> {
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
        return Some(Problem::HostKey { text });
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
        return Some(Problem::Denied {
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
        return Some(Problem::Missing { status });
    }
    last_line(said).map(|last| Problem::Connection {
        source: last.into(),
    })
}
