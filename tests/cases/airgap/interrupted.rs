//! Imports that end in the middle, however: the next one sends what is missing.

use std::collections::BTreeSet;
use std::process::Command;

use addons_tests::tally::Tally;

use super::*;

/// How an import ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// SIGKILL.
    Killed,
    /// SIGINT, as Ctrl-C sends it.
    Interrupted,
    /// The registry cannot store it.
    Refused,
}

#[tokio::test]
async fn an_import_that_was_interrupted_goes_on() -> Result<()> {
    let mut tally = Tally::new("airgap::interrupted");
    let stage = stage("airgap-again").await?;
    let upstream = Upstream::start(&stage).await?;
    let archive = exported(&stage, &upstream, "web db").await?;
    let last = upstream.last_layer.replace("sha256:", "");
    let (tag, signature) = upstream.listed.clone();
    let wanted = upstream.stop();
    for (end, part) in [
        (End::Killed, &*last),
        (End::Interrupted, &*last),
        (End::Refused, &*last),
        // Everything below the tag is there.
        (End::Killed, "/team/web/manifests/1.0.0"),
        (End::Refused, "/team/web/manifests/1.0.0"),
    ] {
        let breaks = Arc::new(AtomicBool::new(true));
        let (broken, hit) = (Arc::clone(&breaks), part.to_owned());
        let site = Site::with(Door::Open, move |seen| {
            let is_it = seen.method == "PUT" && seen.path.contains(&hit);
            // It is sent again after a while.
            (is_it && broken.load(Ordering::SeqCst)).then_some(Fault::Status(500))
        })
        .await?;
        let import = format!("import {} --registry {}", archive.display(), site.path());
        let sent = begin(&stage, &site, &import, end, part).await?;
        ensure!(!sent.is_empty(), "{end:?}: nothing was sent before");
        let named = site.registry.manifest("addons/team/web", "1.0.0").await?;
        ensure!(named.is_none(), "{end:?} {part}: half an image has a name");

        breaks.store(false, Ordering::SeqCst);
        stage.run(&import).await?.done()?;
        let again = uploads(&site.front.requests());
        let twice: Vec<_> = again.intersection(&sent).collect();
        ensure!(twice.is_empty(), "{end:?} {part}: sent again: {twice:?}");
        for (repository, name, bytes) in &wanted {
            let repository = format!("addons/{repository}");
            let found = site.registry.manifest(&repository, name).await?;
            ensure!(
                found.as_ref() == Some(bytes),
                "{end:?} {part}: {repository} {name}: {found:?}"
            );
        }
        let list = site.registry.manifest("addons/team/web", &tag).await?;
        let list = String::from_utf8(list.context("no list of signatures")?)?;
        ensure!(list.contains(&signature), "{list}");
        tally.ran();
    }
    Ok(())
}

/// Runs an import to its end; what it has sent by then.
async fn begin(
    stage: &Stage,
    site: &Site,
    import: &str,
    end: End,
    part: &str,
) -> Result<BTreeSet<String>> {
    if end == End::Refused {
        let said = stage.run(import).await?.ended(1)?;
        ensure!(said.stderr.contains("answers 500"), "{}", said.stderr);
        let mut sent = uploads(&site.front.requests());
        sent.retain(|path| !path.contains(part));
        return Ok(sent);
    }
    let args: Vec<&str> = import.split_whitespace().collect();
    let mut process = stage.plugin.start(&args)?;
    let mut seen = Vec::new();
    until("the import is in the middle", async || {
        seen.extend(site.front.requests());
        let mut puts = seen.iter().filter(|one| one.method == "PUT");
        let is_there = puts.any(|one| one.path.contains(part));
        Ok(is_there.then_some(()).ok_or_else(|| format!("{seen:?}")))
    })
    .await?;
    if end == End::Interrupted {
        let id = process.id().to_string();
        let sent = Command::new("kill").args(["-INT", "--", &id]).status()?;
        ensure!(sent.success(), "kill failed");
        let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
        ensure!(ended.code() == Some(130), "{ended:?}");
    } else {
        drop(process);
    }
    seen.extend(site.front.requests());
    let mut sent = uploads(&seen);
    sent.retain(|path| !path.contains(part));
    Ok(sent)
}

/// The blobs that were sent, and the manifests.
fn uploads(seen: &[addons_tests::servers::registry::front::Seen]) -> BTreeSet<String> {
    let sent = seen.iter().filter(|one| one.method == "PUT");
    let named = sent.map(|one| match one.path.split_once("digest=") {
        Some((_, digest)) => digest.to_owned(),
        None => one.path.clone(),
    });
    named.collect()
}
