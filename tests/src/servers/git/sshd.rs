//! A real sshd on loopback as the current user: on PATH, in /usr/sbin, or taken out of Debian's package.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, bail, ensure};

use crate::debian;
use crate::guard::{self, Folder, Guarded};

/// Debian's packages that hold sshd, the library that only it needs, and one that shows it a user `sshd`, without which it
/// does not run as root.
const PACKAGES: [&str; 3] = ["openssh-server", "libwrap0", "libnss-wrapper"];
/// The user to whom sshd gives up its rights.
const SEPARATED: &str = "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n";

/// A running sshd.
pub struct Sshd {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The line of `known_hosts` for it.
    pub known_hosts: String,
    accepted: Arc<AtomicUsize>,
    _server: Guarded,
    _folder: Folder,
}

/// The program, and where its own libraries are.
#[derive(Clone, Debug)]
struct Program {
    sshd: PathBuf,
    libraries: Option<PathBuf>,
}

impl Sshd {
    /// Starts one that lets in whoever has the private key of `key` (`ssh-ed25519 …`). `Ok(Err(why))` where this machine has no
    /// sshd and cannot get one.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(key: &str) -> Result<Result<Self, String>> {
        let program = match program() {
            Ok(program) => program,
            Err(why) => return Ok(Err(why)),
        };
        let folder = Folder::new("addons-sshd-")?;
        let (host_key, public) = ssh_key(folder.path(), "host")?;
        fs::write(folder.path().join("authorized_keys"), format!("{key}\n"))?;
        // Between this moment and the start another process may take the port: then sshd says so, and another one is tried.
        for _ in 0..5 {
            let port = std::net::TcpListener::bind("127.0.0.1:0")?
                .local_addr()?
                .port();
            if let Some((server, accepted)) = start(&program, folder.path(), &host_key, port)? {
                return Ok(Ok(Self {
                    accepted,
                    port,
                    known_hosts: format!("[127.0.0.1]:{port} {public}\n"),
                    _server: server,
                    _folder: folder,
                }));
            }
        }
        bail!("sshd finds no port")
    }

    /// Logins since the start.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// The remote of a repository of this machine.
    #[must_use]
    pub fn remote(&self, path: &Path) -> String {
        let user = user();
        format!("ssh://{user}@127.0.0.1:{}{}", self.port, path.display())
    }
}

/// A new key without a passphrase in `folder`: its file, and the public half.
///
/// # Errors
/// Where ssh-keygen is missing.
pub fn ssh_key(folder: &Path, name: &str) -> Result<(PathBuf, String)> {
    let path = folder.join(name);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
        .arg(&path)
        .stdin(Stdio::null())
        .status()
        .context("ssh-keygen")?;
    ensure!(made.success(), "ssh-keygen fails");
    let public = fs::read_to_string(path.with_extension("pub"))?;
    let public = public.split_whitespace().take(2).collect::<Vec<_>>();
    Ok((path, public.join(" ")))
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output();
    let name = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    name.unwrap_or_default()
}

/// Starts sshd in the foreground; `None` where the port is taken.
fn start(
    program: &Program,
    folder: &Path,
    host_key: &Path,
    port: u16,
) -> Result<Option<(Guarded, Arc<AtomicUsize>)>> {
    let config = folder.join("sshd_config");
    fs::write(
        &config,
        format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             AcceptEnv GIT_PROTOCOL\nLogLevel INFO\n",
            host_key.display(),
            folder.join("authorized_keys").display(),
        ),
    )?;
    let mut command = guard::command(&program.sshd);
    command
        .args(["-D", "-e", "-f"])
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(libraries) = &program.libraries {
        command.env("LD_LIBRARY_PATH", libraries);
        let users = fs::read_to_string("/etc/passwd")?;
        if user() == "root" && !users.lines().any(|line| line.starts_with("sshd:")) {
            // It changes into this folder to give up its rights, and refuses to start as root without it.
            fs::create_dir_all("/run/sshd")?;
            let passwd = folder.join("passwd");
            fs::write(&passwd, format!("{}\n{SEPARATED}", users.trim_end()))?;
            command
                .env("LD_PRELOAD", libraries.join("libnss_wrapper.so"))
                .env("NSS_WRAPPER_PASSWD", passwd)
                .env("NSS_WRAPPER_GROUP", "/etc/group");
        }
    }
    let mut server = guard::spawn(&mut command, &[])?;
    let stderr = server.stderr().context("no stderr")?;
    let mut said = String::new();
    let mut lines = BufReader::new(stderr);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            break;
        }
        if line.contains("Server listening") {
            let accepted = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&accepted);
            std::thread::spawn(move || {
                for line in lines.lines().map_while(Result::ok) {
                    counter.fetch_add(usize::from(line.starts_with("Accepted ")), Ordering::SeqCst);
                }
            });
            return Ok(Some((server, accepted)));
        }
        said.push_str(&line);
    }
    ensure!(
        said.contains("Address already in use"),
        "sshd does not start: {said}"
    );
    Ok(None)
}

/// Found or fetched once.
fn program() -> Result<Program, String> {
    static PROGRAM: OnceLock<Result<Program, String>> = OnceLock::new();
    PROGRAM.get_or_init(find).clone()
}

fn find() -> Result<Program, String> {
    if ssh_missing() {
        return Err("ssh is missing; install openssh-client".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let there = folders
        .map(|folder| folder.join("sshd"))
        .find(|path| path.is_file());
    if let Some(sshd) = there {
        return Ok(Program {
            sshd,
            libraries: None,
        });
    }
    fetched()
        .map_err(|error| format!("no sshd, and Debian's openssh-server cannot be had: {error:#}"))
}

fn ssh_missing() -> bool {
    let version = Command::new("ssh").arg("-V").stderr(Stdio::null()).status();
    !version.is_ok_and(|status| status.success())
}

/// Takes sshd out of Debian's packages.
fn fetched() -> Result<Program> {
    let done = debian::unpacked("sshd", &PACKAGES.map(str::to_owned), "usr/sbin/sshd")?;
    let libraries = fs::read_dir(done.join("usr/lib"))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join("libwrap.so.0").exists());
    Ok(Program {
        sshd: done.join("usr/sbin/sshd"),
        libraries,
    })
}
