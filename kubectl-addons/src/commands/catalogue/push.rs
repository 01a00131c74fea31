//! `catalogue push`

use std::sync::Arc;

use addons_distribution::DistributionError;
use addons_distribution::push::{self, PushedCopy};
use addons_distribution::targets::{self, PushTarget};
use addons_engine::Cluster;
use addons_engine::catalogues::CatalogueWrite;
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use serde::Serialize;

use super::objects;
use crate::cli::reading::CataloguePushArgs;
use crate::cli::{GlobalArgs, OutputFormat};
use crate::exit::Exit;
use crate::output::{self, ItemList};
use crate::session::Session;
use crate::{failure, settings, words};

/// The result for a cluster.
#[derive(Debug, Serialize)]
struct PushRow {
    target: String,
    catalogues: Vec<PushedCatalogue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A pushed catalogue.
#[derive(Debug, Serialize)]
struct PushedCatalogue {
    name: String,
    result: CatalogueWrite,
}

/// Pushes the catalogues of this cluster, merged into one for each class, to other clusters. One cluster's failure does not stop the
/// others. Returns the worst exit code.
///
/// # Errors
/// The catalogues cannot be merged or do not fit into an object, no cluster is selected, or the server cannot be reached.
pub async fn run(session: &Session, args: &CataloguePushArgs) -> Result<Exit> {
    let copies = push::merge(session.ctx()).await?;
    let mut all = Vec::new();
    for context in &args.to_context {
        let cluster = connect_context(session.global(), context).await?;
        let (name, cluster) = (context.clone(), Ok(Arc::new(cluster)));
        all.push(PushTarget { name, cluster });
    }
    if let Some(selector) = &args.clusters {
        all.extend(targets::select_targets(session.ctx(), selector).await?);
    }
    let mut worst = Exit::Done;
    let mut rows = Vec::new();
    for (target, result) in push::push_all(all, &copies).await {
        let (row, exit) = report_push(target, result, &copies);
        worst = worst.max(exit);
        rows.push(row);
    }
    match args.output.format {
        OutputFormat::Value(_) => {
            output::print_value(&ItemList { items: &rows }, args.output.format)?
        }
        OutputFormat::Name => {
            output::print_names("cluster", rows.iter().map(|row| row.target.as_str()))
        }
        OutputFormat::Table | OutputFormat::Wide => {}
    }
    Ok(worst)
}

/// Connects to the cluster of a context, with the other flags as they were typed.
async fn connect_context(global: &GlobalArgs, context: &str) -> Result<Cluster> {
    let global = GlobalArgs {
        context: Some(context.to_owned()),
        ..global.clone()
    };
    let config = settings::client_config(&global).await?;
    Ok(Cluster::new(config, settings::cluster_options(&global)).await?)
}

/// Reports the result for one cluster.
fn report_push(
    target: String,
    result: Result<Vec<PushedCopy>, DistributionError>,
    copies: &[AddonCatalogue],
) -> (PushRow, Exit) {
    let (pushed, failed) = match result {
        Ok(pushed) => (pushed, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    for one in &pushed {
        let mut copies = copies.iter();
        let counts = copies.find(|copy| objects::catalogue_name(copy) == one.name);
        let counts = counts.map(|copy| format!(": {}", objects::count_content(copy)));
        let counts = counts.unwrap_or_default();
        output::note(&format!("{}{counts}", words::describe_pushed(&target, one)));
    }
    let mut exit = Exit::Done;
    let problem = failed.map(|error| {
        let error = anyhow::Error::from(error.in_cluster(target.clone()));
        exit = failure::report_failure(&error);
        output::describe_chain(error.as_ref())
    });
    let catalogues = pushed.into_iter().map(|one| PushedCatalogue {
        name: one.name,
        result: one.written,
    });
    let row = PushRow {
        catalogues: catalogues.collect(),
        target,
        problem,
    };
    (row, exit)
}
