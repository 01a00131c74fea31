//! The layers of the workspace, as cargo sees them.

mod modules;

use std::process::Command;

use anyhow::{Result, ensure};

/// What a package is built from, its own name first.
fn tree(arguments: &[&str]) -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{lib}", "--package"])
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    Ok(text
        .lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .collect())
}

#[test]
fn the_core_has_no_runtime_and_no_network() -> Result<()> {
    let core = tree(&["common"])?;
    assert!(core.iter().any(|name| name == "serde_json"), "{core:?}");
    for name in [
        "tokio",
        "hyper",
        "rustls",
        "reqwest",
        "mio",
        "kube_client",
        "actix_web",
    ] {
        assert!(
            !core.iter().any(|found| found == name),
            "common depends on {name}"
        );
    }
    let engine = tree(&["addons-engine"])?;
    assert!(
        engine.iter().any(|name| name == "tokio"),
        "the names above are spelled as cargo spells them"
    );
    Ok(())
}

#[test]
fn the_webhook_builds_without_the_engine() -> Result<()> {
    let webhook = tree(&["webhook"])?;
    for name in ["common", "certs"] {
        assert!(webhook.iter().any(|found| found == name), "{webhook:?}");
    }
    for name in ["addons_engine", "addons_sources", "addons_helm"] {
        assert!(
            !webhook.iter().any(|found| found == name),
            "webhook depends on {name}"
        );
    }
    Ok(())
}

#[test]
fn one_tls_provider() -> Result<()> {
    for package in ["kubectl-addons", "webhook"] {
        let names = tree(&[package])?;
        for name in ["ring", "openssl", "native_tls"] {
            assert!(
                !names.iter().any(|found| found == name),
                "{package} depends on {name}"
            );
        }
    }
    Ok(())
}
