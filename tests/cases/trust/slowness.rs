//! A cluster where every write takes long: an operation keeps its lock, and each run gets further than the last.

use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::{config_map, recorded};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::Value;

/// Two rounds of the requests that are in flight at once.
const OBJECTS: usize = 64;
const AT_ONCE: usize = 32;
/// What a write takes where a webhook that is ignored does not answer: almost as long as a lock lasts without renewal.
const SLOW: Duration = Duration::from_secs(14);

/// How many recorded objects are known to exist.
fn applied(record: &Value) -> usize {
    let known =
        recorded(record).filter(|object| object["uid"].is_string() && object["digest"].is_string());
    known.count()
}

/// trust 9.
#[tokio::test]
async fn t09_slow_writes_do_not_starve_the_lock_and_each_run_gets_further() -> Result<()> {
    let rig = Rig::new("slowly").await?;
    let stage = &rig.stage;
    let maps: Vec<String> = (0..OBJECTS)
        .map(|number| config_map(&format!("map-{number:03}"), "1"))
        .collect();
    let index = stage.index("index.yaml", &[("set", "1.0.0", &maps.concat())])?;
    stage.run("init").await?.done()?;
    let slow = Fault::always(Action::Delay(SLOW));
    let slow = slow.method("PATCH").path("/configmaps/");
    rig.proxy.fault(slow.writes());

    // Killed in the middle: the record says what was done.
    let line = format!("install set --channel {index} --yes");
    let words: Vec<&str> = line.split(' ').collect();
    let mut process = rig.through.start(&words)?;
    let done = until("the record knows what was applied", async || {
        let record = stage.get("addoninstallation", "set").await?;
        let record = record.unwrap_or_default();
        let done = applied(&record);
        let said = std::fs::read_to_string(rig.through.home().join("stderr"))?;
        ensure!(process.try_wait()?.is_none(), "it has ended: {said}");
        Ok(if done >= AT_ONCE {
            Ok(done)
        } else {
            Err(format!("{done} objects: {said}"))
        })
    })
    .await?;
    process.kill()?;

    let mark = stage.cluster.audit().mark()?;
    rig.run(&format!("{line} --steal-lock")).await?.done()?;
    let requests = stage.requests(mark)?;
    let sent = requests
        .of("kubectl-addons")
        .filter(|request| request.is_write() && request.object.resource == "configmaps");
    let sent = sent.count();
    ensure!(
        sent + done <= OBJECTS,
        "{sent} sent, {done} were done before"
    );
    let record = stage.record("set").await?;
    ensure!(record["status"]["phase"] == "Ready", "{record}");
    ensure!(applied(&record) == OBJECTS, "{} applied", applied(&record));
    Ok(())
}
