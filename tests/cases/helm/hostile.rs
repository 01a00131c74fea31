//! Programs and charts that do not end, print too much, or are no helm.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use addons_helm::template::template;
use addons_helm::{BinaryError, Helm, HelmError};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

use super::rig::{Rig, folder, request};

#[tokio::test]
async fn what_does_not_end_is_stopped_with_all_that_it_started() -> Result<()> {
    let rig = Rig::new().await?;
    let values = json!({});
    let mut request = request(&values);
    request.timeout = Duration::from_millis(500);
    let pid = rig.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; sleep 1000", pid.display());
    let fake = rig.script(&script)?;
    let began = Instant::now();
    let error = template(&fake, &folder("web", &[]), &request).await;
    ensure!(
        matches!(error, Err(HelmError::TimedOut { .. })),
        "{error:?}"
    );
    ensure!(began.elapsed() < Duration::from_secs(20));
    let child = std::fs::read_to_string(pid)?;
    let status = format!("/proc/{}/status", child.trim());
    until("the child of helm is gone", async || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let is_gone = status.is_empty() || status.contains("State:\tZ");
        Ok(if is_gone { Ok(()) } else { Err(status) })
    })
    .await
}

#[tokio::test]
async fn what_prints_without_end_is_stopped() -> Result<()> {
    let mut tally = Tally::new("helm::hostile");
    let rig = Rig::new().await?;
    let values = json!({});
    // A chart that renders 80 MB.
    let bomb = "{{ range until 80 }}# {{ repeat 1000000 \"x\" }}\n{{ end }}";
    let chart = folder("web", &[("templates/a.yaml", &format!("a: 1\n{bomb}"))]);
    for (helm, chart) in [
        (rig.script("yes")?, folder("web", &[])),
        (rig.helm.clone(), chart),
    ] {
        let error = template(&helm, &chart, &request(&values)).await;
        let is_stopped = matches!(error, Err(HelmError::TooMuch { .. }));
        ensure!(is_stopped, "{:?}", error.map(|text| text.len()));
        tally.ran();
    }
    // Words without end are cut, and do not hold it up.
    let loud = rig.script("yes 'Error: no' | head -c 10000000 >&2; exit 1")?;
    let error = template(&loud, &folder("web", &[]), &request(&values)).await;
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(
        error.starts_with("helm template: no") && error.len() < 5000,
        "{}",
        error.len()
    );
    tally.ran();
    let quiet = rig.script("exit 3")?;
    let error = template(&quiet, &folder("web", &[]), &request(&values)).await;
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(error.contains("exit status: 3 and said nothing"), "{error}");
    tally.ran();
    let binary = rig.script("printf '\\377\\376'")?;
    let error = template(&binary, &folder("web", &[]), &request(&values)).await;
    ensure!(matches!(error, Err(HelmError::Answer { .. })), "{error:?}");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn helm_is_found_or_missed() -> Result<()> {
    let mut tally = Tally::new("helm::binary");
    let rig = Rig::new().await?;
    ensure!(rig.helm.version == "v4.3.1", "{:?}", rig.helm);
    let folder = rig.helm.program.parent().unwrap_or(rig.path());
    let found = Helm::find(None, Some(folder.as_os_str())).await?;
    ensure!(found == rig.helm, "{found:?}");
    tally.ran();
    for (text, words) in [
        (
            "echo v3.13.9",
            "is helm v3.13.9; charts need 3.14 or later, or 4",
        ),
        ("echo v2.17.0+ga690bad", "is helm v2.17.0+ga690bad"),
        ("echo something else", "does not print its version"),
        ("exit 1", "does not print its version"),
    ] {
        let fake = rig.script(text)?;
        let error = Helm::find(Some(&fake.program), None).await;
        let error = error
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        ensure!(error.contains(words), "{error}");
        tally.ran();
    }
    for text in ["echo v3.14.0", "echo v3.19.2+g1234", "echo v4.0.0"] {
        Helm::find(Some(&rig.script(text)?.program), None).await?;
        tally.ran();
    }
    let missing = Helm::find(None, Some(OsStr::new("/nowhere:relative"))).await;
    ensure!(matches!(missing, Err(BinaryError::Missing)), "{missing:?}");
    let missing = Helm::find(Some(&rig.path().join("nothing")), None).await;
    ensure!(
        matches!(missing, Err(BinaryError::NoFile { .. })),
        "{missing:?}"
    );
    tally.ran();
    Ok(())
}
