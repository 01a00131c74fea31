//! The policy for credential plugins in kubectl's preferences (`kuberc`): a kubeconfig names a program that gets the credentials, and
//! what kubectl would not run is not run here either.

use std::path::{Path, PathBuf};

use addons_sources::platform;
use anyhow::{Context as _, Result, bail};
use common::manifest::yaml;
use kube::config::ExecConfig;
use serde::Deserialize;

/// The group of kubectl's preferences.
const GROUP: &str = "kubectl.config.k8s.io/";
/// The version of them that has no policy.
const WITHOUT_POLICY: &str = "kubectl.config.k8s.io/v1alpha1";

/// The preferences, as far as they are about credential plugins.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preference {
    credential_plugin_policy: PluginPolicy,
    credential_plugin_allowlist: Vec<AllowedPlugin>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum PluginPolicy {
    #[default]
    #[serde(alias = "")]
    AllowAll,
    DenyAll,
    Allowlist,
}

/// A program that may run: a path, or a name that is found on the PATH.
#[derive(Debug, Deserialize)]
struct AllowedPlugin {
    /// Kubernetes 1.35 calls it `name`.
    #[serde(alias = "name")]
    command: String,
}

/// Checks that the preferences allow the credential plugin of a user.
///
/// # Errors
/// They do not, or they cannot be read.
pub fn check(exec: &ExecConfig) -> Result<()> {
    let Some(path) = find_preferences()? else {
        return Ok(());
    };
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let preference = parse(&text).with_context(|| path.display().to_string())?;
    let plugin = exec.command.as_deref().unwrap_or_default();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&search).collect();
    if is_allowed(&preference, plugin, &folders) {
        return Ok(());
    }
    bail!(
        "the kubeconfig gets credentials from the program {plugin}, which {} does not allow \
         (credentialPluginPolicy: {:?}); add it to credentialPluginAllowlist, or use another user",
        path.display(),
        preference.credential_plugin_policy
    )
}

/// The file that `KUBERC` names, else `~/.kube/kuberc`. `None` if there is none, or if it is turned off as for kubectl.
fn find_preferences() -> Result<Option<PathBuf>> {
    let named = std::env::var("KUBERC").unwrap_or_default();
    let is_off = named == "off" || std::env::var("KUBECTL_KUBERC").is_ok_and(|it| it == "false");
    if is_off {
        return Ok(None);
    }
    if !named.is_empty() {
        if !Path::new(&named).exists() {
            bail!("KUBERC names a file that does not exist: {named}");
        }
        return Ok(Some(named.into()));
    }
    let default = platform::home().map(|home| home.join(".kube/kuberc"));
    Ok(default.filter(|path| path.exists()))
}

/// The first document that can hold a policy.
fn parse(text: &[u8]) -> Result<Preference> {
    for document in yaml::documents(text, &yaml::YamlOptions::default()) {
        let value = document?.value;
        let version = value["apiVersion"].as_str().unwrap_or_default();
        if !version.starts_with(GROUP) || version == WITHOUT_POLICY {
            continue;
        }
        let preference: Preference = serde_json::from_value(value)?;
        let is_list = preference.credential_plugin_policy == PluginPolicy::Allowlist;
        if !is_list && !preference.credential_plugin_allowlist.is_empty() {
            bail!("credentialPluginAllowlist needs credentialPluginPolicy: Allowlist");
        }
        return Ok(preference);
    }
    Ok(Preference::default())
}

fn is_allowed(preference: &Preference, plugin: &str, folders: &[PathBuf]) -> bool {
    match preference.credential_plugin_policy {
        PluginPolicy::AllowAll => true,
        PluginPolicy::DenyAll => false,
        PluginPolicy::Allowlist => {
            let program = locate(plugin, folders);
            let allowed = &preference.credential_plugin_allowlist;
            allowed
                .iter()
                .any(|allowed| locate(&allowed.command, folders) == program)
        }
    }
}

/// The path of a program. A name without a folder is looked up on the PATH, and stays a name if it is not there.
fn locate(command: &str, folders: &[PathBuf]) -> PathBuf {
    let command = Path::new(command);
    if command.components().count() != 1 {
        return command.to_owned();
    }
    let mut places = folders.iter().map(|folder| folder.join(command));
    let found = places.find(|place| place.is_file());
    found.unwrap_or_else(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preference(fields: &str) -> Result<Preference> {
        let text = format!("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n{fields}");
        parse(text.as_bytes())
    }

    #[test]
    fn who_may_run() {
        // Any file is a program here.
        let folders = [PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let list = |command: &str| {
            format!(
                "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{{{command}}}]\n"
            )
        };
        for (fields, plugin, expected) in [
            (String::new(), "Cargo.toml", true),
            ("credentialPluginPolicy: ''".to_owned(), "other", true),
            ("credentialPluginPolicy: AllowAll".to_owned(), "other", true),
            (
                "credentialPluginPolicy: DenyAll".to_owned(),
                "Cargo.toml",
                false,
            ),
            (list("name: Cargo.toml"), "Cargo.toml", true),
            (list("command: Cargo.toml"), program, true),
            (list(&format!("command: {program}")), "Cargo.toml", true),
            (list("command: Cargo.toml"), "/tmp/Cargo.toml", false),
            (list("command: other"), "Cargo.toml", false),
        ] {
            let found = is_allowed(&preference(&fields).unwrap(), plugin, &folders);
            assert_eq!(found, expected, "{fields}: {plugin}");
        }
    }

    #[test]
    fn what_is_no_policy_is_an_error() {
        for fields in [
            "credentialPluginPolicy: Sometimes",
            "credentialPluginAllowlist: [{name: a}]",
            "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: [{name: a}]",
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{path: a}]",
        ] {
            preference(fields).unwrap_err();
        }
        let former =
            b"apiVersion: kubectl.config.k8s.io/v1alpha1\ncredentialPluginPolicy: DenyAll\n---\n\
                       apiVersion: kubectl.config.k8s.io/v1\ncredentialPluginPolicy: Allowlist\n";
        let found = parse(former).unwrap().credential_plugin_policy;
        assert_eq!(found, PluginPolicy::Allowlist);
    }
}
