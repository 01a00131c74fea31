//! What the kernel says of a process.

use std::fmt::Display;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The unit of `/proc/PID/stat`: the kernel converts to it whatever its own tick is.
const TICKS_PER_SECOND: u64 = 100;

/// Resident memory now, and the most there ever was, in bytes.
pub(crate) fn memory(id: impl Display) -> Result<(u64, u64)> {
    let text = read(id, "status")?;
    let figure = |name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let line = line.with_context(|| format!("no {name} in {text}"))?;
        let kibibytes = line.trim_end_matches("kB").trim().parse::<u64>()?;
        Ok(kibibytes << 10)
    };
    Ok((figure("VmRSS:")?, figure("VmHWM:")?))
}

/// The time in user and in kernel mode so far, also of `self`.
pub(crate) fn cpu(id: impl Display) -> Result<Duration> {
    let text = read(id, "stat")?;
    // The name of the program, which stands before, is in parentheses and may hold blanks.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let mut ticks = 0;
    for field in fields.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<u64>()?;
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

fn read(id: impl Display, file: &str) -> Result<String> {
    let path = format!("/proc/{id}/{file}");
    fs::read_to_string(&path).with_context(|| path.clone())
}
