//! Catalogues in a cluster: `init`, `catalogue …`, `search`, and completion as kubectl asks for it.

use std::path::PathBuf;

use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::plugin::{Output, Plugin};
use anyhow::{Result, ensure};
use serde_json::Value;

/// A user with a system namespace of their own.
struct User {
    plugin: Plugin,
    system: String,
}

impl User {
    async fn new() -> Result<Self> {
        let plugin = Plugin::admin(&*ControlPlane::shared().await?)?;
        Ok(Self {
            plugin,
            system: unique("system"),
        })
    }

    async fn run(&self, line: &str) -> Result<Output> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.extend(["--system-namespace", &self.system]);
        self.plugin.run(&words).await
    }

    fn write(&self, file: &str, name: &str, addon: &str, versions: &[&str]) -> Result<PathBuf> {
        let mut text = format!(
            "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: {name}}}\nspec:\n  addons:\n  - name: {addon}\n    versions:\n"
        );
        for version in versions {
            text.push_str(&format!(
                "    - {{version: {version}, source: {{url: {{manifest: {addon}.yaml}}}}}}\n"
            ));
        }
        let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {addon}}}\n");
        std::fs::write(self.plugin.home().join(format!("{addon}.yaml")), manifest)?;
        let path = self.plugin.home().join(file);
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

#[tokio::test]
async fn from_the_first_to_the_last() -> Result<()> {
    let user = User::new().await?;
    let said = user.run("init").await?.done()?;
    ensure!(
        said.stdout.is_empty() && said.stderr.contains("nothing is enforced yet"),
        "{}",
        said.stderr
    );
    let again = user.run("init").await?.done()?;
    ensure!(
        again.stderr.matches(" unchanged").count() == 3,
        "{}",
        again.stderr
    );

    let said = user.run("catalogue list").await?.done()?;
    ensure!(
        said.stdout.is_empty() && said.stderr.contains("no catalogues"),
        "{}",
        said.stderr
    );

    added_and_replaced(&user).await?;

    // semantics 2: v1 = 1.0.0, across source catalogues; our own verdict, in the webhook's words.
    let second = user.write("second.yaml", "second", "web", &["v1"])?;
    let said = user
        .run(&format!("catalogue add {}", second.display()))
        .await?
        .ended(6)?;
    ensure!(
        said.stderr
            .contains("web v1 is already in catalogue first at spec.addons[0].versions[0] (1.0.0)"),
        "{}",
        said.stderr
    );

    let said = user.run("search -o json").await?.done()?;
    let found: Value = serde_json::from_str(&said.stdout)?;
    ensure!(
        found.pointer("/items/0/version") == Some(&Value::from("1.2.0")),
        "{}",
        said.stdout
    );
    ensure!(found.pointer("/items/1").is_none(), "{}", said.stdout);

    shown_is_what_is_stored(&user).await?;

    let said = user.run("catalogue remove frist").await?.ended(1)?;
    ensure!(
        said.stderr.contains("no catalogue named frist"),
        "{}",
        said.stderr
    );
    let said = user.run("catalogue remove first").await?.done()?;
    ensure!(
        said.stderr.trim() == "catalogue first removed",
        "{}",
        said.stderr
    );
    let said = user.run("show web").await?.ended(1)?;
    ensure!(
        said.stderr
            .contains("no add-on named web; there is no catalogue yet"),
        "{}",
        said.stderr
    );
    Ok(())
}

/// A catalogue is added, added again, and replaced by one with more versions.
async fn added_and_replaced(user: &User) -> Result<()> {
    let first = user.write("first.yaml", "first", "web", &["1.0.0", "1.1.0"])?;
    let add = format!("catalogue add {}", first.display());
    for words in [
        "catalogue first added: 1 add-on, 2 versions",
        "catalogue first is as it was",
    ] {
        let said = user.run(&add).await?.done()?;
        ensure!(said.stderr.trim() == words, "{}", said.stderr);
    }
    user.write("first.yaml", "first", "web", &["1.0.0", "1.1.0", "1.2.0"])?;
    let said = user.run(&add).await?.done()?;
    ensure!(
        said.stderr.trim() == "catalogue first replaced: 1 add-on, 3 versions",
        "{}",
        said.stderr
    );
    Ok(())
}

/// What is shown can be added again.
async fn shown_is_what_is_stored(user: &User) -> Result<()> {
    let said = user.run("catalogue show first -o yaml").await?.done()?;
    // What lies on the disk of one user is nothing that a cluster can refer to (semantics 16).
    ensure!(
        said.stdout.contains("inline:") && !said.stdout.contains("file:"),
        "{}",
        said.stdout
    );
    std::fs::write(user.plugin.home().join("shown.yaml"), &said.stdout)?;
    let said = user.run("catalogue add shown.yaml").await?.done()?;
    ensure!(
        said.stderr.trim() == "catalogue first is as it was",
        "{}",
        said.stderr
    );
    Ok(())
}

#[tokio::test]
async fn kubectl_asks_for_candidates() -> Result<()> {
    let user = User::new().await?;
    let file = user.write("catalogue.yaml", "candidates", "web", &["1.0.0"])?;
    user.run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    for (words, candidate) in [
        (["catalogue", "show", ""], "candidates"),
        (["show", "w", ""], ""),
        (["show", "--core", "web@"], "web@1.0.0"),
        (["search", "--rules", "a"], "auto"),
    ] {
        let system = format!("--system-namespace={}", user.system);
        let mut args = vec!["__complete", "addons", system.as_str()];
        args.extend(words);
        let said = user.plugin.kubectl(&args).await?.done()?;
        ensure!(said.stdout.contains(":4"), "{}", said.stdout);
        ensure!(said.stdout.contains(candidate), "{}", said.stdout);
    }
    let said = user.plugin.kubectl(&["addons", "version"]).await?.done()?;
    ensure!(
        said.stdout.contains("Server Version: v1."),
        "{}",
        said.stdout
    );
    Ok(())
}

/// The version of KKP is an annotation of the system namespace: without it everything fits, and nothing that is not a version
/// counts as one (semantics 3).
#[tokio::test]
async fn an_entry_fits_the_version_of_kkp_that_the_namespace_names() -> Result<()> {
    let user = User::new().await?;
    user.run("init").await?.done()?;
    let path = user.plugin.home().join("kkp.yaml");
    let name = unique("managed");
    let manifest = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed"}}"#;
    std::fs::write(
        &path,
        format!(
            "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: {name}}}\nspec:\n  addons:\n  \
             - name: {name}\n    versions:\n    - {{version: 1.0.0, source: {{inline: {{manifest: '{manifest}'}}}}, \
             constraints: {{kkpVersion: \">=2.30\"}}}}\n"
        ),
    )?;
    user.run(&format!("catalogue add {}", path.display()))
        .await?
        .done()?;
    let install = format!("install {name} --dry-run=server --yes");
    user.run(&install).await?.done()?;

    let annotate = async |version: &str| {
        let annotation = format!("kubectl-addons.dev/kkp-version={version}");
        let words = [
            "annotate",
            "--overwrite",
            "namespace",
            &user.system,
            &annotation,
        ];
        user.plugin.kubectl(&words).await?.done()
    };
    for (version, exit, says) in [
        ("2.28.3", 5, ">=2.30 does not match 2.28.3"),
        ("newest", 1, "kkp-version=newest of namespace"),
    ] {
        annotate(version).await?;
        let said = user.run(&install).await?.ended(exit)?;
        ensure!(said.stderr.contains(says), "{version}: {}", said.stderr);
    }
    // What was typed wins over the annotation.
    let said = user.run(&format!("show {name} --kkp 2.31")).await?.done()?;
    ensure!(said.stdout.contains("KKP 2.31.0"), "{}", said.stdout);

    // A newer KKP changes nothing of what is installed.
    annotate("2.30.0").await?;
    user.run(&format!("install {name} --yes")).await?.done()?;
    annotate("2.31.0").await?;
    user.run(&format!("diff {name}")).await?.done()?;
    let said = user.run(&format!("upgrade {name} --yes")).await?.done()?;
    ensure!(said.stderr.contains("nothing to do"), "{}", said.stderr);
    Ok(())
}

/// What fits another cluster: the one that a namespace stands for, and not the one of the catalogues.
#[tokio::test]
async fn what_is_available_for_a_cluster_is_what_fits_it() -> Result<()> {
    let user = User::new().await?;
    user.run("init").await?.done()?;
    let path = user.plugin.home().join("ranges.yaml");
    let proxy = unique("proxy");
    let mut text = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: {proxy}}}\nspec:\n  class: Core\n  \
         addons:\n  - name: {proxy}\n    support: Core\n    versions:\n"
    );
    for (version, range) in [
        ("1.0.0", "<2.30"),
        ("2.0.0", ">=2.30 <2.31"),
        ("3.0.0", ">=2.31"),
    ] {
        text.push_str(&format!(
            "    - {{version: {version}, source: {{inline: {{manifest: \"\"}}}}, constraints: {{kkpVersion: \"{range}\"}}}}\n"
        ));
    }
    std::fs::write(&path, text)?;
    let core = [
        "--as=core",
        "--as-group=system:masters",
        "--as-group=kubectl-addons:core",
    ]
    .join(" ");
    user.run(&format!("catalogue add {} {core}", path.display()))
        .await?
        .done()?;

    let shop = unique("shop");
    let secret = format!(
        "--from-file=kubeconfig={}",
        user.plugin.kubeconfig().display()
    );
    let label = "kubectl-addons.dev/kubeconfig-secret=shop";
    let annotation = "kubectl-addons.dev/kkp-version=2.30.4";
    for words in [
        vec!["create", "namespace", &shop],
        vec!["create", "secret", "generic", "shop", "-n", &shop, &secret],
        vec!["label", "namespace", &shop, label],
        vec!["annotate", "namespace", &shop, annotation],
    ] {
        user.plugin.kubectl(&words).await?.done()?;
    }
    let list = format!("list --core --catalogue {proxy} -o json --for-cluster");
    let said = user.run(&format!("{list} {shop}")).await?.done()?;
    let found: Value = serde_json::from_str(&said.stdout)?;
    let versions = found["items"].as_array().map(Vec::as_slice);
    let [one] = versions.unwrap_or_default() else {
        anyhow::bail!("exactly one fits: {found}");
    };
    ensure!(one["version"] == "2.0.0", "{one}");

    let nowhere = unique("nowhere");
    user.plugin
        .kubectl(&["create", "namespace", &nowhere])
        .await?
        .done()?;
    let said = user.run(&format!("{list} {nowhere}")).await?.ended(2)?;
    ensure!(
        said.stderr.contains("does not stand for a cluster"),
        "{}",
        said.stderr
    );
    Ok(())
}
