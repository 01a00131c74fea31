//! The records of the former tool are set aside: it sees nothing, and cannot delete what is ours (semantics 12).

use addons_tests::chaos::matrix;
use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

use super::tools::{
    applications, chart, deploy, finds_nothing, helm, kapp, manifest, release, releases,
};
use super::{pods, ready};

const SECRETS: &str = "secrets --selector kubectl-addons.dev/set-aside-by -o name";

/// The Secrets that are set aside.
async fn set_aside(stage: &Stage) -> Result<usize> {
    let args: Vec<&str> = ["get"].into_iter().chain(SECRETS.split(' ')).collect();
    Ok(stage.kubectl(&args).await?.stdout.lines().count())
}

#[tokio::test]
async fn helm_finds_nothing_of_an_adopted_release() -> Result<()> {
    for verb in ["adopt web", "install web --adopt"] {
        let stage = Stage::new("aside-helm").await?;
        let at = stage.namespace.as_str();
        release(&stage, &manifest(true)).await?;
        let before = pods(&stage).await?;
        ensure!(releases(&stage).await? == "web", "helm has no release");
        let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
        let line = format!("{verb} --channel {index}");
        let said = stage
            .run(&format!("{line} --dry-run"))
            .await?
            .done()?
            .stderr;
        let told = format!("set aside the records of Helm release {at}/web (2 Secrets)");
        ensure!(said.contains(&told), "{said}");
        ensure!(
            releases(&stage).await? == "web",
            "a dry run has set it aside"
        );

        stage.run(&format!("{line} --yes")).await?.done()?;
        ensure!(releases(&stage).await?.is_empty(), "helm finds it");
        let gone = helm(&stage, &["uninstall", "web"]).await?;
        finds_nothing(&gone, "release: not found")?;
        ensure!(set_aside(&stage).await? == 2, "the records are gone");
        ready(&stage).await?;
        ensure!(before == pods(&stage).await?, "other pods");
        let record = stage.record("web").await?;
        let former = &record["status"]["former"][0];
        ensure!(
            former["tool"] == "helm" && former["isSetAside"] == true,
            "{former}"
        );
        stage.run("upgrade web --yes").await?.done()?;
        ensure!(
            before == pods(&stage).await?,
            "other pods after the upgrade"
        );
        let said = stage.run("uninstall web --yes").await?.done()?.stderr;
        let told = format!("delete    the records of Helm release {at}/web (2 Secrets)");
        ensure!(said.contains(&told), "{said}");
        ensure!(set_aside(&stage).await? == 0, "the records stay");
    }
    Ok(())
}

/// Values are not taken over, for they would leave a Secret: they are named, and not shown.
#[tokio::test]
async fn values_of_a_release_are_named_until_they_are_given() -> Result<()> {
    let stage = Stage::new("aside-values").await?;
    release(&stage, &manifest(false)).await?;
    let upgrade = ["upgrade", "web", "--reuse-values", "--set", "colour=blue"];
    let shelf = Shelf::new()?;
    let packed = chart(&shelf, "1.0.0", &manifest(false))?
        .display()
        .to_string();
    let upgrade = [&upgrade[..], &[&packed]].concat();
    helm(&stage, &upgrade).await?.done()?;
    let version = json!({
        "version": "1.0.0",
        "source": {"inline": {"manifest": manifest(false)}},
        "template": {"method": "go-template"},
    });
    let catalogue = stage.catalogue("web", &version)?;
    for (flags, is_named) in [("", true), ("--set colour=blue", false)] {
        let line = format!(
            "adopt web --channel {} {flags} --dry-run",
            catalogue.display()
        );
        let said = stage.run(&line).await?.done()?.stderr;
        let told = "was given values for colour, which are not recorded here";
        ensure!(
            said.contains(told) == is_named && !said.contains("blue"),
            "{said}"
        );
    }
    Ok(())
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: needs kapp")]
async fn kapp_finds_nothing_of_an_adopted_application() -> Result<()> {
    let stage = Stage::new("aside-kapp").await?;
    let at = stage.namespace.as_str();
    deploy(&stage, &manifest(true)).await?;
    let before = pods(&stage).await?;
    ensure!(
        applications(&stage).await? == ["web"],
        "kapp has no application"
    );
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    let line = format!("adopt web --channel {index} --yes");
    let said = stage.run(&line).await?.done()?.stderr;
    let told = format!("set aside the records of kapp application {at}/web (2 ConfigMaps)");
    ensure!(said.contains(&told), "{said}");
    ensure!(applications(&stage).await?.is_empty(), "kapp finds it");
    let gone = kapp(&stage, &["delete", "--app", "web", "--yes"]).await?;
    finds_nothing(&gone, "did not contain parseable app metadata")?;
    ensure!(before == pods(&stage).await?, "other pods");
    ready(&stage).await?;

    // The selector has a label of kapp, and cannot change: it stays, as the label in the template does, and is no difference.
    let said = stage.run("upgrade web --yes").await?.done()?.stderr;
    ensure!(said.contains("1 changed, 1 unchanged"), "{said}");
    let map = stage.must("configmap", "settings").await?;
    ensure!(map["data"]["dropped"].is_null(), "{map}");
    ready(&stage).await?;
    ensure!(
        before == pods(&stage).await?,
        "other pods after the upgrade"
    );
    stage.run("uninstall web --yes").await?.done()?;
    ensure!(!stage.has("deployment", "web").await?, "it stays");
    Ok(())
}

/// What only kapp would delete is not hidden from it.
#[tokio::test]
async fn records_of_what_is_adopted_in_part_stay() -> Result<()> {
    let stage = Stage::new("aside-part").await?;
    let at = stage.namespace.as_str();
    let rest = config_map("rest", "1");
    release(&stage, &[manifest(false), rest.clone()].concat()).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    let line = format!("install web --channel {index} --adopt --yes");
    let said = stage.run(&line).await?.done()?.stderr;
    let told = format!(
        "the records of Helm release {at}/web stay, and helm can still delete its objects: \
         not taken over: {at}/ConfigMap rest"
    );
    ensure!(said.contains(&told), "{said}");
    ensure!(releases(&stage).await? == "web", "helm does not find it");

    // When the rest is taken over, too, they are set aside; by then the objects of `web` have no mark of Helm any more.
    let more = stage.index("rest.yaml", &[("rest", "1.0.0", &rest)])?;
    let line = format!("install rest --channel {more} --adopt --yes");
    let said = stage.run(&line).await?.done()?.stderr;
    ensure!(
        said.contains("set aside the records of Helm release"),
        "{said}"
    );
    ensure!(releases(&stage).await?.is_empty(), "helm finds it");
    Ok(())
}

/// A user `NAMESPACE-weak` who may read Secrets and not write them.
async fn weak_user(stage: &Stage) -> Result<()> {
    let at = &stage.namespace;
    let rules = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {at}-weak}}\nrules:\n\
         - {{apiGroups: ['', apps, kubectl-addons.dev], resources: ['*'], verbs: [get, list, watch]}}\n\
         - {{apiGroups: [apps, kubectl-addons.dev], resources: ['*'], verbs: ['*']}}\n\
         - {{apiGroups: [''], resources: [configmaps], verbs: ['*']}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {at}-weak}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {at}-weak}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {at}-weak}}]\n"
    );
    stage.apply(&rules).await
}

/// Who may not write them is told so, and everything else is done.
#[tokio::test]
async fn records_that_may_not_be_written_stay_whole() -> Result<()> {
    let stage = Stage::new("aside-rights").await?;
    let at = stage.namespace.clone();
    release(&stage, &manifest(false)).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    stage.run("init").await?.done()?;
    weak_user(&stage).await?;
    let line = format!("adopt web --channel {index} --yes");
    let said = stage
        .run(&format!("{line} --as {at}-weak"))
        .await?
        .done()?
        .stderr;
    let told = format!("the records of Helm release {at}/web stay, and helm can still delete");
    ensure!(
        said.contains(&told) && said.contains("not allowed: patch secrets"),
        "{said}"
    );
    ensure!(releases(&stage).await? == "web", "helm does not find it");
    ensure!(set_aside(&stage).await? == 0, "one of them is set aside");

    // The way out that the warning names, for someone who may: nothing but the records changes, and no newer version is recorded.
    let command = format!("kubectl addons adopt web -n {at} ");
    ensure!(
        said.contains(&command) && said.contains(" sets them aside"),
        "{said}"
    );
    let (old, new) = (manifest(false), manifest(true));
    stage.index(
        "index.yaml",
        &[("web", "1.0.0", &old), ("web", "2.0.0", &new)],
    )?;
    let content = async || {
        let web = stage.must("deployment", "web").await?;
        let metadata = &web["metadata"];
        anyhow::Ok([&web["spec"], &metadata["labels"], &metadata["annotations"]].map(Clone::clone))
    };
    let before = content().await?;
    let said = stage
        .run(&format!("adopt web -n {at} --yes"))
        .await?
        .done()?
        .stderr;
    ensure!(releases(&stage).await?.is_empty(), "helm finds it: {said}");
    ensure!(set_aside(&stage).await? == 2, "not all are set aside");
    ensure!(content().await? == before, "{said}");
    let record = stage.record("web").await?;
    let installed = &record["status"]["installed"];
    ensure!(
        installed["version"] == "1.0.0" && installed["adopted"] == true,
        "{record:#}"
    );
    ensure!(
        record["spec"]["addonRef"]["version"] == "1.0.0",
        "{record:#}"
    );
    let said = stage
        .run(&format!("adopt web -n {at} --yes"))
        .await?
        .ended(1)?;
    ensure!(
        said.stderr.contains("has already been taken over"),
        "{said:?}"
    );
    Ok(())
}

/// After an upgrade has removed the marks of Helm, an upgrade sets its records aside.
#[tokio::test]
async fn records_that_stayed_are_set_aside_by_an_upgrade() -> Result<()> {
    let stage = Stage::new("aside-later").await?;
    let at = stage.namespace.clone();
    release(&stage, &manifest(false)).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    stage.run("init").await?.done()?;
    weak_user(&stage).await?;
    let line = format!("adopt web --channel {index} --yes --as {at}-weak");
    stage.run(&line).await?.done()?;
    stage.run("upgrade web --yes").await?.done()?;
    stage.run("upgrade web --adopt --yes").await?.done()?;
    ensure!(releases(&stage).await?.is_empty(), "helm finds it");
    ensure!(set_aside(&stage).await? == 2, "not all are set aside");
    Ok(())
}

/// Until the last record is set aside helm finds the release, and then nothing of it; whoever comes next ends it.
#[tokio::test]
async fn every_write_is_continued() -> Result<()> {
    let name = "adopt::records::every_write_is_continued";
    matrix::run(name, matrix::deaths(14), async |&(number, delivered)| {
        let rig = Rig::new("aside-crash").await?;
        let stage = &rig.stage;
        stage.run("init").await?.done()?;
        release(stage, &manifest(true)).await?;
        let before = pods(stage).await?;
        let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
        let line = format!("install web --channel {index} --yes");
        let stop = Fault::at(number, Action::Stop { delivered }).writes();
        let adopt = format!("{line} --adopt --concurrency 1");
        let is_stopped = rig.run_until(&adopt, stop).await?;
        let next = stage.run(&format!("{line} --steal-lock")).await?;
        if next.code != 0 {
            stage.run(&format!("{line} --adopt")).await?.done()?;
        }
        ensure!(releases(stage).await?.is_empty(), "helm finds it");
        ensure!(set_aside(stage).await? == 2, "not all are set aside");
        ensure!(before == pods(stage).await?, "other pods");
        let record = stage.record("web").await?;
        let former = &record["status"]["former"][0];
        ensure!(former["isSetAside"] == true, "{former}");
        Ok(is_stopped)
    })
    .await
}
