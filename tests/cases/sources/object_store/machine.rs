//! What the user of this machine has in the environment and in the profile of the AWS tools.

use std::process::{Command, Output};

use addons_tests::binaries;
use addons_tests::servers::s3;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use super::INDEX;

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";

/// The settings of a process are its environment, so a process of its own is asked.
#[test]
fn what_the_machine_knows() -> Result<()> {
    let mut tally = Tally::new("object_store::what_the_machine_knows");
    let server = s3::Server::start(true)?;
    server.put("releases", "a/index.yaml", INDEX.as_bytes())?;
    server.put("releases", "a/sub/web.yaml", MANIFEST.as_bytes())?;
    let open = s3::Server::start(false)?;
    open.put("releases", "a/index.yaml", INDEX.as_bytes())?;
    open.put("releases", "a/sub/web.yaml", MANIFEST.as_bytes())?;
    let show = |variables: &[(&str, &str)], profile: Option<&str>| -> Result<Output> {
        let home = tempfile::tempdir()?;
        if let Some(profile) = profile {
            std::fs::create_dir(home.path().join(".aws"))?;
            std::fs::write(home.path().join(".aws/credentials"), profile)?;
        }
        Ok(Command::new(binaries::plugin()?)
            .args([
                "show",
                "web",
                "--k8s",
                "1.36",
                "--channel",
                "s3://releases/a/index.yaml",
            ])
            .env_clear()
            .env("HOME", home.path())
            .env("AWS_ALLOW_HTTP", "true")
            .envs(variables.iter().copied())
            .output()?)
    };
    let endpoint = server.endpoint();
    let pair = format!(
        "aws_access_key_id = {}\naws_secret_access_key = {}\n",
        s3::KEY.0,
        s3::KEY.1
    );
    let (default, ci) = (format!("[default]\n{pair}"), format!("[ci]\n{pair}"));
    let keys = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", s3::KEY.0),
        ("AWS_SECRET_ACCESS_KEY", s3::KEY.1),
    ];
    let only = [("AWS_ENDPOINT_URL", &*endpoint)];
    let named = [("AWS_ENDPOINT_URL", &*endpoint), ("AWS_PROFILE", "ci")];
    let anonymous = open.endpoint();
    let anonymous = [("AWS_ENDPOINT_URL", &*anonymous)];
    for (variables, profile, words) in [
        (&keys[..], None, "1: ConfigMap"),
        (&only[..], Some(&*default), "1: ConfigMap"),
        (&named[..], Some(&*ci), "1: ConfigMap"),
        (&anonymous[..], None, "1: ConfigMap"),
        (&only[..], None, "403 Forbidden without credentials"),
        (&named[..], None, "AWS_PROFILE is ci, and neither"),
    ] {
        let output = show(variables, profile)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        ensure!(
            text.contains(words) && !text.contains(s3::KEY.1),
            "{variables:?}: {text}"
        );
        tally.ran();
    }
    Ok(())
}
