//! Servers whose certificate no one here trusts, and servers without TLS.

use std::fs;

use addons_tests::control_plane::pki::Authority;
use addons_tests::servers::http::{Answer, Server};
use anyhow::{Result, ensure};
use serde_json::json;

use super::User;

const INDEX: &str =
    "kind: Addons\nspec:\n  addons:\n  - {name: web, version: 1.0.0, manifest: web.yaml}\n";

#[tokio::test]
async fn an_authority_is_trusted_by_its_file() -> Result<()> {
    let user = User::new()?;
    let authority = Authority::new("ours")?;
    let pair = authority.serving("web", &["127.0.0.1"])?;
    let server = Server::start(Some(&pair), |_| Answer::ok(INDEX))?;
    let line = format!(
        "kubectl-addons search --channel {} --k8s 1.36",
        server.url("/index.yaml")
    );
    let (code, _, stderr) = user.run(&line)?;
    ensure!(
        code == 1 && stderr.contains("set SSL_CERT_FILE to a file with its certificate"),
        "{code} {stderr}"
    );
    let file = user.home.path().join("authority.pem");
    fs::write(&file, &authority.certificate)?;
    let trusting = format!("SSL_CERT_FILE={} {line}", file.display());
    let (code, stdout, stderr) = user.run(&trusting)?;
    ensure!(code == 0 && stdout.contains("web"), "{code} {stderr}");

    // An authority would not help.
    let pair = authority.serving("web", &["web.example.test"])?;
    let other = Server::start(Some(&pair), |_| Answer::ok(INDEX))?;
    let line = format!(
        "SSL_CERT_FILE={} kubectl-addons search --channel {} --k8s 1.36",
        file.display(),
        other.url("/index.yaml")
    );
    let (code, _, stderr) = user.run(&line)?;
    ensure!(
        code == 1 && stderr.contains("the certificate of the server is not valid: "),
        "{code} {stderr}"
    );
    ensure!(!stderr.contains("SSL_CERT_FILE"), "{stderr}");
    Ok(())
}

#[tokio::test]
async fn a_registry_without_tls_is_named_as_that() -> Result<()> {
    let user = User::new()?;
    let server = Server::start(None, |_| Answer::status(404))?;
    let image = format!("{}/web:1.0.0", server.host());
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "c"},
        "spec": {"addons": [
            {"name": "web", "versions": [{"version": "1.0.0", "source": {"docker": {"image": image}}}]},
        ]},
    });
    let file = user.home.path().join("catalogue.json");
    fs::write(&file, catalogue.to_string())?;
    let line = format!(
        "kubectl-addons render web --channel {} --k8s 1.36",
        file.display()
    );
    let (code, _, stderr) = user.run(&line)?;
    ensure!(
        code == 1 && stderr.contains("the server does not speak TLS\n"),
        "{code} {stderr}"
    );
    ensure!(
        stderr.contains("fix:    set plainHTTP: true in the source"),
        "{stderr}"
    );

    // By its name alone, a registry of this machine is read over HTTP, and no other.
    let other = server.host().replace("127.0.0.1", "0.0.0.0");
    let line = format!("kubectl-addons search --channel oci://{other}/web:1.0.0 --k8s 1.36");
    let (code, _, stderr) = user.run(&line)?;
    ensure!(
        code == 1 && stderr.contains("the server does not speak TLS\n"),
        "{code} {stderr}"
    );
    ensure!(
        stderr.contains("only a registry on this machine") && !stderr.contains("plainHTTP"),
        "{stderr}"
    );
    Ok(())
}
