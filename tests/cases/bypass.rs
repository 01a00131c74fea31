//! Ways around the guards of core add-ons, as raw requests to a real API server: each is tried while the webhook answers, and which
//! layer closes it is asserted and printed (semantics 8, 14, 18).

mod routes;
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
    let mut found = Vec::new();
    let routes = routes::all(&world);
    for route in &routes {
        found.push(world.attempt(&route.request).await?);
        tally.ran();
    }
    tally.note(table::print(&routes, &found));
    let pairs = routes.iter().zip(&found);
    let wrong: Vec<String> = pairs.filter_map(|(route, by)| wrong(route, by)).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What a route met, where that is not what closes it.
fn wrong(route: &Route, found: &By) -> Option<String> {
    let Route { name, answered, .. } = route;
    (found != answered).then(|| format!("{name}: {found} instead of {answered}"))
}
