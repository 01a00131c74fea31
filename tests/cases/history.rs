//! `history` and `rollback`: the revisions of an installation, and the way back to each.

mod atomic;
mod followed;
mod revisions;
mod sources;

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// Of the Secret that values are taken from.
const SECRET: &str = "hunter2-of-history";

/// A user whose catalogue lists these versions of `web`.
struct Shop {
    stage: Stage,
}

impl Shop {
    async fn new(what: &str, versions: &[Value]) -> Result<Self> {
        let stage = Stage::new(what).await?;
        stage.run("init").await?.done()?;
        let shop = Self { stage };
        shop.list(versions).await?;
        Ok(shop)
    }

    /// Lists these versions of `web`, and no others.
    async fn list(&self, versions: &[Value]) -> Result<()> {
        let namespace = &self.stage.namespace;
        let mut versions = versions.to_vec();
        for version in &mut versions {
            version["defaultNamespace"] = json!(namespace);
        }
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
            "metadata": {"name": namespace}, "spec": {"addons": [{"name": "web", "versions": versions}]},
        });
        let file = self.stage.write("catalogue.json", &catalogue.to_string())?;
        let add = format!("catalogue add {}", file.display());
        self.run(&add).await
    }

    async fn run(&self, line: &str) -> Result<()> {
        self.stage.run(line).await?.done()?;
        Ok(())
    }

    /// The items of `history web`, newest first.
    async fn history(&self) -> Result<Vec<Value>> {
        let said = self.stage.run("history web -o json").await?.done()?;
        let found: Value = serde_json::from_str(&said.stdout)?;
        let items = found["items"].as_array().context("no items")?;
        Ok(items.clone())
    }

    /// The value that the installed object holds.
    async fn key(&self) -> Result<Value> {
        let mut object = self.stage.must("configmap", "web").await?;
        Ok(object["data"]["key"].take())
    }

    /// The version that is installed, and the one that the record is pinned to.
    async fn versions(&self) -> Result<(Value, Value)> {
        let record = self.stage.record("web").await?;
        let installed = record["status"]["installed"]["version"].clone();
        Ok((installed, record["spec"]["addonRef"]["version"].clone()))
    }
}

/// A version of `web` with this manifest.
fn plain(version: &str, manifest: &str) -> Value {
    json!({"version": version, "source": {"inline": {"manifest": manifest}}})
}

/// A version whose object takes its value from the values.
fn template(version: &str) -> Value {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {key: '{{ .Variables.key }}'}\n";
    json!({"version": version, "template": {"method": "go-template"}, "values": {"key": "default"},
        "source": {"inline": {"manifest": manifest}}})
}

#[tokio::test]
async fn each_operation_is_a_revision_and_a_rollback_is_one_too() -> Result<()> {
    let mut tally = Tally::new("history::each_operation_is_a_revision");
    let old = config_map("web", "one");
    let new = [config_map("web", "two"), config_map("added", "new")].concat();
    let shop = Shop::new("history", &[plain("1.0.0", &old), plain("1.1.0", &new)]).await?;
    let stage = &shop.stage;
    let mark = stage.cluster.audit().mark()?;
    shop.run("install web@1.0.0 --yes").await?;
    let requests = stage.requests(mark)?;
    let ours = requests.of("kubectl-addons");
    let ours = ours.filter(|one| one.object.resource == "controllerrevisions");
    ensure!(ours.count() == 1, "a first revision is one request");
    tally.ran();

    shop.run("upgrade web@1.1.0 --yes").await?;
    let all = shop.history().await?;
    ensure!(all.len() == 2, "{all:?}");
    ensure!(
        all[0]["revision"] == 2 && all[0]["verb"] == "upgrade",
        "{all:?}"
    );
    ensure!(all[0]["changed"] == json!(["1.0.0 → 1.1.0"]), "{all:?}");
    ensure!(
        all[1]["revision"] == 1 && all[1]["verb"] == "install",
        "{all:?}"
    );
    ensure!(
        all[1]["outcome"] == "done" && all[1]["version"] == "1.0.0",
        "{all:?}"
    );
    tally.ran();

    let mark = stage.cluster.audit().mark()?;
    let said = stage.run("rollback web --dry-run").await?.done()?;
    for text in [
        "web  1.1.0 → 1.0.0",
        "prune",
        "added",
        "nothing was changed",
    ] {
        ensure!(said.stderr.contains(text), "{text:?}: {}", said.stderr);
    }
    shop.run("upgrade web@1.1.0 --yes").await?;
    ensure!(stage.requests(mark)?.writes("kubectl-addons") == 0);
    tally.ran();

    let said = stage.run("rollback web --yes").await?.done()?;
    ensure!(
        said.stderr.contains("web 1.0.0 rolled back"),
        "{}",
        said.stderr
    );
    ensure!(shop.key().await? == "one" && !stage.has("configmap", "added").await?);
    ensure!(shop.versions().await? == (json!("1.0.0"), json!("1.0.0")));
    let all = shop.history().await?;
    ensure!(
        all[0]["revision"] == 3 && all[0]["verb"] == "rollback",
        "{all:?}"
    );
    ensure!(all[0]["rollbackTo"] == 1, "{all:?}");
    tally.ran();

    // The one before the newest, as kubectl rollout undo has it.
    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "two");
    table(&shop).await?;
    tally.ran();
    gone_with_it(&shop).await?;
    tally.ran();
    Ok(())
}

/// For people; and the names of the objects.
async fn table(shop: &Shop) -> Result<()> {
    let said = shop.stage.run("history web").await?.done()?.stdout;
    for text in [
        "REVISION",
        "rollback to 2",
        "rollback to 1",
        "1.1.0 → 1.0.0",
        "install",
    ] {
        ensure!(said.contains(text), "{text:?}: {said}");
    }
    let said = shop.stage.run("history web -o name").await?.done()?.stdout;
    ensure!(
        said.starts_with("controllerrevision.apps/web.v4\n"),
        "{said}"
    );
    Ok(())
}

/// Kubernetes deletes the revisions with the record.
async fn gone_with_it(shop: &Shop) -> Result<()> {
    shop.run("uninstall web --yes").await?;
    until("the end of the revisions", async || {
        let left = shop.stage.has("controllerrevision", "web.v1").await?;
        Ok(if left {
            Err("web.v1".to_owned())
        } else {
            Ok(())
        })
    })
    .await
}

#[tokio::test]
async fn values_come_back_and_those_of_secrets_are_in_no_revision() -> Result<()> {
    let mut tally = Tally::new("history::values_come_back");
    let shop = Shop::new("history-values", &[template("1.0.0")]).await?;
    let stage = &shop.stage;
    shop.run("install web --set key=first --yes").await?;
    shop.run("upgrade web --set key=second --yes").await?;
    ensure!(shop.key().await? == "second");
    let all = shop.history().await?;
    ensure!(all[0]["changed"] == json!(["values.key"]), "{all:?}");
    shop.run("rollback web 1 --yes").await?;
    ensure!(shop.key().await? == "first");
    let record = stage.record("web").await?;
    ensure!(record["spec"]["values"]["key"] == "first", "{record}");
    tally.ran();

    let values = format!("--from-literal=values=key: {SECRET}");
    stage
        .kubectl(&["create", "secret", "generic", "keys", &values])
        .await?;
    let from = json!({"spec": {"values": null,
        "valuesFrom": [{"secretKeyRef": {"name": "keys", "key": "values"}}]}});
    stage.patch("addoninstallation", "web", &from).await?;
    shop.run("upgrade web --yes").await?;
    ensure!(shop.key().await? == SECRET);
    let kept = stage
        .kubectl(&["get", "controllerrevisions", "-o", "json"])
        .await?;
    ensure!(kept.stdout.contains("web.v4") && !kept.stdout.contains(SECRET));
    tally.ran();

    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "first");
    let said = stage.run("rollback web --yes").await?.done()?;
    ensure!(
        said.stderr.contains("read as they are now"),
        "{}",
        said.stderr
    );
    ensure!(shop.key().await? == SECRET);
    tally.ran();
    Ok(())
}

/// An entry that holds its manifest itself is not kept: the manifest may be a Secret.
#[tokio::test]
async fn what_is_not_kept_comes_from_the_catalogue() -> Result<()> {
    let mut tally = Tally::new("history::what_is_not_kept");
    let (first, second) = (config_map("web", "first"), config_map("web", "second"));
    let shop = Shop::new("history-gone", &[plain("1.0.0", &first)]).await?;
    let stage = &shop.stage;
    shop.run("install web --yes").await?;
    for (now, before) in [
        (plain("1.0.0", &second), vec![plain("1.0.0", &first)]),
        (
            plain("2.0.0", &second),
            vec![plain("1.0.0", &first), plain("2.0.0", &second)],
        ),
    ] {
        shop.list(&[now]).await?;
        shop.run("upgrade web --yes").await?;
        ensure!(shop.key().await? == "second");
        let said = stage.run("rollback web --yes").await?.ended(1)?.stderr;
        ensure!(said.contains("(1.0.0) is not kept with it, and"), "{said}");
        ensure!(shop.key().await? == "second");
        shop.list(&before).await?;
        shop.run("rollback web --yes").await?;
        ensure!(shop.key().await? == "first");
        // A loop leaves it there, and repairs what it brought back.
        stage
            .patch("configmap", "web", &json!({"data": {"key": "edited"}}))
            .await?;
        shop.run("reconcile web").await?;
        ensure!(shop.key().await? == "first");
        let installed = shop.versions().await?.0;
        ensure!(installed == "1.0.0", "{installed}");
        tally.ran();
    }
    Ok(())
}

/// A manifest that stands outside of its index is read from there again.
#[tokio::test]
async fn what_is_kept_comes_back_without_its_index() -> Result<()> {
    let shop = Shop::new(
        "history-kept",
        &[plain("0.9.0", &config_map("web", "listed"))],
    )
    .await?;
    let stage = &shop.stage;
    let index = |version: &str| {
        let manifest = config_map("web", version);
        stage.index("index.yaml", &[("web", version, &manifest)])
    };
    let location = index("1.0.0")?;
    shop.run(&format!("install web --channel {location} --yes"))
        .await?;
    index("2.0.0")?;
    shop.run(&format!("upgrade web --channel {location} --yes"))
        .await?;
    ensure!(shop.key().await? == "2.0.0");
    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "1.0.0");
    shop.run("reconcile web").await?;
    ensure!(shop.key().await? == "1.0.0");
    Ok(())
}

#[tokio::test]
async fn a_failed_upgrade_is_taken_back() -> Result<()> {
    let mut tally = Tally::new("history::a_failed_upgrade");
    let good = [config_map("web", "good"), deployment("web", 1, None)].concat();
    let bad = [
        config_map("web", "bad"),
        deployment("web", 1, Some("nowhere")),
    ]
    .concat();
    let shop = Shop::new(
        "history-failed",
        &[plain("1.0.0", &good), plain("1.1.0", &bad)],
    )
    .await?;
    let stage = &shop.stage;
    shop.run("install web@1.0.0 --yes").await?;
    let upgrade = "upgrade web@1.1.0 --yes --timeout 5s";
    let said = stage.run(upgrade).await?.ended(3)?;
    let back = "go back   kubectl addons rollback web -n ";
    ensure!(said.stderr.contains(back), "{}", said.stderr);
    let listed = stage.run("list").await?.done()?.stdout;
    let failed = "Failed: upgrade to 1.1.0: Deployment web ";
    ensure!(listed.contains(failed), "{listed}");
    // The same failure again makes no revision.
    stage.run(upgrade).await?.ended(3)?;
    let all = shop.history().await?;
    let numbers: Vec<_> = all.iter().map(|one| &one["revision"]).collect();
    ensure!(
        numbers.iter().filter(|one| !one.is_null()).count() == 2,
        "{all:?}"
    );
    let failed = all.iter().find(|one| one["revision"] == 2);
    let failed = failed.context("no revision 2")?;
    ensure!(
        failed["outcome"] != "done" && failed["version"] == "1.1.0",
        "{failed}"
    );
    tally.ran();

    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "good");
    ensure!(shop.versions().await? == (json!("1.0.0"), json!("1.0.0")));
    ensure!(stage.record("web").await?["status"]["phase"] == "Ready");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_gone_back_to_is_named() -> Result<()> {
    let mut tally = Tally::new("history::what_cannot_be_gone_back_to");
    let shop = Shop::new("history-none", &[plain("1.0.0", &config_map("web", "one"))]).await?;
    let stage = &shop.stage;
    shop.run("install web --yes").await?;
    let look = format!("look:   kubectl addons history web -n {}", stage.namespace);
    for (line, texts) in [
        (
            "rollback web --yes",
            ["no earlier revision succeeded", &look],
        ),
        (
            "rollback web 9 --yes",
            ["revision 9 is not kept; revisions that are: 1", &look],
        ),
        ("rollback wep --yes", ["no installation named wep", "web"]),
    ] {
        let said = stage.run(line).await?.ended(1)?;
        for text in texts {
            ensure!(said.stderr.contains(text), "{text:?}: {}", said.stderr);
        }
        tally.ran();
    }
    stage
        .patch(
            "addoninstallation",
            "web",
            &json!({"spec": {"suspend": true}}),
        )
        .await?;
    let said = stage.run("rollback web 1 --yes").await?;
    ensure!(
        said.code != 0 && said.stderr.contains("is suspended"),
        "{}",
        said.stderr
    );
    tally.ran();
    Ok(())
}
