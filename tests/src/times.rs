//! How long tests and starts of control planes take, for the summary of `.ci/run`: lines in `target/debug/times.tsv`.

use std::cell::OnceCell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Measures the running test from now until its thread ends. Later calls in the same test do nothing.
///
/// The test runner gives each test a thread that is named after the test.
pub fn measure_this_test() {
    thread_local! {
        static RUNNING: OnceCell<Running> = const { OnceCell::new() };
    }
    let thread = std::thread::current();
    // Other threads are named after what they are for, without a module.
    let Some(test) = thread.name().filter(|name| name.contains("::")) else {
        return;
    };
    RUNNING.with(|running| {
        running.get_or_init(|| Running {
            test: test.to_owned(),
            began: Instant::now(),
        });
    });
}

/// Records that a control plane was ready after this time.
pub fn cluster_started(took: Duration) {
    write(
        "cluster",
        took,
        std::thread::current().name().unwrap_or_default(),
    );
}

/// Records the CPU time of a program that a test ran.
pub fn program_ended(program: &Path, cpu: Duration) {
    let name = program.file_name().unwrap_or_default();
    write("program", cpu, &name.to_string_lossy());
}

struct Running {
    test: String,
    began: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        write("test", self.began.elapsed(), &self.test);
    }
}

/// Appends one line. Times are only shown, so a file that cannot be written fails no test.
fn write(what: &str, took: Duration, name: &str) {
    let Some(path) = path() else { return };
    let line = format!("{what}\t{:.3}\t{name}\n", took.as_secs_f64());
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(line.as_bytes());
    }
}

/// Beside the folder `deps` of the running test binary.
fn path() -> Option<PathBuf> {
    let running = std::env::current_exe().ok()?;
    Some(running.parent()?.parent()?.join("times.tsv"))
}
