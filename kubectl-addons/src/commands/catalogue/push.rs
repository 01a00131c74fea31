//! `catalogue push`

use std::sync::Arc;

use addons_engine::Cluster;
use addons_engine::catalogues::Written;
use addons_operation::OperationError;
use addons_operation::distribution::push::{self, Pushed};
use addons_operation::distribution::targets::{self, Target};
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use serde::Serialize;

use crate::cli::reading::CataloguePush;
use crate::cli::{Format, Global};
use crate::exit::Exit;
use crate::output::{self, Items};
use crate::session::Session;
use crate::settings;
use crate::words::distribution;

/// The result for a cluster.
#[derive(Debug, Serialize)]
struct Row {
    target: String,
    catalogues: Vec<Copy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A pushed catalogue.
#[derive(Debug, Serialize)]
struct Copy {
    name: String,
    result: Written,
}

/// Pushes the catalogues of this cluster, merged into one for each class, to other clusters. One cluster's failure does not stop the
/// others. Returns the worst exit code.
///
/// # Errors
/// The catalogues cannot be merged or do not fit into an object, no cluster is selected, or the server cannot be reached.
pub async fn run(session: &Session, args: &CataloguePush) -> Result<Exit> {
    let copies = push::merge(session.ctx()).await?;
    let mut all = Vec::new();
    for context in &args.to_context {
        let cluster = of_context(session.global(), context).await?;
        let (name, cluster) = (context.clone(), Ok(Arc::new(cluster)));
        all.push(Target { name, cluster });
    }
    if let Some(selector) = &args.clusters {
        all.extend(targets::selected(session.ctx(), selector).await?);
    }
    let mut worst = Exit::Done;
    let mut rows = Vec::new();
    for (target, result) in push::push_all(all, &copies).await {
        let (row, exit) = reported(target, result, &copies);
        worst = worst.max(exit);
        rows.push(row);
    }
    match args.output.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, args.output.format)?
        }
        Format::Name => output::names("cluster", rows.iter().map(|row| row.target.as_str())),
        Format::Table | Format::Wide => {}
    }
    Ok(worst)
}

/// Connects to the cluster of a context, with the other flags as they were typed.
async fn of_context(global: &Global, context: &str) -> Result<Cluster> {
    let global = Global {
        context: Some(context.to_owned()),
        ..global.clone()
    };
    let config = settings::config(&global).await?;
    Ok(Cluster::new(config, settings::cluster_options(&global)).await?)
}

/// Reports the result for one cluster.
fn reported(
    target: String,
    result: Result<Vec<Pushed>, OperationError>,
    copies: &[AddonCatalogue],
) -> (Row, Exit) {
    let (pushed, failed) = match result {
        Ok(pushed) => (pushed, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    for one in &pushed {
        let mut copies = copies.iter();
        let counts = copies.find(|copy| super::name(copy) == one.name);
        let counts = counts.map(|copy| format!(": {}", super::counts(copy)));
        let counts = counts.unwrap_or_default();
        output::note(&format!("{}{counts}", distribution::pushed(&target, one)));
    }
    let mut exit = Exit::Done;
    let problem = failed.map(|error| {
        let error = anyhow::Error::from(error.at(target.clone()));
        exit = output::failure(&error);
        output::chain(error.as_ref())
    });
    let catalogues = pushed.into_iter().map(|one| Copy {
        name: one.name,
        result: one.written,
    });
    let row = Row {
        catalogues: catalogues.collect(),
        target,
        problem,
    };
    (row, exit)
}
