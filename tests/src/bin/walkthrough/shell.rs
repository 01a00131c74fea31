//! Commands as a user types them: each is printed, run, and has to end as it should.

use std::io::Write as _;

use addons_tests::plugin::{Output, Plugin};
use anyhow::{Result, bail};

/// Whoever types a command.
pub(crate) enum Who {
    Admin,
    /// A member of the group that may install core add-ons.
    CoreTeam,
}

/// How a command must end.
pub(crate) enum End {
    Done,
    /// With this exit code, which is not a failure: by it `diff` says that there is a difference.
    Code(i32),
    /// Denied by the webhook, which must say this.
    Denied(&'static str),
    /// Failed for another reason, which must say this.
    Failed(&'static str),
}

pub(crate) struct Shell {
    pub(crate) admin: Plugin,
    pub(crate) core_team: Plugin,
    /// How many commands were run.
    pub(crate) commands: usize,
}

impl Shell {
    pub(crate) fn title(&self, title: &str) -> Result<()> {
        say(&format!("\n# {title}\n"))
    }

    pub(crate) async fn addons(&mut self, args: &[&str]) -> Result<Output> {
        let args: Vec<_> = std::iter::once("addons")
            .chain(args.iter().copied())
            .collect();
        self.kubectl(&Who::Admin, &args, &End::Done).await
    }

    /// `kubectl LINE`, where no argument has a space in it.
    pub(crate) async fn line(&mut self, who: &Who, line: &str, end: &End) -> Result<Output> {
        let args: Vec<_> = line.split_whitespace().collect();
        self.kubectl(who, &args, end).await
    }

    pub(crate) async fn kubectl(&mut self, who: &Who, args: &[&str], end: &End) -> Result<Output> {
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

pub(crate) fn say(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
