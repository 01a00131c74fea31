//! `apply -f --prune`: what left the file of a set is uninstalled, and nothing else is.

use addons_tests::denial::{When, deny};
use addons_tests::plugin::Output;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::sets::{installation, set};

/// As a member of the core group.
const CORE: &str = "--as=platform --as-group=kubectl-addons:core --as-group=system:masters";

/// A user with add-ons of one ConfigMap each.
struct Team(Stage);

impl Team {
    async fn new(what: &str, addons: &[&str]) -> Result<Self> {
        let team = Self(Stage::new(what).await?);
        for addon in addons {
            team.offer(addon, &config_map(addon, "1"), json!([]))
                .await?;
        }
        Ok(team)
    }

    /// Adds an add-on to the catalogues.
    async fn offer(&self, addon: &str, manifest: &str, requires: Value) -> Result<()> {
        let version = json!({"version": "1.0.0", "requires": requires,
            "source": {"inline": {"manifest": manifest}}});
        let file = self.0.catalogue(addon, &version)?;
        let add = format!("catalogue add {}", file.display());
        self.0.run(&add).await?.done().map(drop)
    }

    /// Writes the file of the set.
    fn write(&self, addons: &[&str]) -> Result<()> {
        let installations = addons.iter().map(|addon| {
            let spec = json!({"addonRef": {"name": addon}});
            installation(addon, spec)
        });
        let text = set(&installations.collect::<Vec<_>>());
        self.0.write("set.yaml", &text).map(drop)
    }

    async fn apply(&self, flags: &str) -> Result<Output> {
        self.0
            .run(&format!("apply -f set.yaml --yes {flags}"))
            .await
    }

    /// Exactly these are installed, with their objects.
    async fn has(&self, expected: &[&str], gone: &[&str]) -> Result<()> {
        for (names, is_there) in [(expected, true), (gone, false)] {
            for name in names {
                let record = self.0.has("addoninstallation", name).await?;
                let object = self.0.has("configmap", name).await?;
                ensure!(record == is_there && object == is_there, "{name}");
            }
        }
        Ok(())
    }
}

fn says(said: &Output, words: &[&str]) -> Result<()> {
    for word in words {
        let is_said = said.stderr.contains(word) || said.stdout.contains(word);
        ensure!(
            is_said,
            "{word:?} is not in\n{}{}",
            said.stderr,
            said.stdout
        );
    }
    Ok(())
}

/// What an add-on requires is looked for in the whole cluster, which other tests use: these two are of this test alone.
#[tokio::test]
async fn what_left_the_file_is_uninstalled() -> Result<()> {
    let team = Team::new("set-prune", &["a", "pump", "hand"]).await?;
    team.offer("well", &config_map("well", "1"), json!([{"name": "pump"}]))
        .await?;
    let member = "--set-name team --prune";
    team.0.run("install hand --yes").await?.done()?;
    team.write(&["well", "a", "pump"])?;
    // Members from now on, and what they hold stays as it is.
    team.apply("").await?.done()?;
    let marked = team.apply(member).await?.done()?;
    says(&marked, &["a 1.0.0 upgraded", "well 1.0.0 upgraded"])?;
    let label = |record: Value| record["metadata"]["labels"]["kubectl-addons.dev/set"].clone();
    ensure!(label(team.0.record("a").await?) == "team");
    ensure!(label(team.0.record("hand").await?).is_null());
    let again = team.apply(member).await?.done()?;
    ensure!(
        again.stderr.matches("nothing to do").count() == 3,
        "{}",
        again.stderr
    );

    // Most of a set is not uninstalled by accident, a requirement of what stays never is.
    team.write(&["a"])?;
    let refused = team.apply(member).await?.ended(4)?;
    says(
        &refused,
        &[
            "2 of the 3 installations of set team",
            "pump, well",
            "--allow-prune 100%",
        ],
    )?;
    team.write(&["a", "well"])?;
    let refused = team.apply(member).await?.ended(1)?;
    says(&refused, &["well requires pump"])?;
    team.write(&["a", "pump"])?;
    team.apply("").await?.done()?;
    team.apply("--set-name team").await?.done()?;
    team.has(&["a", "pump", "well", "hand"], &[]).await?;

    // What the comparison and the plan show is what the plan file does.
    for flag in ["-f", "--filename"] {
        let differs = team
            .0
            .run(&format!("diff {flag} set.yaml {member}"))
            .await?;
        says(&differs.ended(1)?, &["ConfigMap well", "1 pruned"])?;
    }
    let line = format!("plan -f set.yaml {member} -o plan.json");
    let planned = team.0.run(&line).await?.done()?;
    says(&planned, &["uninstalling well 1.0.0"])?;
    let same = team.0.run("diff -f set.yaml").await?.done()?;
    ensure!(!same.stdout.contains("ConfigMap well"), "{}", same.stdout);
    let applied = team.0.run("apply plan.json --yes").await?.done()?;
    says(&applied, &["well 1.0.0 uninstalled: 1 deleted"])?;
    team.has(&["a", "pump", "hand"], &["well"]).await?;
    team.0.run("apply plan.json --yes").await?.ended(4)?;

    // Half of it may go, together with what is installed instead.
    team.write(&["hand", "a"])?;
    let applied = team.apply(member).await?.done()?;
    says(&applied, &["hand 1.0.0 upgraded", "pump 1.0.0 uninstalled"])?;
    team.has(&["a", "hand"], &["pump", "well"]).await
}

#[tokio::test]
async fn what_is_not_of_the_set_stays() -> Result<()> {
    let team = Team::new("set-stays", &["a", "b", "k"]).await?;
    team.write(&["a", "b"])?;
    let mut text = std::fs::read_to_string(team.0.plugin.home().join("set.yaml"))?;
    let core = json!({"addonRef": {"name": "k", "version": "1.0.0"}, "coreAddon": true});
    text.push_str(&set(&[installation("k", core)]));
    team.0.write("set.yaml", &text)?;
    team.apply(&format!("--set-name team {CORE}"))
        .await?
        .done()?;

    team.write(&["a"])?;
    let other = team.apply("--set-name other --prune").await?.ended(4)?;
    says(
        &other,
        &[
            "a is a member of set team, and this is set other",
            "kubectl label addoninstallation a",
        ],
    )?;
    team.0.write("set.yaml", "")?;
    let empty = team
        .apply("--set-name team --prune --allow-prune 100%")
        .await?
        .ended(1)?;
    says(&empty, &["0 installations"])?;
    team.has(&["a", "b", "k"], &[]).await?;
    for flags in ["--prune", "--set-name -x"] {
        team.apply(flags).await?.ended(2)?;
    }
    for (line, words) in [
        ("plan --set-name team", "add -f SET"),
        ("plan -f set.yaml --set a=b", "write these into the file"),
        (
            "upgrade a -f set.yaml --yes",
            "kubectl addons apply -f set.yaml",
        ),
    ] {
        team.write(&["a"])?;
        says(&team.0.run(line).await?.ended(2)?, &[words])?;
    }

    team.write(&["a"])?;
    let applied = team.apply("--set-name team --prune").await?.done()?;
    says(
        &applied,
        &["k is a core add-on and stays", "b 1.0.0 uninstalled"],
    )?;
    team.has(&["a", "k"], &["b"]).await?;

    let shown = team.0.run("uninstall --all --dry-run").await?.done()?;
    says(&shown, &["uninstalling a", "k is a core add-on and stays"])?;
    team.0.run("uninstall --all --yes").await?.done()?;
    team.has(&["k"], &["a"]).await?;
    let nothing = team.0.run("uninstall --all --yes").await?.done()?;
    says(&nothing, &["nothing to uninstall"])
}

/// Whoever suspends an installation is not overruled by a file that says nothing of it; it is still a member.
#[tokio::test]
async fn what_is_suspended_stays_and_the_rest_is_applied() -> Result<()> {
    let team = Team::new("set-suspended", &["a", "b", "c"]).await?;
    let member = "--set-name team --prune";
    team.write(&["a", "b", "c"])?;
    team.apply(member).await?.done()?;
    let suspended = |suspend: bool| json!({"spec": {"suspend": suspend}});
    team.0
        .patch("addoninstallation", "a", &suspended(true))
        .await?;
    let before = team.0.record("a").await?;
    for addon in ["a", "b", "c"] {
        team.offer(addon, &config_map(addon, "2"), json!([]))
            .await?;
    }
    let key = async |name: &str| {
        let object = team.0.must("configmap", name).await?;
        Ok::<_, anyhow::Error>(object["data"]["key"].clone())
    };
    // What is gone is uninstalled all the same.
    team.write(&["a", "b"])?;
    let applied = team.apply(member).await?.done()?;
    let namespace = &team.0.namespace;
    let fix = format!("fix:    kubectl patch addoninstallation a -n {namespace}");
    says(&applied, &["a is suspended", &fix, "c 1.0.0 uninstalled"])?;
    let after = team.0.record("a").await?;
    ensure!(before == after, "{before:#}\n{after:#}");
    ensure!(key("a").await? == "1" && key("b").await? == "2");
    team.has(&["a", "b"], &["c"]).await?;

    team.0
        .patch("addoninstallation", "a", &suspended(false))
        .await?;
    team.apply(member).await?.done()?;
    ensure!(key("a").await? == "2");
    Ok(())
}

/// A file may say it itself: then it is applied once more, and stays as it is from then on.
#[tokio::test]
async fn what_the_file_suspends_is_applied_once() -> Result<()> {
    let team = Team::new("set-declared", &["a", "b"]).await?;
    let member = "--set-name team --prune";
    team.write(&["a", "b"])?;
    team.apply(member).await?.done()?;
    let a = installation("a", json!({"addonRef": {"name": "a"}, "suspend": true}));
    let b = installation("b", json!({"addonRef": {"name": "b"}}));
    team.0.write("set.yaml", &set(&[a, b]))?;
    team.apply(member).await?.done()?;
    let before = team.0.record("a").await?;
    ensure!(before["spec"]["suspend"] == true, "{before:#}");
    for line in [
        format!("apply -f set.yaml --yes {member}"),
        format!("diff -f set.yaml {member}"),
        format!("plan -f set.yaml --exit-code {member}"),
    ] {
        let said = team.0.run(&line).await?.done()?;
        says(&said, &["a is suspended"])?;
    }
    let after = team.0.record("a").await?;
    ensure!(before == after, "{before:#}\n{after:#}");
    team.has(&["a", "b"], &[]).await
}

/// An add-on takes the place of another one: the object that both have is neither refused nor deleted.
#[tokio::test]
async fn an_object_moves_from_what_left_to_what_came() -> Result<()> {
    let team = Team::new("set-moves", &[]).await?;
    let old = [config_map("shared", "1"), config_map("old", "1")].concat();
    team.offer("old", &old, json!([])).await?;
    let new = [config_map("shared", "2"), config_map("new", "1")].concat();
    team.offer("new", &new, json!([])).await?;
    team.write(&["old"])?;
    team.apply("--set-name team").await?.done()?;
    let before = team.0.must("configmap", "shared").await?;

    team.write(&["new"])?;
    team.apply("--set-name team --prune").await?.ended(4)?;
    team.apply("--set-name team --prune --allow-prune 100%")
        .await?
        .done()?;
    let after = team.0.must("configmap", "shared").await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"]);
    ensure!(after["data"]["key"] == "2", "{after}");
    team.has(&["new"], &["old"]).await
}

/// What moves stays recorded where it is until its new owner has it: a lock keeps that one from beginning.
#[tokio::test]
async fn an_object_moves_only_to_what_can_take_it() -> Result<()> {
    let team = Team::new("set-held", &["giver", "taker"]).await?;
    let stage = &team.0;
    let shared = config_map("shared", "1");
    let both = [config_map("giver", "1"), shared.clone()].concat();
    team.offer("giver", &both, json!([])).await?;
    team.write(&["giver", "taker"])?;
    team.apply("").await?.done()?;
    let before = stage.must("configmap", "shared").await?;
    team.offer("giver", &config_map("giver", "2"), json!([]))
        .await?;
    let both = [config_map("taker", "2"), shared].concat();
    team.offer("taker", &both, json!([])).await?;

    let is_of = async |owner: &str| {
        for name in ["giver", "taker"] {
            let record = stage.must("addoninstallation", name).await?;
            let inventory = record["status"]["inventory"].to_string();
            let has_it = inventory.contains("shared");
            ensure!(has_it == (name == owner), "{record:#}");
        }
        Ok(())
    };
    stage.lock("taker", "jane@laptop (test)", 0).await?;
    let failed = team.apply("--no-wait-lock").await?.ended(4)?;
    says(&failed, &["taker, which takes it over, could not begin"])?;
    is_of("giver").await?;
    team.apply("--steal-lock").await?.done()?;
    let after = stage.must("configmap", "shared").await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"]);
    ensure!(after["metadata"]["labels"] != before["metadata"]["labels"]);
    is_of("taker").await
}

/// What left the file may still be needed while what it has cannot be installed.
#[tokio::test]
async fn a_failure_keeps_what_left_the_file() -> Result<()> {
    let team = Team::new("set-fails", &["a", "b"]).await?;
    let port =
        "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 70000}]}\n";
    let bad = [config_map("bad", "1"), port.to_owned()].join("---\n");
    team.offer("bad", &bad, json!([])).await?;
    team.write(&["a", "b"])?;
    team.apply("--set-name team").await?.done()?;
    team.write(&["a", "bad"])?;
    // What is known before stops everything.
    let refused = team.apply("--set-name team --prune").await?.ended(1)?;
    says(&refused, &["nothing was changed"])?;
    team.has(&["a", "b"], &["bad"]).await?;
    team.offer("late", &config_map("late", "1"), json!([]))
        .await?;
    team.write(&["a", "late"])?;
    deny(&team.0, When::Executed, &["CREATE"], "late", "not today").await?;
    let failed = team.apply("--set-name team --prune").await?.ended(6)?;
    says(&failed, &["late is not installed completely"])?;
    team.has(&["a", "b"], &[]).await
}
