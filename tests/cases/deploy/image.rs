//! The image of the webhook: the last stage of the Dockerfile, built where there is a builder.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use addons_tests::binaries;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::world::BASE;

const DOCKERFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/Dockerfile");
const BUILDER: &str = "buildah";
const IMAGE: &str = "addons-webhook:test";

/// A builder with a store of its own.
struct Builder<'a> {
    folder: &'a Path,
}

impl Builder<'_> {
    /// What it prints.
    fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(BUILDER);
        command
            .arg("--root")
            .arg(self.folder.join("store"))
            .arg("--runroot")
            .arg(self.folder.join("run"))
            .args(["--storage-driver", "vfs"])
            .args(args)
            .current_dir(self.folder);
        let output = command.output().context(BUILDER)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{BUILDER} {args:?}: {said}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// What the last stage makes of the program: its user and command are those of the Deployment, and there is nothing beside it. The
/// stage before it compiles the program in an image from the internet, so this program is one that was built here.
#[test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: each starts a cluster with the deployed webhook"
)]
fn the_image_is_what_the_deployment_runs() -> Result<()> {
    let mut tally = Tally::new("deploy::image");
    tally.left_out("the stage that compiles: its image is fetched from the internet");
    if Command::new(BUILDER).arg("version").output().is_err() {
        tally.left_out("the last stage: there is no buildah, a package of Debian");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    if fs::metadata(folder.path())?.uid() != 0 {
        tally.left_out("the last stage: only root mounts an image");
        return Ok(());
    }
    let stage = folder.path().join("stage");
    fs::create_dir_all(&stage)?;
    let program = binaries::webhook()?;
    fs::copy(&program, stage.join("addons-webhook"))?;

    let builder = Builder {
        folder: folder.path(),
    };
    let context = format!("build={}", stage.display());
    let context = ["--build-context", context.as_str()];
    let build = ["build", "--isolation", "chroot", "--file", DOCKERFILE];
    builder.run(&[&build[..], &context, &["--tag", IMAGE, "."]].concat())?;
    let text = builder.run(&["inspect", "--type", "image", IMAGE])?;
    let inspected: Value = serde_json::from_str(&text)?;
    let config = &inspected["OCIv1"]["config"];
    ensure!(
        config["Entrypoint"] == json!(["/addons-webhook"]),
        "{config}"
    );
    ensure!(config.get("Cmd").is_none(), "{config}");
    let ports = json!({"8080/tcp": {}, "8443/tcp": {}});
    ensure!(config["ExposedPorts"] == ports, "{config}");

    let deployment = fs::read_to_string(Path::new(BASE).join("deployment.yaml"))?;
    let user = config["User"].as_str().context("no user")?;
    let (user, group) = user.split_once(':').context("no group")?;
    for (field, id) in [("runAsUser", user), ("runAsGroup", group)] {
        ensure!(
            deployment.contains(&format!("{field}: {id}\n")),
            "{field} {id}"
        );
    }

    let container = builder.run(&["from", IMAGE])?;
    let root = builder.run(&["mount", &container])?;
    let mut found = Vec::new();
    for entry in fs::read_dir(&root)? {
        found.push(entry?.file_name());
    }
    // What runs it makes its own folders.
    found.retain(|name| {
        !["dev", "etc", "proc", "run", "sys"].contains(&name.to_string_lossy().as_ref())
    });
    ensure!(found == ["addons-webhook"], "{found:?}");
    let copied = fs::read(Path::new(&root).join("addons-webhook"))?;
    ensure!(copied == fs::read(&program)?, "it is another program");
    tally.ran();
    Ok(())
}
