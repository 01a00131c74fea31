//! Programs that a kubeconfig names for credentials, and kubectl's preferences about them.

use std::fs;

use anyhow::{Result, ensure};

use super::User;

/// A user whose credentials come from a program that leaves a mark.
const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: own
clusters: [{name: own, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: own, context: {cluster: own, user: me}}]
users:
- name: me
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: /bin/sh
      args: [-c, ': > HOME/ran; exit 1']
      interactiveMode: Never
";

#[test]
fn a_credential_plugin_runs_only_if_the_preferences_allow_it() -> Result<()> {
    let user = User::new()?;
    let home = user.home.path();
    let mark = home.join("ran");
    let config = KUBECONFIG.replace("HOME", &home.to_string_lossy());
    fs::write(home.join("config"), config)?;
    fs::create_dir_all(home.join(".kube"))?;
    let kuberc = home.join(".kube/kuberc");
    let line = format!(
        "KUBECONFIG={} kubectl-addons list",
        home.join("config").display()
    );
    for (policy, runs) in [
        ("credentialPluginPolicy: DenyAll", false),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: other}]",
            false,
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: /bin/sh}]",
            true,
        ),
        ("credentialPluginPolicy: Sometimes", false),
        ("defaults: []", true),
    ] {
        let text =
            format!("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n{policy}\n");
        fs::write(&kuberc, text)?;
        let (code, _, stderr) = user.run(&line)?;
        ensure!(code != 0, "{policy}: {stderr}");
        ensure!(mark.exists() == runs, "{policy}: {stderr}");
        ensure!(stderr.contains("kuberc") != runs, "{policy}: {stderr}");
        if runs {
            fs::remove_file(&mark)?;
        }
    }
    let (_, _, stderr) = user.run(&format!("KUBERC=off {line}"))?;
    ensure!(mark.exists(), "{stderr}");
    Ok(())
}
