//! A real browser without a window: chromium on PATH, or taken out of Debian's packages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::debian;

/// Debian's package of the browser without a window.
const PACKAGE: &str = "chromium-headless-shell";
/// Where it is in the package.
const PROGRAM: &str = "usr/lib/chromium/chromium-headless-shell";

/// The program, and where libraries are that only it needs.
#[derive(Clone, Debug)]
pub struct Browser {
    program: PathBuf,
    libraries: Vec<PathBuf>,
}

/// A page as a browser has it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The document once it was read and its scripts, if any, had run.
    pub document: String,
    /// Addresses that were asked for over a network.
    pub requests: Vec<String>,
}

impl Browser {
    /// A browser; the reason where this machine has none and cannot get one.
    ///
    /// # Errors
    /// The reason.
    pub fn find() -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let names = [PACKAGE, "chromium", "chromium-browser"];
        let mut there = names.iter().flat_map(|name| {
            let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
            folders.into_iter().map(move |folder| folder.join(name))
        });
        if let Some(program) = there.find(|program| program.is_file()) {
            return Ok(Self {
                program,
                libraries: Vec::new(),
            });
        }
        Self::fetched().map_err(|error| {
            format!("no chromium, and Debian's {PACKAGE} cannot be had: {error:#}")
        })
    }

    fn fetched() -> Result<Self> {
        let done = debian::unpacked("chromium", &debian::with_missing(PACKAGE)?, PROGRAM)?;
        let mut libraries = Vec::new();
        for entry in fs::read_dir(done.join("usr/lib"))?.flatten() {
            let is_of_machine = entry.file_name().to_string_lossy().ends_with("-linux-gnu");
            if is_of_machine {
                libraries.extend([entry.path(), entry.path().join("pulseaudio")]);
            }
        }
        Ok(Self {
            program: done.join(PROGRAM),
            libraries,
        })
    }

    /// Opens a file.
    ///
    /// # Errors
    /// It does not start, or ends badly.
    pub fn open(&self, page: &Path) -> Result<Seen> {
        let home = tempfile::tempdir()?;
        let log = home.path().join("network.json");
        let flag = |name: &str, value: &Path| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            flag
        };
        let mut command = Command::new(&self.program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-background-networking", "--disable-dev-shm-usage"])
            .arg(flag("user-data-dir", home.path()))
            .arg(flag("log-net-log", &log))
            .arg("--dump-dom")
            .arg(page)
            .env("HOME", home.path());
        if !self.libraries.is_empty() {
            command.env("LD_LIBRARY_PATH", std::env::join_paths(&self.libraries)?);
        }
        let document = debian::run(&mut command)?;
        let log = fs::read_to_string(&log).context("the browser kept no log of requests")?;
        let texts = log.split('"').filter(|text| {
            let schemes = ["http://", "https://"];
            schemes.iter().any(|scheme| text.starts_with(scheme))
        });
        Ok(Seen {
            document,
            requests: texts.map(str::to_owned).collect(),
        })
    }
}
