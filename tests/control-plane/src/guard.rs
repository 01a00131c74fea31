//! Child processes and folders that never outlive this process, however it ends.
//!
//! Statics are not dropped, a test runner is killed by Ctrl-C, and `PR_SET_PDEATHSIG` is bound to a thread, which the
//! test runner ends after each test. So one small `sh` listens on a pipe that only this process holds: when the pipe
//! closes, because of a return, a panic, an abort or a signal, it kills the process groups and removes the folders it
//! was told about. A child waits for one line on its own pipe before it becomes its program, so there is no moment in
//! which it runs without being known to the watchdog.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A child process, leader of its own process group: dropped, the group is killed.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    ended: Option<ExitStatus>,
}

/// Kills the process group of a [`Guarded`] that is waited for elsewhere: when dropped, where it has not ended.
#[derive(Debug)]
pub struct Leash(u32);

/// A command for [`spawn`] that runs `program`; arguments, environment, stdout and stderr are added by the caller.
#[must_use]
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"read -r _ && exec "$@""#, "sh"])
        .arg(program)
        .process_group(0)
        .stdin(Stdio::piped());
    command
}

/// Starts a [`command`]; `input` is all that the program can read on its stdin, 64 KiB at most.
///
/// # Errors
/// Where `/bin/sh` cannot be started.
pub fn spawn(command: &mut Command, input: &[u8]) -> io::Result<Guarded> {
    let (process, stdin) = spawn_to_talk(command)?;
    if let Some(mut stdin) = stdin {
        // A program that is gone, or does not read its input, is seen by its exit code.
        let _ = stdin.write_all(input);
    }
    Ok(process)
}

/// The same with a stdin that stays open as long as the caller holds it.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_to_talk(command: &mut Command) -> io::Result<(Guarded, Option<ChildStdin>)> {
    let watchdog = Watchdog::get()?;
    let mut child = command.spawn()?;
    watchdog.tell("guard", &child.id().to_string())?;
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        let _ = stdin.write_all(b"go\n");
    }
    Ok((Guarded { child, ended: None }, stdin))
}

impl Guarded {
    /// The process id, which is also the id of the process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Another hold on the process.
    #[must_use]
    pub fn leash(&self) -> Leash {
        Leash(self.id())
    }

    /// The stdout pipe, once, where the command asked for one.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The stderr pipe, once, where the command asked for one.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The exit status, if the process has ended.
    ///
    /// # Errors
    /// Of `waitpid`.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none()
            && let Some(status) = self.child.try_wait()?
        {
            self.release(status)?;
        }
        Ok(self.ended)
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    /// Of `waitpid`.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        let status = self.child.wait()?;
        self.release(status)?;
        Ok(status)
    }

    /// Sends SIGTERM to the process group.
    ///
    /// # Errors
    /// Where the watchdog is gone.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal("terminate")
    }

    /// Sends SIGKILL to the process group and waits for the end of its leader.
    ///
    /// # Errors
    /// Where the watchdog is gone.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal("kill")?;
        self.wait()
    }

    fn signal(&self, verb: &str) -> io::Result<()> {
        match self.ended {
            // The id may belong to another process by now.
            Some(_) => Ok(()),
            None => Watchdog::get()?.tell(verb, &self.id().to_string()),
        }
    }

    fn release(&mut self, status: ExitStatus) -> io::Result<()> {
        self.ended = Some(status);
        Watchdog::get()?.tell("release", &self.id().to_string())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.ended.is_none() && self.kill().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Ok(watchdog) = Watchdog::get() {
            let _ = watchdog.tell("kill", &self.0.to_string());
        }
    }
}

/// Removes a folder with all that is in it as soon as this process has ended, however it ends.
///
/// # Errors
/// Where `/bin/sh` cannot be started.
pub fn remove_at_the_end(folder: &Path) -> io::Result<()> {
    Watchdog::get()?.tell("folder", &folder.to_string_lossy())
}

/// The `sh` that outlives this process for a moment.
struct Watchdog {
    /// Kept, for closing it is the sign.
    orders: Mutex<ChildStdin>,
}

impl Watchdog {
    fn get() -> io::Result<&'static Self> {
        static WATCHDOG: OnceLock<Result<Watchdog, String>> = OnceLock::new();
        WATCHDOG
            .get_or_init(|| Self::start().map_err(|error| format!("/bin/sh: {error}")))
            .as_ref()
            .map_err(|error| io::Error::other(error.clone()))
    }

    fn start() -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", include_str!("guard/watchdog.sh"), "watchdog"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let orders = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            orders: Mutex::new(orders),
        })
    }

    fn tell(&self, verb: &str, what: &str) -> io::Result<()> {
        self.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(format!("{verb} {what}\n").as_bytes())
    }
}
