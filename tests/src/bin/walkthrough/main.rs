//! The program behind `cargo demo`: the main job on real control planes, each command with what it says.

mod one;
mod shell;
mod two;

use std::process::ExitCode;
use std::time::Instant;

use addons_control_plane::flags::{Flags, USAGE};
use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::Plugin;
use addons_tests::webhook::Webhook;
use anyhow::Result;
use common::api::names;

use shell::{Shell, say};
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/demo");

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Flags::parse(std::env::args_os().skip(1)) {
        Ok(Some(flags)) => run(flags).await,
        Ok(None) => say(USAGE),
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            let _ = std::io::stderr().write_all(format!("error: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: Flags) -> Result<()> {
    let began = Instant::now();
    say("Starting etcd, kube-apiserver, kube-controller-manager and kube-scheduler …\n")?;
    let cluster = ControlPlane::start(Options::default()).await?;
    let other = match flags.clusters {
        2 => Some(ControlPlane::start(Options::default()).await?),
        _ => None,
    };
    say(&format!(
        "ready after {:.1} s at {}{}\n",
        began.elapsed().as_secs_f64(),
        cluster.server(),
        other
            .as_ref()
            .map_or_else(String::new, |other| format!(" and {}", other.server())),
    ))?;
    let team = cluster.user("core-team", &["system:masters", names::CORE_GROUP])?;
    let mut shell = Shell {
        admin: Plugin::admin(&cluster)?,
        core_team: Plugin::new(&cluster, &team.kubeconfig)?,
        commands: 0,
    };

    shell.title("Our definitions, and the webhook that guards them")?;
    shell.addons(&["init"]).await?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    say(&format!(
        "The webhook answers at {} and is registered with its CA bundle.\n",
        webhook.url()
    ))?;

    match (&other, &flags.index) {
        (Some(other), _) => two::fleet(&mut shell, other, flags.keep).await?,
        (None, Some(index)) => {
            one::index(&mut shell, &index.to_string_lossy(), flags.keep).await?;
        }
        (None, None) => one::catalogue(&mut shell, flags.keep).await?,
    }

    if flags.keep {
        say(&format!(
            "\nThe cluster runs until Ctrl-C. In another shell:\n  export KUBECONFIG={} PATH={}/bin:$PATH\n",
            cluster.kubeconfig().display(),
            shell.admin.home().display()
        ))?;
        tokio::signal::ctrl_c().await?;
    }
    webhook.stop(&cluster).await?;
    drop((cluster, other));
    say(&format!(
        "\nDone: {} commands, each ended as it should, in {:.0} s. Nothing is left running.\n",
        shell.commands,
        began.elapsed().as_secs_f64()
    ))
}
