//! `catalogue validate LOCATION…`, without a cluster.

use anyhow::Result;
use common::admission::{Facts, Requester, validate};
use common::api::names;

use crate::cli::reading::CatalogueValidate;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use addons_operation::distribution::md5;
use addons_sources::location;

/// Reads and judges every location as `catalogue add` and the webhook would, each also against those before it. All problems
/// are printed, and the exit code is 1 where there is one.
///
/// # Errors
/// None: a location that cannot be read is a problem like others.
pub async fn run(session: &Session, args: &CatalogueValidate) -> Result<Exit> {
    let mut worst = Exit::Done;
    let mut facts = Facts::default();
    // Whether the user may write core catalogues is for the cluster to say.
    let requester = Requester {
        groups: vec![names::CORE_GROUP.to_owned()],
        ..Requester::default()
    };
    for location in &args.locations {
        let found = match location::read(location, &session.ctx().access()).await {
            Ok(found) => found,
            Err(error) => {
                worst = worst.max(output::failure(&error.into()));
                continue;
            }
        };
        for mut one in found {
            let md5 = md5::take_out(session.rules(), &mut one);
            one.warnings.extend(md5);
            let mut object = one.object;
            object.metadata.namespace = Some(facts.settings.system_namespace.clone());
            let verdict = validate::catalogue(&object, None, &requester, &facts);
            for warning in one.warnings.iter().chain(&verdict.warnings) {
                output::note(&format!("warning: {location}: {warning}"));
            }
            for problem in &verdict.problems {
                output::note(&format!("error: {location}: {problem}"));
            }
            if verdict.problems.is_empty() {
                output::note(&format!(
                    "{location}: no problems in {}",
                    super::counts(&object)
                ));
            } else {
                worst = worst.max(Exit::Failed);
            }
            super::replace(&mut facts, object);
        }
    }
    Ok(worst)
}
