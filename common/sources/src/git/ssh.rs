//! git over ssh, with the program `ssh`: with the key and the hosts of a Secret, or with the user's own configuration.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{MAIN_SEPARATOR, Path};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use gix::bstr::ByteSlice as _;
use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::Transport;
use gix::protocol::transport::client::git::{ConnectMode, blocking_io};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::Problem;
use super::remote::Ssh;
use super::wire::Wire;
use crate::credentials::{Credentials, Proof};
use crate::http::guard;
use crate::platform;

/// Seconds until a host has answered.
const CONNECT_TIMEOUT: u8 = 10;
/// Bytes of messages of ssh and the server.
const MAX_WORDS: usize = 4 << 10;

/// A connection, and the messages of ssh.
pub struct Session {
    /// For gix.
    pub transport: Box<dyn Transport + Send>,
    words: JoinHandle<()>,
    said: Arc<Mutex<Vec<u8>>>,
}

/// Connects. The key is written into `folder`, which is private and deleted after the fetch.
///
/// # Errors
/// ssh cannot be started; other errors appear when the connection is read.
pub fn connect(
    wire: &Arc<Wire>,
    ssh: &Ssh,
    credentials: Option<&Credentials>,
    folder: &Path,
) -> Result<Session, Problem> {
    let failed = |source| Problem::Folder { source };
    let mut command = Command::new("ssh");
    command.args(arguments(credentials, folder).map_err(failed)?);
    if let Some(port) = ssh.port {
        command.arg("-p").arg(port.to_string());
    }
    command.args(judged(wire, ssh)?);
    if credentials.is_some() {
        // Without the agent, the settings and the home folder of this machine.
        command.env_clear();
        for name in platform::PASSED {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
    }
    let host = match &ssh.user {
        Some(user) => format!("{user}@{}", ssh.host),
        None => ssh.host.clone(),
    };
    let service = format!("git-upload-pack {}", gix::quote::single(ssh.path.as_bstr()));
    command
        .args(["--", &host, &service])
        .env("GIT_PROTOCOL", "version=2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let runtime = wire.enter();
    let mut child = command.spawn().map_err(|source| Problem::Program {
        program: "ssh",
        source,
    })?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(mut stderr)) = pipes else {
        return Err(failed(io::ErrorKind::BrokenPipe.into()));
    };
    let said = Arc::new(Mutex::new(Vec::new()));
    let saying = Arc::clone(&said);
    let words = tokio::spawn(async move {
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            let mut said = saying.lock().unwrap_or_else(PoisonError::into_inner);
            let space = MAX_WORDS.saturating_sub(said.len());
            said.extend(buffer.iter().take(count.min(space)));
        }
    });
    drop(runtime);
    let incoming = Incoming {
        wire: Arc::clone(wire),
        stdout,
        _child: child,
    };
    let outgoing = Outgoing {
        wire: Arc::clone(wire),
        stdin,
    };
    let transport = blocking_io::Connection::new(
        incoming,
        outgoing,
        Protocol::V2,
        ssh.path.clone(),
        None::<(&str, _)>,
        ConnectMode::Process,
        false,
    );
    Ok(Session {
        transport: Box::new(transport),
        words,
        said,
    })
}

impl Session {
    /// The message of ssh as an error; `None` if there is none.
    pub fn failure(self, wire: &Wire, with_credentials: bool) -> Option<Problem> {
        // ssh ends with the connection, and then its messages are complete.
        drop(self.transport);
        let words = self.words;
        let _ = wire.run(words);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        judge(&String::from_utf8_lossy(&said), with_credentials)
    }
}

/// Judges the host by its addresses, and makes ssh connect to one that was judged; it knows the host by its name all the same.
fn judged(wire: &Wire, ssh: &Ssh) -> Result<Vec<String>, Problem> {
    let stopped = |_| Problem::Timeout;
    let found = wire
        .run(guard::address_of(&ssh.host, wire.reach))
        .map_err(stopped)?;
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
    let last = lines.last()?.replace(|c: char| c.is_control(), " ");
    Some(Problem::Connection {
        source: last.into(),
    })
}

/// The output of ssh.
struct Incoming {
    wire: Arc<Wire>,
    stdout: ChildStdout,
    /// Killed when this is dropped.
    _child: Child,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.wire.run(self.stdout.read(buffer))??;
        self.wire.received(count)?;
        Ok(count)
    }
}

/// The input of ssh.
struct Outgoing {
    wire: Arc<Wire>,
    stdin: ChildStdin,
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wire.run(self.stdin.write(bytes))?
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wire.run(self.stdin.flush())?
    }
}
