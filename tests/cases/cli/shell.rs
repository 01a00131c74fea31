//! What only a shell shows: completion by bash itself, what it splits, replaces and appends; and pipes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{User, data};

/// What is typed: the script, half a file, half a version, and Enter.
const TYPED: &str = "source <(kubectl-addons completion bash)\n\
                     kubectl-addons show --k8s 1.36 --channel inde\tweb@1.0\t\n\
                     exit\n";

#[test]
fn bash_completes_files_and_versions() -> Result<()> {
    let user = User::new()?;
    let path = std::env::var("PATH").unwrap_or_default();
    let shell = "exec bash --norc --noprofile -i";
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", shell, "/dev/null"])
        .env_clear()
        .env("PATH", format!("{}:{path}", user.home.path().display()))
        .env("HOME", user.home.path())
        .env("TERM", "dumb")
        .current_dir(data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run script")?;
    let mut stdin = terminal.stdin.take().context("no stdin")?;
    stdin.write_all(TYPED.as_bytes())?;
    drop(stdin);
    let output = terminal.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    // The completed line was run.
    let (_, shown, _) =
        user.run("kubectl-addons show web@1.0.0 --k8s 1.36 --channel index.yaml")?;
    let first = shown.lines().next().context("nothing is shown")?;
    ensure!(said.lines().any(|line| line.trim() == first), "{said}");
    Ok(())
}

/// kubectl runs it by its name: it calls the plugin of the PATH, and answers as the plugin does by that name.
#[test]
fn the_program_for_kubectl_is_installed_and_answers() -> Result<()> {
    let user = User::new()?;
    let folder = user.home.path().join("tools");
    let to = folder.to_str().context("a path")?;
    let install = format!("kubectl-addons completion --install --to {to}");
    let (code, _, said) = user.run(&install)?;
    ensure!(code == 1 && said.contains("is not a folder"), "{said}");
    ensure!(!folder.exists(), "a misspelt folder is not created");
    std::fs::create_dir(&folder)?;
    let (code, _, said) = user.run(&install)?;
    let program = folder.join("kubectl_complete-addons");
    ensure!(
        code == 0 && said.contains(&format!("{} written", program.display())),
        "{said}"
    );
    ensure!(said.contains("is not on the PATH"), "{said}");
    let (_, expected, _) = user.run("kubectl_complete-addons search --k")?;
    let (code, answer, said) = user.run("tools/kubectl_complete-addons search --k")?;
    ensure!(
        code == 0 && answer == expected && answer.contains("--k8s"),
        "{answer}{said}"
    );
    let (code, _, said) = user.run(&install)?;
    ensure!(code == 0 && said.contains("unchanged"), "{said}");
    std::fs::write(&program, "#!/bin/sh\n")?;
    let (code, _, said) = user.run(&install)?;
    ensure!(
        code == 1 && said.contains("is not a file of this command"),
        "{said}"
    );
    // Beside the plugin, where the link is that other tests call by its name.
    let (code, _, said) = user.run("kubectl-addons completion --install")?;
    let program = user.home.path().join("kubectl_complete-addons");
    ensure!(
        code == 0 && said.trim() == format!("{} written", program.display()),
        "{said}"
    );
    ensure!(program.symlink_metadata()?.is_file(), "it is still a link");
    Ok(())
}

#[test]
fn values_come_through_a_pipe() -> Result<()> {
    let user = User::new()?;
    let render = "kubectl-addons render --dir templates --method go-template --data data.yaml";
    let line = format!("echo 'colour: red' | {render} -f -");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &line])
        .env_clear()
        .env("PATH", format!("{}:{path}", user.home.path().display()))
        .env("HOME", user.home.path())
        .current_dir(data())
        .output()?;
    let (code, expected, _) = user.run(&format!("{render} --set colour=red"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        code == 0 && expected.contains("red") && said == expected,
        "{said}"
    );
    Ok(())
}
