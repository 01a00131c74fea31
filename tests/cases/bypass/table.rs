//! A route, what closes it, and the table of all of them.

use std::fmt;

use serde_json::Value;

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// `system:masters`, but not of the core group.
    Admin,
    /// May write namespaces, and change but not create installations.
    Tenant,
    /// Of the core group.
    Core,
    /// Of the group that may break the glass.
    Glass,
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Body {
    /// `DELETE`.
    Delete,
    /// `POST` of an object.
    Create(Value),
    /// `PATCH` with a merge patch.
    Merge(Value),
    /// `PUT` of the object at this path, merged with this.
    Replace(String, Value),
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who sends it.
    pub who: Who,
    /// Where.
    pub path: String,
    /// What.
    pub body: Body,
}

/// Which layer answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// A denial of the webhook.
    Webhook,
    /// The schema or a CEL rule of it.
    Schema,
    /// Nothing: it is allowed.
    Nothing,
    /// Something else.
    Other(String),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Webhook => "webhook",
            Self::Schema => "schema",
            Self::Nothing => "allowed",
            Self::Other(message) => message,
        })
    }
}

/// A way around a guard, or one that must stay open.
#[derive(Clone, Debug)]
pub struct Route {
    /// What is tried.
    pub name: &'static str,
    /// The request.
    pub request: Request,
    /// What answers while the webhook runs.
    pub answered: By,
}

/// The table, as lines.
pub fn print(routes: &[Route], found: &[By]) -> String {
    let width = routes.iter().map(|route| route.name.len()).max();
    let width = width.unwrap_or_default();
    let rows = routes.iter().zip(found).map(|(route, by)| {
        let who = format!("{:?}", route.request.who).to_lowercase();
        format!("{:width$}  {who:7}  {by}", route.name)
    });
    rows.collect::<Vec<_>>().join("\n  ")
}
