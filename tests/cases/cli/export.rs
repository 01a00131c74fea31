//! Archives of what fits: what does not is named.

use anyhow::{Result, ensure};

use super::User;

#[test]
fn what_does_not_fit_is_named_and_an_empty_archive_is_not_written() -> Result<()> {
    let user = User::new()?;
    let archive = user.home.path().join("site.tar");
    let export = |version: &str| {
        user.run(&format!(
            "kubectl-addons export --all --channel misfits.yaml --k8s {version} -o {}",
            archive.display()
        ))
    };
    let left_out =
        |version: &str| format!("left out: web: k8sVersion >=1.99.0 does not match {version}");
    let (code, _, stderr) = export("1.28.0")?;
    ensure!(
        code == 5 && stderr.contains(&left_out("1.28.0")),
        "{code} {stderr}"
    );
    ensure!(
        stderr.contains("left out: limits: ") && stderr.contains("nothing to export"),
        "{stderr}"
    );
    ensure!(!stderr.contains("dns"), "{stderr}");
    ensure!(!archive.exists(), "an empty archive");

    let (code, _, stderr) = export("1.36.3")?;
    ensure!(
        code == 0 && stderr.contains(&left_out("1.36.3")),
        "{code} {stderr}"
    );
    ensure!(stderr.matches("left out: ").count() == 1, "{stderr}");
    ensure!(archive.exists(), "no archive");
    Ok(())
}
