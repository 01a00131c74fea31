//! Checks that the caller has the rights that a plan needs, before the first write: a part of the admission checks is worse than none.

use std::collections::BTreeSet;

use addons_engine::inspect;
use addons_plan::{Action, Step};
use common::right::Right;

use crate::context::Context;
use crate::error::{MissingRights, OperationError};
use crate::plan::Plan;

/// Asks the server for the rights on every object of a plan.
///
/// # Errors
/// [`MissingRights`]; the errors of the requests.
pub async fn check(ctx: &Context, plan: &Plan) -> Result<(), OperationError> {
    let steps = plan
        .installations
        .iter()
        .flat_map(|planned| &planned.plan.steps);
    let rights: BTreeSet<Right> = steps.flat_map(required_rights).collect();
    let rights: Vec<Right> = rights.into_iter().collect();
    let mut lacking = inspect::missing_rights(ctx.home().await?, &rights)
        .await?
        .into_iter();
    match lacking.next() {
        Some(first) => Err(MissingRights {
            first,
            more: lacking.count(),
        }
        .into()),
        None => Ok(()),
    }
}

/// Returns the rights that a step needs. An apply is a patch, which may have to create the object.
fn required_rights(step: &Step) -> Vec<Right> {
    let of = |verb| Right {
        verb,
        group: step.target.key.group.clone(),
        resource: step.target.plural.clone(),
        namespace: step.target.key.namespace.clone(),
        name: step.target.key.name.clone(),
    };
    match step.action {
        Action::Create => vec![of("create"), of("patch")],
        _ => vec![of("patch")],
    }
}
