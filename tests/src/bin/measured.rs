//! `measured REPORT PROGRAM [ARGUMENT…]` runs a program and writes what it took into the file REPORT.
//!
//! The kernel counts a process's peak memory from the fork on, so whoever starts a program lends it his own size: that
//! is why this one is small and does nothing else.
#![expect(clippy::print_stderr, reason = "a program says its errors on stderr")]

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};
use std::time::Instant;

use wait4::Wait4 as _;

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("measured: {error}");
            ExitCode::from(127)
        }
    }
}

fn run(mut args: impl Iterator<Item = OsString>) -> std::io::Result<u8> {
    let (Some(report), Some(program)) = (args.next(), args.next()) else {
        return Err(std::io::Error::other(
            "usage: measured REPORT PROGRAM [ARGUMENT…]",
        ));
    };
    let began = Instant::now();
    let used = Command::new(program).args(args).spawn()?.wait4()?;
    let text = format!(
        r#"{{"wall_us":{},"user_us":{},"system_us":{},"peak_bytes":{}}}"#,
        began.elapsed().as_micros(),
        used.rusage.utime.as_micros(),
        used.rusage.stime.as_micros(),
        used.rusage.maxrss,
    );
    std::fs::write(report, text)?;
    // As a shell says it.
    let code = used.status.code();
    let signal = used.status.signal().map(|signal| signal + 128);
    Ok(code
        .or(signal)
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(255))
}
