//! The routes.

mod namespaces;
mod records;

use super::table::{Body, By, Request, Route, Who};
use super::world::World;

/// All of them.
pub fn all(_world: &World) -> Vec<Route> {
    let mut routes = records::routes();
    routes.extend(namespaces::routes());
    routes
}

/// One that the webhook closes.
fn closed(name: &'static str, who: Who, path: String, body: Body) -> Route {
    Route {
        name,
        request: Request { who, path, body },
        answered: By::Webhook,
    }
}

/// One that must stay open.
fn open(name: &'static str, who: Who, path: String, body: Body) -> Route {
    Route {
        answered: By::Nothing,
        ..closed(name, who, path, body)
    }
}
