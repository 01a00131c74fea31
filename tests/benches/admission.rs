//! `cargo bench --bench admission [-- --url URL]`: how many reviews the webhook answers, how soon, and with how much memory, beside
//! a server of the same libraries that only sends the body back; and what the webhook adds to a create at the API server.
//!
//! With `--url`, the server there is measured in the place of ours, whatever it is.

#[path = "admission/bench.rs"]
mod bench;
#[path = "admission/bodies.rs"]
mod bodies;
#[path = "admission/create.rs"]
mod create;
#[path = "admission/echo.rs"]
mod echo;
#[path = "admission/load.rs"]
mod load;
#[path = "loop/process.rs"]
mod process;
#[path = "admission/report.rs"]
mod report;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use bench::Server;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == echo::NAME => echo::run(rest),
        // `cargo test --all-targets` runs benchmarks too, without this flag: nothing is timed there.
        _ if !arguments.iter().any(|argument| argument == "--bench") => Ok(()),
        _ => measure(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn measure(arguments: &[String]) -> Result<()> {
    // The clients of the API server need one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let at = arguments.iter().position(|argument| argument == "--url");
    let text = match at {
        Some(at) => {
            let url = arguments.get(at + 1).context("--url URL")?;
            let peer = Server::peer(url.parse().with_context(|| url.clone())?);
            report::table(&bench::run(peer).await?, None)
        }
        None => {
            let mut stage = bench::Stage::start().await?;
            let measured = bench::run(stage.server()?).await?;
            report::table(&measured, Some(&create::run(&stage).await?))
        }
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
