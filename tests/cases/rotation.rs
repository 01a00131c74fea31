//! Certificates that are exchanged every few seconds, and their authority with them, while reviews come in without a pause.

use std::time::Duration;

use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use crate::deploy::load::Load;
use crate::deploy::world::World;

/// More than the API server keeps open while they are idle (25), so that new connections are made all the time.
const CALLERS: usize = 32;
/// Reviews by default; `REVIEWS` asks for more.
const REVIEWS: usize = 4_000;
/// Seconds that a certificate is valid by default; `LEAF_SECONDS` asks for less. A third of it is what a busy machine may stand still.
const LEAF: u32 = 10;
/// Times that each must be exchanged at least, by both replicas together.
const LEAVES: usize = 16;
const AUTHORITIES: usize = 3;

#[tokio::test]
async fn no_review_fails_while_certificates_and_authorities_change() -> Result<()> {
    let mut tally = Tally::new("rotation");
    let leaf = match std::env::var("LEAF_SECONDS") {
        Ok(text) => text.parse()?,
        Err(_) => LEAF,
    };
    let leaf_lifetime = format!("--leaf-lifetime={leaf}s");
    let ca_lifetime = format!("--ca-lifetime={}s", 3 * leaf);
    let world = World::with(&[&leaf_lifetime, &ca_lifetime]).await?;
    let wanted = reviews()?;
    let load = Load::start(&world, CALLERS).await?;
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let (leaves, authorities) = loop {
        tick.tick().await;
        load.dial(&world).await?;
        let logs = world.kubelet.logs();
        let leaves = logs.matches("serving a new certificate").count();
        let authorities = logs.matches(r#""step":"Promote""#).count();
        if load.reviews() >= wanted && leaves >= LEAVES && authorities >= AUTHORITIES {
            break (leaves, authorities);
        }
        ensure!(load.is_going_on(), "every caller has ended");
    };
    let reviews = load.stop(&world).await?;
    tally.ran();
    tally.note(format!(
        "{reviews} reviews, none failed; {leaves} certificates, {authorities} authorities exchanged"
    ));
    Ok(())
}

/// How many reviews to wait for.
pub(crate) fn reviews() -> Result<usize> {
    match std::env::var("REVIEWS") {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(REVIEWS),
    }
}
