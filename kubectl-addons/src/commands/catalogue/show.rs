//! `catalogue show NAME` and `catalogue view`: prints entries, and whole catalogues as YAML and JSON.

use addons_admission::AdmissionFacts;
use addons_admission::rules::catalogue::lost_to_others;
use addons_operation::Offer;
use addons_operation::catalogue::find_named;
use anyhow::Result;
use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use common::catalogue::{Catalogue, CatalogueEntry};

use super::objects;
use crate::cli::OutputFormat;
use crate::cli::reading::{CatalogueShowArgs, CatalogueViewArgs};
use crate::commands::chosen;
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::{self, hint};

/// The resource as `kubectl get -o name` writes it.
pub const KIND: &str = "addoncatalogue.kubectl-addons.dev";

/// Shows a catalogue: its entries, or the object itself so that it can be added again. The exit code is 1 if other catalogues hold some of
/// its entries.
///
/// # Errors
/// The catalogue does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &CatalogueShowArgs) -> Result<Exit> {
    let object = find_named(session.ctx().catalogues().await?, &args.name)?;
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&strip_server_fields(object), args.output)?,
        OutputFormat::Name => {
            output::print_names(KIND, std::iter::once(objects::catalogue_name(object)))
        }
        OutputFormat::Table | OutputFormat::Wide => {
            let offer = Offer::Catalogue(args.name.clone());
            let catalogue = session.ctx().catalogue(&offer).await?;
            output::print_painted(&table(&catalogue, false).render_listing(args.output));
            return report_lost_entries(session, Some(&args.name)).await;
        }
    }
    Ok(Exit::Done)
}

/// Shows the entries of all catalogues. Those of class Core only with `--core`. The exit code is 1 if several catalogues hold the same
/// entries.
///
/// # Errors
/// The server cannot be reached, or refuses the request.
pub async fn view(session: &Session, args: &CatalogueViewArgs) -> Result<Exit> {
    let catalogue = session.ctx().catalogue(&Offer::Catalogues).await?;
    let mut catalogue = Catalogue::clone(&catalogue);
    let is_shown = |class| args.core || class != CatalogueClass::Core;
    catalogue.entries.retain(|entry| is_shown(entry.class));
    catalogue.unread.retain(|unread| is_shown(unread.class));
    chosen::warn_of_unread(&catalogue);
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(
            &ItemList {
                items: &catalogue.entries,
            },
            args.output,
        )?,
        OutputFormat::Name => output::print_names("addon", catalogue.names().into_iter()),
        OutputFormat::Table | OutputFormat::Wide if catalogue.entries.is_empty() => {
            let add = hint::indent_lines(&hint::fix_line("kubectl addons catalogue add FILE"));
            output::note(&format!("no entries{add}"));
        }
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_painted(&table(&catalogue, true).render_listing(args.output))
        }
    }
    let lost = report_lost_entries(session, None).await?;
    Ok(match catalogue.unread.is_empty() {
        true => lost,
        false => Exit::Failed,
    })
}

/// Reports the entries that other catalogues hold. Two catalogues that are created at once are not checked against each other (semantics
/// 2.4), and one by reference is checked by its names alone. `of` limits the report to one catalogue.
async fn report_lost_entries(session: &Session, of: Option<&str>) -> Result<Exit> {
    let mut facts = AdmissionFacts::default();
    facts.settings.system_namespace = session.global().system_namespace.clone();
    let objects = session.ctx().contents().await?.objects;
    for object in objects {
        facts.replace_catalogue(object.clone());
    }
    let mut exit = Exit::Done;
    let is_meant =
        |object: &&AddonCatalogue| of.is_none_or(|of| of == objects::catalogue_name(object));
    for object in objects.iter().filter(is_meant) {
        let name = objects::catalogue_name(object);
        for problem in lost_to_others(object, &facts) {
            output::note(&format!("error: catalogue {name}: {problem}"));
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Removes the fields that only the server writes.
fn strip_server_fields(object: &AddonCatalogue) -> AddonCatalogue {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    object.metadata.uid = None;
    object.metadata.generation = None;
    object.status = None;
    object
}

fn table(catalogue: &Catalogue, origins: bool) -> Table {
    let mut header = vec!["NAME", "VERSION", "ID", "SUPPORT", "NEEDS"];
    if origins {
        header.push("CATALOGUE");
    }
    let mut table = Table::new(&header);
    let mut entries: Vec<&CatalogueEntry> = catalogue.entries.iter().collect();
    // The sort is stable: versions stay in the order of the catalogue.
    entries.sort_by(|a, b| a.addon.cmp(&b.addon));
    for entry in entries {
        let mut cells = vec![
            entry.addon.clone(),
            entry.version.version.clone(),
            entry.version.id.clone(),
            entry
                .support
                .map(|support| format!("{support:?}"))
                .unwrap_or_default(),
            describe_needs(entry),
        ];
        if origins {
            cells.push(words::short_origin(&entry.origin));
        }
        table.add_row(cells);
    }
    table
}

/// `Kubernetes >=1.30.0, KKP >=2.25, provider == 'aws'`
fn describe_needs(entry: &CatalogueEntry) -> String {
    let constraints = &entry.version.constraints;
    let kubernetes = constraints
        .kubernetes_version
        .as_ref()
        .or(constraints.k8s_version.as_ref());
    let parts = [
        ("Kubernetes", kubernetes),
        ("KKP", constraints.kkp_version.as_ref()),
    ];
    let words = parts
        .iter()
        .filter_map(|(what, range)| Some(format!("{what} {}", (*range)?)));
    let words = words.chain(constraints.expression.clone());
    words.collect::<Vec<_>>().join(", ")
}
