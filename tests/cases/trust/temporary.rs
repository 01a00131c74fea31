//! What a command writes into temporary folders, among it keys and kubeconfigs, does not outlive it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

/// A stage whose temporary folder can be looked into.
async fn stage(what: &str) -> Result<(Stage, PathBuf)> {
    let mut stage = Stage::new(what).await?;
    let folder = stage.plugin.home().join("tmp");
    std::fs::create_dir(&folder)?;
    stage.plugin = stage
        .plugin
        .variable("TMPDIR", &folder.display().to_string());
    stage.run("init").await?.done()?;
    Ok((stage, folder))
}

/// A program that never ends, but for `version`; `on_term`: what it does once it is asked to.
fn program(stage: &Stage, name: &str, on_term: &str) -> Result<String> {
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in version) echo v4.3.1; exit 0;; status|history) echo 'Error: release: not found' >&2; exit 1;; esac\n\
         trap '{on_term}' TERM\nwhile :; do sleep 1; done\n"
    );
    let path = stage.write(name, &text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path().display().to_string());
        found.extend(files(&entry.path()));
    }
    found
}

/// Runs a line until a file is in the temporary folder, sends signals, and looks whether anything stays.
async fn interrupted(
    stage: &Stage,
    folder: &Path,
    line: &str,
    file: &str,
    signals: &[&str],
) -> Result<()> {
    let mut process = stage.plugin.start(&line.split(' ').collect::<Vec<_>>())?;
    let id = process.id().to_string();
    until("the file is there", async || {
        let found = files(folder);
        let is_there = found.iter().any(|path| path.ends_with(file));
        Ok(if is_there {
            Ok(())
        } else {
            Err(found.join("\n"))
        })
    })
    .await?;
    let begun = Instant::now();
    let heard = stage.plugin.home().join("stderr");
    for (turn, signal) in signals.iter().enumerate() {
        if turn > 0 {
            until("the first signal is heard", async || {
                let said = std::fs::read_to_string(&heard)?;
                let is_heard = said.contains("interrupted; ending the operation");
                Ok(if is_heard { Ok(()) } else { Err(said) })
            })
            .await?;
        }
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), "--", &id])
            .status()?;
        ensure!(sent.success(), "kill failed");
    }
    let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
    let said = std::fs::read_to_string(heard)?;
    ensure!(
        ended.code() == Some(130),
        "{line}: {signals:?}: {ended:?} {said}"
    );
    ensure!(
        begun.elapsed() < Duration::from_secs(9),
        "{line}: {signals:?}: {:?}",
        begun.elapsed()
    );
    let left = files(folder);
    ensure!(left.is_empty(), "{line}: {signals:?}: {left:#?}");
    Ok(())
}

/// trust 6.
#[tokio::test]
async fn t06_nothing_stays_behind_an_interrupted_command() -> Result<()> {
    let (stage, folder) = stage("temporary").await?;
    let name = stage.namespace.as_str();
    let shelf = Shelf::new()?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    let chart = shelf.chart("web", "1.0.0", &[("templates/a.yaml", template)])?;
    std::fs::copy(&chart, stage.plugin.home().join("web.tgz"))?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/ssh-auth",
        "metadata": {"name": "key", "annotations": {"kubectl-addons.dev/allowed-hosts": "127.0.0.1"}},
        "stringData": {"ssh-privatekey": "private", "known_hosts": "127.0.0.1 ssh-ed25519 AAAA"}});
    stage.apply(&secret.to_string()).await?;
    let entry = |addon: &str, mode: Option<&str>, source: serde_json::Value| {
        let template = match mode {
            Some(mode) => json!({"method": "helm", "helm": {"mode": mode}}),
            None => json!({"method": "manifest"}),
        };
        json!({"name": addon, "versions": [{"version": "1.0.0", "defaultNamespace": name,
            "template": template, "source": source}]})
    };
    let url = json!({"url": {"manifest": stage.plugin.home().join("web.tgz")}});
    let git = json!({"git": {"remote": "ssh://git@127.0.0.1:9/repo.git", "ref": {"branch": "main"}, "path": "a.yaml",
        "auth": {"secretRef": {"name": "key"}}}});
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
        "spec": {"addons": [entry("objects", Some("objects"), url.clone()), entry("release", Some("release"), url),
            entry("git", None, git)]}});
    let file = stage.write("catalogue.json", &catalogue.to_string())?;
    let file = file.display();
    let helm = program(&stage, "helm", "")?;
    let polite = program(&stage, "polite", "exit 1")?;
    program(&stage, "bin/ssh", "")?;
    for signal in ["INT", "TERM"] {
        let line = format!("install git --channel {file} --yes");
        interrupted(&stage, &folder, &line, "/key", &[signal]).await?;
        let line = format!("install objects --channel {file} --yes --helm-bin {helm}");
        interrupted(&stage, &folder, &line, "/chart.tgz", &[signal]).await?;
    }
    // Helm is in a process group of its own: it is told.
    let line = format!("install release --channel {file} --yes --helm-bin {polite}");
    interrupted(&stage, &folder, &line, "/chart.tgz", &["INT"]).await?;
    let line = format!("upgrade release --yes --helm-bin {polite}");
    interrupted(&stage, &folder, &line, "/chart.tgz", &["TERM"]).await?;
    let line = format!("upgrade release --yes --helm-bin {helm}");
    interrupted(&stage, &folder, &line, "/chart.tgz", &["INT", "INT"]).await?;
    let line = format!("upgrade release --yes --helm-bin {helm}");
    interrupted(&stage, &folder, &line, "/chart.tgz", &["INT", "INT", "INT"]).await?;
    Ok(())
}
