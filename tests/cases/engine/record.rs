//! The record is written whole: lock, journal and inventory in one PUT (semantics 13).

use addons_tests::small;
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};

#[tokio::test]
async fn the_status_is_never_patched() -> Result<()> {
    let stage = Stage::new("record").await?;
    let namespace = stage.namespace.clone();
    let first = small::index(&stage, "1.0.0", &small::first())?;
    let second = small::index(&stage, "2.0.0", &small::second())?;
    for line in [
        format!("install small --channel {first} --yes"),
        format!("upgrade small -n {namespace} --channel {second} --yes"),
        format!("uninstall small -n {namespace} --yes"),
    ] {
        let mark = stage.cluster.audit().mark()?;
        stage.run(&line).await?.done()?;
        let requests = stage.requests(mark)?;
        let mut verbs: Vec<(&str, &str)> = requests
            .of("kubectl-addons")
            .filter(|request| request.is_write() && request.object.resource == "addoninstallations")
            .map(|request| (request.verb.as_str(), request.object.subresource.as_str()))
            .collect();
        // Beginning, end, and in between renewals where the machine is slow.
        verbs.dedup();
        let put = ("update", "status");
        let wanted = match line.split(' ').next() {
            Some("install") => vec![("create", ""), put],
            Some("upgrade") => vec![("update", ""), put],
            // The first one is a dry run, as its body says: admission is asked before the first write.
            _ => vec![("delete", ""), put, ("delete", "")],
        };
        ensure!(verbs == wanted, "{line}: {verbs:?}");
    }
    Ok(())
}
