//! Ways around the guards of core add-ons, as raw requests to a real API server: each is tried while the webhook answers, and
//! while nothing answers but the policies are there. Which layer closes it is asserted and printed (semantics 8, 14, 18).

mod claims;
mod table;
mod through;
mod world;

use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

pub(crate) use self::table::By;
use self::table::Route;
use self::world::World;
pub(crate) use self::world::by;

/// One cluster for all of them: nothing that is tried here is executed, for every request is a dry run.
#[tokio::test]
async fn no_route_leads_around_the_guards() -> Result<()> {
    let mut tally = Tally::new("bypass::routes");
    let mut world = World::new().await?;
    let routes = table::routes()?;
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for route in &routes {
        up.push(world.attempt(route).await?);
        tally.ran();
    }
    world.close().await?;
    for route in &routes {
        down.push(world.attempt(route).await?);
        tally.ran();
    }
    tally.note(table::print(&routes, &up, &down)?);
    let up = routes.iter().zip(&up);
    let up = up.filter_map(|(route, by)| wrong(route, by, &route.up));
    let down = routes.iter().zip(&down);
    let down = down.filter_map(|(route, by)| wrong(route, by, &route.down));
    let wrong: Vec<String> = up.chain(down).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn every_guard_of_the_trust_model_has_its_proof() -> Result<()> {
    let unproven = table::unproven(&table::routes()?);
    ensure!(unproven.is_empty(), "{}", unproven.join("\n"));
    Ok(())
}

/// What a route met, where that is not what closes it.
fn wrong(route: &Route, found: &By, expected: &By) -> Option<String> {
    let name = &route.route;
    (found != expected).then(|| format!("{name}: {found} instead of {expected}"))
}
