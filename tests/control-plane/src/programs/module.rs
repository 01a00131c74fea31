//! One Go module: its place in the cache, and `go build`.

use std::env;
use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::which;
use crate::guard;

/// How often a long build says how far it is.
const PROGRESS: Duration = Duration::from_secs(10);
/// Without debugging information, which these programs do not need and which takes a tenth of the time.
const COMPILER_FLAGS: &str = "-gcflags=all=-dwarf=false";
/// How many packages Go compiles in a minute on one core, linking included: an estimate until a build has its own rate.
const PACKAGES_PER_MINUTE: f64 = 330.0;
/// After how many packages a build has its own rate.
const SAMPLE: usize = 50;

/// A Go module beside this crate that pins some programs.
pub(super) struct Module {
    pub(super) folder: &'static str,
    pub(super) programs: &'static [Program],
    pub(super) ldflags: &'static str,
}

/// A program of a module.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The package of its main function.
    pub(super) package: &'static str,
}

impl Program {
    /// How `go build` calls it: after the last part of its package, but for `v3`.
    fn built_name(&self) -> &'static str {
        let mut parts = self.package.rsplit('/');
        let is_version = |part: &&str| {
            let number = part.strip_prefix('v').unwrap_or_default();
            number.parse::<u32>().is_ok()
        };
        parts.find(|part| !is_version(part)).unwrap_or(self.name)
    }
}

impl Module {
    /// The folder with these programs; builds those that are not there.
    ///
    /// # Errors
    /// Where something has to be built and Go is missing or fails.
    pub(super) fn provide(&self, names: &[&str]) -> Result<PathBuf> {
        let target = self.target()?;
        if self.missing(names)?.is_empty() {
            return Ok(target);
        }
        let cache = cache_folder()?;
        fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
        let _lock = self.lock(&cache)?;
        // Another process may have built them meanwhile.
        let missing = self.missing(names)?;
        if missing.is_empty() {
            return Ok(target);
        }
        let go = self.go(&missing)?;
        // Only the holder of the lock writes here, so what is left was cut off.
        let unfinished = cache.join(format!("{}.unfinished", self.folder));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(|| unfinished.display().to_string())?;
        }
        for folder in [&unfinished, &target] {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let programs = self.programs.iter();
        let programs: Vec<_> = programs.filter(|p| missing.contains(&p.name)).collect();
        self.build(&go, &programs, &unfinished)?;
        for program in programs {
            let built = unfinished.join(program.built_name());
            fs::rename(&built, target.join(program.name))
                .with_context(|| built.display().to_string())?;
        }
        Ok(target)
    }

    /// Those of the names that are not in the cache.
    pub(super) fn missing(&self, names: &[&str]) -> Result<Vec<&'static str>> {
        let target = self.target()?;
        let programs = self.programs.iter().map(|program| program.name);
        Ok(programs
            .filter(|name| names.contains(name) && !target.join(name).is_file())
            .collect())
    }

    /// The `go` to build these programs with.
    ///
    /// # Errors
    /// Where there is none: what to install.
    pub(super) fn go(&self, missing: &[&str]) -> Result<PathBuf> {
        let Some(go) = which("go") else {
            let names = missing.join(", ");
            bail!(
                "{names} not found: install Go 1.26 or later (https://go.dev/dl), with which they are built once, or set \
                 KUBEBUILDER_ASSETS to a folder with {names}"
            );
        };
        Ok(go)
    }

    /// Where the programs lie: another pin is another folder.
    fn target(&self) -> Result<PathBuf> {
        Ok(cache_folder()?.join(format!("{}-{}", self.folder, self.fingerprint()?)))
    }

    /// Held while one process builds.
    fn lock(&self, cache: &Path) -> Result<File> {
        let path = cache.join(format!("{}.lock", self.folder));
        let lock = File::create(&path).with_context(|| path.display().to_string())?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(&format!(
                    "{}: another process builds it, waiting",
                    self.folder
                ));
                lock.lock().with_context(|| path.display().to_string())?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| path.display().to_string());
            }
        }
        Ok(lock)
    }

    /// What the programs depend on.
    fn fingerprint(&self) -> Result<String> {
        // Another hash of a later Rust only means to build once more.
        let mut hasher = DefaultHasher::new();
        for file in ["go.mod", "go.sum"] {
            let path = self.source().join(file);
            let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
            bytes.hash(&mut hasher);
        }
        (self.ldflags, COMPILER_FLAGS).hash(&mut hasher);
        Ok(format!("{:016x}", hasher.finish()))
    }

    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder)
    }

    fn build(&self, go: &Path, programs: &[&Program], into: &Path) -> Result<()> {
        let names: Vec<_> = programs.iter().map(|program| program.name).collect();
        let names = names.join(", ");
        let packages = programs.iter().map(|program| program.package);
        let packages: Vec<_> = packages.collect();
        say(&format!("building {names} once"));
        let began = Instant::now();
        let all = self.count(go, &packages)?;
        say(&format!(
            "{all} packages to compile, {}",
            left(all, 0, Duration::ZERO)
        ));
        let compiling = Instant::now();
        let mut command = guard::command(go);
        command
            .args(["build", "-v", "-trimpath", COMPILER_FLAGS])
            .args(["-ldflags", self.ldflags, "-o"])
            .arg(into)
            .args(&packages)
            .env("CGO_ENABLED", "0")
            .current_dir(self.source())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut go = guard::spawn(&mut command, b"").context("cannot start go build")?;
        let mut tail = Vec::new();
        let (mut done, mut said) = (0_usize, Instant::now());
        if let Some(stderr) = go.stderr() {
            for line in BufReader::new(stderr).lines() {
                tail.push(line?);
                done += 1;
                if tail.len() > 20 {
                    tail.remove(0);
                }
                if said.elapsed() >= PROGRESS {
                    said = Instant::now();
                    let (elapsed, left) = (
                        began.elapsed().as_secs(),
                        left(all, done, compiling.elapsed()),
                    );
                    say(&format!(
                        "{elapsed:>4} s  {done:>4} of {all} packages, {left}"
                    ));
                }
            }
        }
        if !go.wait()?.success() {
            bail!(
                "go build of {names} failed in {}:\n{}",
                self.source().display(),
                tail.join("\n")
            );
        }
        say(&format!("built {names} in {} s", began.elapsed().as_secs()));
        Ok(())
    }

    /// How many packages have to be compiled for the programs, because Go's cache does not have them; downloads what is missing,
    /// and says so.
    fn count(&self, go: &Path, packages: &[&str]) -> Result<usize> {
        let mut command = guard::command(go);
        command
            .args(["list", "-deps", "-trimpath", COMPILER_FLAGS])
            .args(["-f", "{{if .Stale}}{{.ImportPath}}{{end}}"])
            .args(packages)
            .env("CGO_ENABLED", "0")
            .current_dir(self.source())
            .stdout(Stdio::piped());
        let mut go = guard::spawn(&mut command, b"").context("cannot start go list")?;
        let packages = go.stdout().map(|stdout| BufReader::new(stdout).lines());
        let packages = packages.into_iter().flatten().map_while(Result::ok);
        let count = packages.filter(|package| !package.is_empty()).count();
        if !go.wait()?.success() {
            bail!("go list failed in {}", self.source().display());
        }
        Ok(count)
    }
}

/// How long it still takes: at the rate so far, or at the usual one where hardly anything is compiled.
fn left(packages: usize, done: usize, elapsed: Duration) -> String {
    let left = packages.saturating_sub(done);
    if done < SAMPLE {
        return super::about(left, PACKAGES_PER_MINUTE);
    }
    let minutes = left as f64 * elapsed.as_secs_f64() / done as f64 / 60.0;
    match minutes.ceil() {
        minutes if minutes > 1.0 => format!("about {minutes} min left"),
        _ => "less than a minute left".to_owned(),
    }
}

/// Outside `target`, for `cargo clean` must not cost minutes.
fn cache_folder() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context(
            "neither XDG_CACHE_HOME nor HOME is set: where can the control plane be cached?",
        )?;
    Ok(base.join("kubectl-addons-tests/control-plane"))
}

/// A line on stderr, past the capture of the test runner.
fn say(line: &str) {
    let mut stderr = std::io::stderr().lock();
    // Over the progress bar of cargo, which may stand in this line and draws itself again.
    let start = if stderr.is_terminal() { "\r\x1b[K" } else { "" };
    let _ = stderr.write_all(format!("{start}control plane: {line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_the_rate_of_the_build() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(left(1000, 500, minutes(10)), "about 10 min left");
        assert_eq!(left(1000, 990, minutes(10)), "less than a minute left");
    }
}
