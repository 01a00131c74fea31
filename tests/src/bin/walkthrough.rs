//! The program behind `cargo demo`: the main job on a real control plane, each command with what it says.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use addons_control_plane::flags::{Flags, USAGE};
use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::webhook::Webhook;
use anyhow::{Result, bail};
use common::api::names;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/demo");
/// The add-on of the built-in catalogue that goes through its whole life.
const ADDON: &str = "snapshot-scheduler";
/// The one that becomes a core add-on.
const CORE: &str = "node-limits";

/// Whoever types a command.
enum Who {
    Admin,
    /// A member of the group that may install core add-ons.
    CoreTeam,
}

/// How a command must end.
enum End {
    Done,
    /// With this exit code, which is no failure: `diff` says so that there is a difference.
    Code(i32),
    /// Denied by the webhook, which must say this.
    Denied(&'static str),
    /// Failed for another reason, which must say this.
    Failed(&'static str),
}

struct Demo {
    admin: Plugin,
    core_team: Plugin,
    commands: usize,
}

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
            let _ = std::io::stderr().write_all(format!("error: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: Flags) -> Result<()> {
    let began = Instant::now();
    say("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok …\n")?;
    let cluster = ControlPlane::start(Options::default()).await?;
    say(&format!(
        "ready after {:.1} s at {}\n",
        began.elapsed().as_secs_f64(),
        cluster.server()
    ))?;
    let team = cluster.user("core-team", &["system:masters", names::CORE_GROUP])?;
    let mut demo = Demo {
        admin: Plugin::admin(&cluster)?,
        core_team: Plugin::new(&cluster, &team.kubeconfig)?,
        commands: 0,
    };

    demo.title("Our definitions, and the webhook that guards them")?;
    demo.addons(&["init"]).await?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    say(&format!(
        "The webhook answers at {} and is registered with its CA bundle.\n",
        webhook.url()
    ))?;

    match &flags.index {
        Some(index) => demo.index(&index.to_string_lossy(), flags.keep).await?,
        None => demo.catalogue(flags.keep).await?,
    }

    if flags.keep {
        say(&format!(
            "\nThe cluster runs until Ctrl-C. In another shell:\n  export KUBECONFIG={} PATH={}/bin:$PATH\n",
            cluster.kubeconfig().display(),
            demo.admin.home().display()
        ))?;
        tokio::signal::ctrl_c().await?;
    }
    webhook.stop(&cluster).await?;
    drop(cluster);
    say(&format!(
        "\nDone: {} commands, each ended as it should, in {:.0} s. Nothing is left running.\n",
        demo.commands,
        began.elapsed().as_secs_f64()
    ))
}

impl Demo {
    /// The built-in catalogue: an add-on from its first version to its end, and what is denied meanwhile.
    async fn catalogue(&mut self, keep: bool) -> Result<()> {
        let data = |file: &str| format!("{DATA}/{file}");
        self.title("A catalogue, and what of it fits this cluster")?;
        self.addons(&["catalogue", "add", &data("catalogue.yaml")])
            .await?;
        self.addons(&["search"]).await?;
        self.addons(&["show", ADDON]).await?;

        self.title(
            "Install: a CRD, its custom resource, RBAC and a Deployment that really rolls out",
        )?;
        self.addons(&["install", &format!("{ADDON}@1.0.0"), "--yes"])
            .await?;
        self.addons(&["list"]).await?;
        self.addons(&["status", ADDON]).await?;

        self.title("Upgrade: one object changes, two go away, nothing else is written")?;
        self.kubectl(&Who::Admin, &["addons", "diff", ADDON], &End::Code(1))
            .await?;
        self.addons(&["upgrade", ADDON, "--yes"]).await?;
        let gone = [
            "get",
            "poddisruptionbudget",
            ADDON,
            "--namespace",
            "snapshots",
        ];
        self.kubectl(&Who::Admin, &gone, &End::Failed("NotFound"))
            .await?;
        self.addons(&["upgrade"]).await?;

        self.title("Denied: v1.0.0 beside 1.0.0 in one catalogue")?;
        let file = data("duplicate.yaml");
        let denied = End::Denied("already at spec.addons[0].versions[0]");
        self.kubectl(&Who::Admin, &["apply", "--filename", &file], &denied)
            .await?;

        self.title("Denied: the deletion of a core add-on")?;
        let install = ["addons", "install", CORE, "--core", "--yes"];
        self.kubectl(&Who::CoreTeam, &install, &End::Done).await?;
        let delete = [
            "delete",
            "addoninstallation",
            CORE,
            "--namespace",
            names::SYSTEM_NAMESPACE,
        ];
        self.kubectl(&Who::Admin, &delete, &End::Denied("core add-on"))
            .await?;

        if !keep {
            self.title("Uninstall")?;
            self.addons(&["uninstall", ADDON, "--yes"]).await?;
            self.addons(&["list", "--core"]).await?;
        }
        Ok(())
    }

    /// Any kops index, without waiting.
    async fn index(&mut self, index: &str, keep: bool) -> Result<()> {
        self.title("A kops index")?;
        self.addons(&["search", "--channel", index]).await?;
        self.addons(&["channel", "apply", index, "--yes", "--wait=false"])
            .await?;
        self.addons(&["list", "--core"]).await?;
        self.title("Again: nothing is due")?;
        self.addons(&["channel", "apply", index, "--yes", "--wait=false"])
            .await?;
        if !keep {
            self.title("Uninstall")?;
            let list = self
                .admin
                .run(&["list", "--output", "name"])
                .await?
                .done()?;
            for installation in list.stdout.lines() {
                let name = installation.rsplit('/').next().unwrap_or(installation);
                self.addons(&["uninstall", name, "--yes", "--wait=false"])
                    .await?;
            }
        }
        Ok(())
    }

    fn title(&self, title: &str) -> Result<()> {
        say(&format!("\n# {title}\n"))
    }

    async fn addons(&mut self, args: &[&str]) -> Result<Output> {
        let args: Vec<_> = std::iter::once("addons")
            .chain(args.iter().copied())
            .collect();
        self.kubectl(&Who::Admin, &args, &End::Done).await
    }

    async fn kubectl(&mut self, who: &Who, args: &[&str], end: &End) -> Result<Output> {
        let (shell, prompt) = match who {
            Who::Admin => (&self.admin, "$"),
            Who::CoreTeam => (&self.core_team, "core-team$"),
        };
        let line = format!("{prompt} kubectl {}", args.join(" "));
        say(&format!("{line}\n"))?;
        let output = shell.kubectl(args).await?;
        say(&format!("{}{}\n", output.stdout, output.stderr))?;
        self.commands += 1;
        let ends_well = match end {
            End::Done => output.code == 0,
            End::Code(code) => output.code == *code,
            End::Denied(words) => {
                // kubectl words a 422 with causes as "The KIND NAME is invalid".
                let by_server = ["denied the request", "is invalid"];
                output.code != 0
                    && by_server.iter().any(|text| output.stderr.contains(text))
                    && output.stderr.contains(words)
            }
            End::Failed(words) => output.code != 0 && output.stderr.contains(words),
        };
        if !ends_well {
            let wanted = match end {
                End::Done => "end with exit code 0".to_owned(),
                End::Code(code) => format!("end with exit code {code}"),
                End::Denied(words) => format!("be denied with \"{words}\""),
                End::Failed(words) => format!("fail with \"{words}\""),
            };
            bail!("exit code {}; it had to {wanted}: {line}", output.code);
        }
        Ok(output)
    }
}

fn say(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
