//! A catalogue with so much inline content that its artifact is larger than a manifest may be.

use addons_tests::stage::sha256;

use super::*;

/// Add-ons of the catalogue.
const ADDONS: usize = 8;
/// Lines of 64 hex digits in each add-on: together more than 2 MiB, even if compressed.
const LINES: usize = 10_000;

/// The artifact of the catalogue holds it twice: as the catalogue of the site, and as it was.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: a large archive")]
async fn a_catalogue_with_much_inline_content_is_imported() -> Result<()> {
    let stage = stage("airgap-large").await?;
    let mut addons = Vec::new();
    let mut names = Vec::new();
    for number in 0..ADDONS {
        let name = format!("a{number}");
        let lines = (0..LINES).map(|line| sha256(&format!("{number} {line}")));
        let lines: Vec<String> = lines.map(|line| format!("    {line}\n")).collect();
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  a: |\n{}",
            lines.concat()
        );
        addons.push(json!({"name": name, "versions": [{
            "version": "1.0.0", "defaultNamespace": stage.namespace, "source": {"inline": {"manifest": manifest}},
        }]}));
        names.push(name);
    }
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "big"},
        "spec": {"addons": addons},
    });
    let big = stage.write("big.yaml", &catalogue.to_string())?;
    let archive = stage.plugin.home().join("site.tar");
    let export = format!(
        "export --all --channel {} --k8s 1.36.3 -o {}",
        big.display(),
        archive.display()
    );
    stage.run(&export).await?.done()?;
    let size = fs::metadata(&archive)?.len();
    ensure!(size > 4 << 20, "{size} bytes would be read as a manifest");
    let site = Site::start().await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let install = stage.run(&import).await?.done()?.stdout;
    let wanted = format!("install {} --registry ", names.join(" "));
    ensure!(install.contains(&wanted), "{install}");
    // What was imported can be read from the registry.
    let (_, flags) = install.trim().split_once(" --").context("no flags")?;
    let show = stage.run(&format!("show a0 --{flags}")).await?.done()?;
    ensure!(show.stdout.contains("a0"), "{}", show.stdout);
    Ok(())
}
