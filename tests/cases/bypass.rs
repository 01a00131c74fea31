//! Ways around the guards of core add-ons, as raw requests to a real API server: each is tried while the webhook answers, and which
//! layer closes it is asserted and printed (semantics 8, 14, 18).

mod claims;
mod table;
mod world;

use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use self::table::{By, Route};
use self::world::World;

/// One cluster for all of them: nothing that is tried here is executed, for every request is a dry run.
#[tokio::test]
async fn no_route_leads_around_the_guards() -> Result<()> {
    let mut tally = Tally::new("bypass::routes");
    let world = World::new().await?;
    let routes = table::routes()?;
    let mut up = Vec::new();
    for route in &routes {
        up.push(world.attempt(route).await?);
        tally.ran();
    }
    tally.note(table::print(&routes, &up));
    let pairs = routes.iter().zip(&up);
    let wrong: Vec<String> = pairs
        .filter_map(|(route, by)| wrong(route, by, &route.up))
        .collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What a route met, where that is not what closes it.
fn wrong(route: &Route, found: &By, expected: &By) -> Option<String> {
    let name = &route.route;
    (found != expected).then(|| format!("{name}: {found} instead of {expected}"))
}
