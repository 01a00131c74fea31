//! The starter catalogue on the real API server, with the content of the corpus: every add-on is installed, upgraded, rolled back and
//! uninstalled.
//!
//! Nothing is waited for, because the images do not run here, and so no webhook and no aggregated API answers. The ranges of Kubernetes
//! versions are left out: the cluster is newer than some.

use std::fs;
use std::path::Path;

use addons_tests::control_plane::{ControlPlane, Options, binaries};
use addons_tests::plugin::Plugin;
use addons_tests::servers::http::{Answer, Server};
use addons_tests::shared;
use addons_tests::starter::{Corpus, PATH, UpstreamPath, read};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, bail, ensure};
use common::api::catalogue::{Addon, Constraints, Source, UrlSource};
use serde_json::{Value, json};

/// Kinds of which an add-on that is uninstalled must not leave objects.
const KINDS: &str = "crd,clusterroles,clusterrolebindings,deployments,daemonsets,statefulsets,jobs,services,configmaps,secrets,\
                     serviceaccounts,validatingwebhookconfigurations,mutatingwebhookconfigurations,apiservices";

/// Returns an add-on with the content of the corpus, oldest version first; `None` if the corpus lacks some of it.
fn local_addon(corpus: &Corpus, addon: &Addon) -> Option<Addon> {
    let mut local = addon.clone();
    local.versions.reverse();
    for version in &mut local.versions {
        // The chart names another one, which is read from a registry.
        version.manifest_hash.as_ref()?;
        let content = corpus.content(corpus.find(&UpstreamPath::read(version)?)?)?;
        version.source = Source {
            url: Some(UrlSource {
                manifest: content.to_str()?.to_owned(),
                ..UrlSource::default()
            }),
            ..Source::default()
        };
        // The corpus has no READMEs and tests, so the hash of a folder is another one.
        version.manifest_hash = None;
        version.constraints = Constraints::default();
        version.requires.clear();
    }
    Some(local)
}

/// Jobs of a manifest whose pods change with the version: users are asked before they run again.
const RECREATED: [(&str, &str); 2] = [
    (
        "ingress-nginx",
        "--recreate=Job/ingress-nginx-admission-create",
    ),
    (
        "ingress-nginx",
        "--recreate=Job/ingress-nginx-admission-patch",
    ),
];
/// Contains an admission policy that denies older definitions than those which are there.
const KEEPS_NEWER: &str = "gateway-api-crds";

/// Installs an add-on, upgrades it, rolls it back, and uninstalls it.
async fn run_through(plugin: &Plugin, addon: &Addon, index: &Path, access: &str) -> Result<()> {
    let spec = json!({"addons": [addon]});
    let object = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "starter"}, "spec": spec,
    });
    fs::write(index, serde_json::to_string(&object)?)?;
    let index = index.to_str().context("a path")?;
    let name = addon.name.as_str();
    let [oldest, .., newest] = addon.versions.as_slice() else {
        let only = addon.versions.first().context("no version")?;
        install(plugin, addon, &only.version, index, access).await?;
        return uninstall(plugin, name).await;
    };
    install(plugin, addon, &oldest.version, index, access).await?;
    let target = format!("{name}@{}", newest.version);
    let recreate = RECREATED.iter().filter(|(addon, _)| *addon == name);
    let recreate: Vec<&str> = recreate.map(|(_, flag)| *flag).collect();
    let upgrade = [
        "upgrade",
        &target,
        "--channel",
        index,
        "--yes",
        "--wait=false",
        "--allow-crd-breakage",
        access,
    ];
    let upgrade = [&upgrade[..], &recreate].concat();
    let said = plugin.run(&upgrade).await?.done()?.stderr;
    ensure!(said.contains(&newest.version), "{said}");
    let back = [
        "rollback",
        name,
        "--yes",
        "--wait=false",
        "--allow-crd-breakage",
        access,
    ];
    let back = [&back[..], &recreate].concat();
    let went = plugin.run(&back).await?;
    if name == KEEPS_NEWER {
        ensure!(
            went.code != 0 && went.stderr.contains("safe-upgrades"),
            "{}",
            went.stderr
        );
        return uninstall(plugin, name).await;
    }
    went.done()?;
    let record = [
        "get",
        "addoninstallation",
        name,
        "-n",
        "kubectl-addons",
        "-o",
        "json",
    ];
    let record: Value = serde_json::from_str(&plugin.kubectl(&record).await?.done()?.stdout)?;
    let installed = &record["status"]["installed"]["version"];
    ensure!(installed == oldest.version.as_str(), "{installed}");
    uninstall(plugin, name).await
}

async fn install(
    plugin: &Plugin,
    addon: &Addon,
    version: &str,
    index: &str,
    access: &str,
) -> Result<()> {
    let target = format!("{}@{version}", addon.name);
    let versions = addon.versions.iter();
    let form = versions.flat_map(|version| &version.template.form_spec);
    let required = form.filter(|field| field.required && field.default.is_none());
    let values: Vec<String> = required
        .map(|field| format!("--set={}=starter", field.internal_name))
        .collect();
    let mut install = vec![
        "install",
        &target,
        "--channel",
        index,
        "--yes",
        "--wait=false",
        access,
    ];
    install.extend(values.iter().map(String::as_str));
    plugin.run(&install).await?.done()?;
    Ok(())
}

async fn uninstall(plugin: &Plugin, name: &str) -> Result<()> {
    let uninstall = [
        "uninstall",
        name,
        "--yes",
        "--delete-crds",
        "--delete-volumes",
    ];
    plugin.run(&uninstall).await?.done()?;
    let owned = [
        "get",
        KINDS,
        "-A",
        "-l",
        "kubectl-addons.dev/owner",
        "-o",
        "name",
    ];
    let left = plugin.kubectl(&owned).await?.done()?.stdout;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

/// Runs the add-ons with these initials through their life, one after the other on a cluster of their own.
async fn run_all(tally: &'static str, initials: std::ops::RangeInclusive<char>) -> Result<()> {
    let mut tally = Tally::new(tally);
    let Some(folder) = shared::path("corpus/starter") else {
        tally.left_out("corpus is not beside the checkout");
        return Ok(());
    };
    let corpus = Corpus::read(&folder)?;
    let cluster = ControlPlane::start(Options::default()).await?;
    cluster.add_node("starter").await?;
    let helm = binaries::helm()?.to_string_lossy().into_owned();
    let plugin = Plugin::admin(&cluster)?.variable("KUBECTL_ADDONS_HELM", &helm);
    // A catalogue may name files of this machine only where the user opens them.
    let access = format!("--own-access={}", folder.display());
    let mut failed = Vec::new();
    let addons = read()?.spec.addons;
    for addon in addons
        .iter()
        .filter(|addon| addon.name.starts_with(|c: char| initials.contains(&c)))
    {
        let Some(local) = local_addon(&corpus, addon) else {
            tally.left_out(format!("the corpus lacks a part of {}", addon.name));
            continue;
        };
        let index = cluster.folder().join(format!("{}.yaml", addon.name));
        match run_through(&plugin, &local, &index, &access).await {
            Ok(()) => tally.ran(),
            Err(error) => failed.push(format!("{}: {error:#}", addon.name)),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join("\n\n"))
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: every add-on of the starter catalogue")]
async fn add_ons_a_to_d_live() -> Result<()> {
    run_all("starter::add_ons_a_to_d_live", 'a'..='d').await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: every add-on of the starter catalogue")]
async fn add_ons_e_to_k_live() -> Result<()> {
    run_all("starter::add_ons_e_to_k_live", 'e'..='k').await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: every add-on of the starter catalogue")]
async fn add_ons_l_to_z_live() -> Result<()> {
    run_all("starter::add_ons_l_to_z_live", 'l'..='z').await
}

/// As a user gets it: by a URL. Its sources are not read.
#[tokio::test]
async fn it_is_added_by_its_url() -> Result<()> {
    let text = fs::read_to_string(PATH)?;
    let site = Server::start(None, move |seen| match seen.uri.as_str() {
        "/catalogue.yaml" => Answer::ok(text.clone()),
        _ => Answer::status(404),
    })?;
    let cluster = ControlPlane::start(Options::api_only()).await?;
    let plugin = Plugin::admin(&cluster)?;
    let url = site.url("/catalogue.yaml");
    plugin.run(&["catalogue", "add", &url]).await?.done()?;
    let found = plugin.run(&["search"]).await?.done()?.stdout;
    for addon in read()?.spec.addons {
        ensure!(found.contains(&addon.name), "{found}");
    }
    let ended = found.lines().find(|line| line.starts_with("ingress-nginx"));
    ensure!(ended.is_some_and(|line| line.contains("no")), "{found}");
    Ok(())
}
