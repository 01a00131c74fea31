//! What a revision holds, what going back to it would change, and who made it.

use addons_tests::stage::config_map;
use anyhow::{Result, ensure};

use super::{Shop, plain, template};

/// Semantics 12.3: the comparison is that of the rollback, and writes nothing.
#[tokio::test]
async fn a_revision_is_compared_and_found_by_its_version() -> Result<()> {
    let new = [config_map("web", "two"), config_map("added", "new")].concat();
    let versions = [
        plain("1.0.0", &config_map("web", "one")),
        plain("1.1.0", &new),
    ];
    let shop = Shop::new("revisions", &versions).await?;
    let stage = &shop.stage;
    shop.run("install web@1.0.0 --yes").await?;
    shop.run("upgrade web@1.1.0 --yes").await?;

    let mark = stage.cluster.audit().mark()?;
    let said = stage.run("diff web --revision 1").await?.ended(1)?;
    for text in [
        "two → one",
        "ConfigMap added",
        "1 pruned",
        "pinned to version 1.0.0",
    ] {
        ensure!(said.stdout.contains(text), "{text:?}: {}", said.stdout);
    }
    stage.run("diff web --revision 2").await?.done()?;
    let unknown = stage.run("diff web --revision 9").await?.ended(2)?;
    ensure!(
        unknown
            .stderr
            .contains("revision 9 is not kept; revisions that are: 2, 1"),
        "{}",
        unknown.stderr
    );
    for line in [
        "diff web@1.0.0 --revision 1",
        "diff web other --revision 1",
        "diff web --revision 1 --set a=b",
        "rollback web 1 --to 1.0.0 --yes",
    ] {
        stage.run(line).await?.ended(2)?;
    }
    let unknown = stage.run("rollback web --to 9.9.9 --yes").await?.ended(1)?;
    let kept = "no revision that succeeded with version 9.9.9 is kept; \
                versions that are: 1.1.0 (revision 2), 1.0.0 (revision 1)";
    ensure!(unknown.stderr.contains(kept), "{}", unknown.stderr);
    ensure!(stage.requests(mark)?.writes("kubectl-addons") == 0);

    shop.run("rollback web --to 1.0 --yes").await?;
    ensure!(shop.key().await? == "one" && !stage.has("configmap", "added").await?);
    let all = shop.history().await?;
    ensure!(
        all[0]["verb"] == "rollback" && all[0]["rollbackTo"] == 1,
        "{all:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_values_of_a_revision_can_be_read() -> Result<()> {
    let shop = Shop::new("revision-values", &[template("1.0.0")]).await?;
    let stage = &shop.stage;
    shop.run("install web --set key=first --yes").await?;
    shop.run("upgrade web --set key=second,more=x --yes")
        .await?;
    for (flags, expected) in [
        ("--user-supplied", "key: second\nmore: x\n"),
        ("--revision 1", "key: first\n"),
        ("--revision 1 --user-supplied", "key: first\n"),
        ("--revision 2", "key: second\nmore: x\n"),
    ] {
        let said = stage.run(&format!("values web {flags}")).await?.done()?;
        ensure!(said.stdout == expected, "{flags}: {}", said.stdout);
    }
    shop.run("upgrade web --reset-values --yes").await?;
    let said = stage.run("values web --user-supplied").await?.done()?;
    ensure!(said.stdout.trim() == "{}", "{}", said.stdout);
    let said = stage.run("values web --revision 9").await?.ended(1)?;
    ensure!(
        said.stderr.contains("revision 9 is not kept"),
        "{}",
        said.stderr
    );
    Ok(())
}

/// The API server says who it is, in one request of a command that writes.
#[tokio::test]
async fn a_revision_names_the_user_as_the_server_sees_it() -> Result<()> {
    let shop = Shop::new("revision-by", &[plain("1.0.0", &config_map("web", "1"))]).await?;
    let stage = &shop.stage;
    let reviews = async |line: &str| -> Result<usize> {
        let mark = stage.cluster.audit().mark()?;
        shop.run(line).await?;
        let requests = stage.requests(mark)?;
        let ours = requests.of("kubectl-addons");
        let reviews = ours.filter(|one| one.object.resource == "selfsubjectreviews");
        Ok(reviews.count())
    };
    ensure!(reviews("install web --yes --as=carol --as-group=system:masters").await? == 1);
    ensure!(reviews("upgrade web --yes").await? == 0, "nothing is due");
    ensure!(reviews("diff web").await? == 0);
    let all = shop.history().await?;
    let by = all[0]["by"].as_str().unwrap_or_default();
    ensure!(by.starts_with("carol, ") && by.contains('@'), "{by}");
    let table = stage.run("history web").await?.done()?.stdout;
    ensure!(table.contains(" carol ") && !table.contains('@'), "{table}");
    Ok(())
}
