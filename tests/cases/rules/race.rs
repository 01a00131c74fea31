//! Two catalogues that are created at the same time are not judged by each other: one of them has to give way, and says so (semantics 2).

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{catalogue, create, version};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use futures::try_join;
use serde_json::{Value, json};

/// Pairs that are created while the webhook answers.
const PAIRS: usize = 5;

fn holding(name: &str, addon: &str) -> Value {
    let versions = json!([version("1.0.0", json!({}))]);
    catalogue(
        name,
        SYSTEM_NAMESPACE,
        json!([{"name": addon, "versions": versions}]),
    )
}

/// The status of the condition `Duplicate`, and its message.
async fn duplicate(admin: &Plugin, name: &str) -> Result<Option<(String, String)>> {
    let get = [
        "get",
        "addoncatalogue",
        name,
        "-n",
        SYSTEM_NAMESPACE,
        "-o",
        "json",
    ];
    let object: Value = serde_json::from_str(&admin.kubectl(&get).await?.done()?.stdout)?;
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Duplicate");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(found.map(|found| (text(&found["status"]), text(&found["message"]))))
}

/// One cluster: each step needs what the one before left.
#[tokio::test]
async fn of_two_catalogues_created_at_once_one_gives_way() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    // The older one wins. The API server writes whole seconds: it is older where the seconds differ, and else the first by name.
    create(&admin, &holding("a", "web"), &[]).await?.done()?;
    create(&admin, &holding("b", "web"), &[]).await?.done()?;
    let words = "spec.addons[0].versions[0]: web 1.0.0 is already in catalogue a at spec.addons[0].versions[0] (1.0.0)";
    let said = admin.run(&["catalogue", "view"]).await?.ended(1)?;
    // What it lost is not offered.
    ensure!(said.stdout.matches("web").count() == 1, "{}", said.stdout);
    let named = format!("error: catalogue b: {words}");
    ensure!(said.stderr.trim() == named, "{}", said.stderr);

    admin.run(&["reconcile"]).await?.done()?;
    let marked = Some(("True".to_owned(), words.to_owned()));
    ensure!(duplicate(&admin, "b").await? == marked);
    ensure!(duplicate(&admin, "a").await?.is_none());

    // It is changed only in a way that gives the duplicate up.
    let webhook = Webhook::start(&cluster, &[]).await?;
    let of = [
        "patch",
        "addoncatalogue",
        "b",
        "-n",
        SYSTEM_NAMESPACE,
        "--type=merge",
        "-p",
    ];
    let patch = async |spec: Value| {
        let patch = json!({"spec": spec}).to_string();
        let args: Vec<&str> = of.iter().copied().chain([patch.as_str()]).collect();
        admin.kubectl(&args).await
    };
    let said = patch(json!({"baseURL": "https://addons.example.test"}))
        .await?
        .ended(1)?;
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    let process = admin.start(&["reconcile", "--watch"])?;
    patch(json!({"addons": []})).await?.done()?;
    let lowered = Some(("False".to_owned(), String::new()));
    until("the loop takes the mark away", async || {
        let found = duplicate(&admin, "b").await?;
        Ok((found == lowered).then_some(()).ok_or(format!("{found:?}")))
    })
    .await?;
    drop(process);
    admin.run(&["catalogue", "view"]).await?.done()?;

    at_once(&admin).await?;
    webhook.stop(&cluster).await?;
    what_is_installed_moves(&admin).await
}

/// What was installed from a catalogue that lost it stays, says which one holds it, and changes once it refers to that one.
async fn what_is_installed_moves(admin: &Plugin) -> Result<()> {
    create(admin, &holding("left", "shop"), &[]).await?.done()?;
    let install = "install shop --catalogue left --yes --wait=false";
    let run = async |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        admin.run(&words).await
    };
    run(install).await?.done()?;
    let mut kept = holding("kept", "shop");
    kept["spec"]["class"] = json!("Core");
    create(admin, &kept, &[]).await?.done()?;
    let held = "catalogue kept holds shop 1.0.0, which catalogue left lists as well";
    let fix = "fix:    kubectl addons upgrade NAME --catalogue kept";
    let said = run("upgrade shop --yes").await?.ended(1)?.stderr;
    ensure!(said.contains(held) && said.contains(fix), "{said}");
    let said = run("reconcile").await?.stderr;
    ensure!(said.contains(held), "{said}");
    let said = run("list -o json").await?.done()?.stdout;
    ensure!(said.contains("Unlisted: catalogue kept holds"), "{said}");
    let said = run("install shop --name second --catalogue left --yes").await?;
    let write = "fix:    write --catalogue kept";
    ensure!(said.stderr.contains(write), "{}", said.stderr);

    run("upgrade shop --catalogue kept --yes --wait=false")
        .await?
        .done()?;
    run("reconcile").await?.done()?;
    let said = run("list -o json").await?.done()?.stdout;
    ensure!(!said.contains(held), "{said}");
    Ok(())
}

/// Of each pair that is created at once, one is denied, or named afterwards.
async fn at_once(admin: &Plugin) -> Result<()> {
    for pair in 0..PAIRS {
        let (one, other) = (format!("one-{pair}"), format!("other-{pair}"));
        let addon = format!("raced-{pair}");
        let objects = [holding(&one, &addon), holding(&other, &addon)];
        let (first, second) = try_join!(
            create(admin, &objects[0], &[]),
            create(admin, &objects[1], &[])
        )?;
        let admitted = [&first, &second]
            .iter()
            .filter(|said| said.code == 0)
            .count();
        ensure!(admitted > 0, "{}{}", first.stderr, second.stderr);
        let said = admin.run(&["catalogue", "view"]).await?;
        let words = format!("{addon} 1.0.0 is already in catalogue ");
        let named = said.stderr.matches(&words).count();
        ensure!(
            named == admitted - 1,
            "{admitted} admitted: {}",
            said.stderr
        );
        for name in [one, other] {
            let delete = [
                "delete",
                "addoncatalogue",
                &name,
                "-n",
                SYSTEM_NAMESPACE,
                "--ignore-not-found",
            ];
            admin.kubectl(&delete).await?.done()?;
        }
        until("they are gone", async || {
            let said = admin.run(&["catalogue", "view"]).await?;
            Ok((said.code == 0).then_some(()).ok_or(said.stderr))
        })
        .await?;
    }
    Ok(())
}
