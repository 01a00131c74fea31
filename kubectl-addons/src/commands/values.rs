//! `values NAME`: shows the values of an installation, and with `--explain` the layer that each comes from.

use addons_helm;
use addons_operation::render::values_from;
use addons_operation::resolve::origin;
use addons_operation::resolve::rollback::record_at_revision;
use addons_operation::{Offer, Records, Resolved, Resolver, fetch, name_of};
use addons_render::text;
use anyhow::Result;
use common::api::catalogue::{FormField, Method};
use common::api::installation::AddonInstallation;
use common::catalogue::CatalogueEntry;
use common::catalogue::select::SelectionRules;
use common::text::shorten;
use common::values::layers::{ExplainedValue, LayerValues, Layers};
use common::values::path::ValuePath;
use serde::Serialize;

use crate::cli::{OutputFormat, ValueFormat, reading};
use crate::exit::Exit;
use crate::failure;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::form as words;

/// The longest value in a column, in characters.
const MAX_WIDTH: usize = 60;

/// Shows the values of an installation, except those from Secrets. If a layer cannot be read, shows the others, and the exit code is 1.
///
/// # Errors
/// The installation or the revision does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &reading::ValuesArgs) -> Result<Exit> {
    let known = Records::read(session.ctx()).await?;
    let record = known.find(&args.name, session.global().namespace.as_deref())?;
    let ReadValues {
        layers,
        form,
        unread,
    } = read_values(session, record, args).await?;
    let explained = layers.explain();
    let explained: Vec<ValueRow<'_>> = explained
        .iter()
        .map(|leaf| ValueRow::new(leaf, &form))
        .collect();
    match args.output.format {
        OutputFormat::Name => {
            let lines = explained
                .iter()
                .map(|leaf| format!("{}\n", leaf.value.path));
            output::print_text(&lines.collect::<String>());
        }
        OutputFormat::Value(_) if args.explain => {
            output::print_value(&ItemList { items: &explained }, args.output)?;
        }
        OutputFormat::Table | OutputFormat::Wide if args.explain => output::print_painted(
            &table(&explained, args.output.format).render_listing(args.output),
        ),
        OutputFormat::Value(_) => output::print_value(&layers.merge_masked(), args.output)?,
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_value(&layers.merge_masked(), ValueFormat::Yaml)?;
        }
    }
    for error in &unread {
        failure::report_failure(error);
    }
    Ok(if unread.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// The values of an installation, as far as they could be read.
struct ReadValues {
    layers: Layers,
    form: Vec<FormField>,
    /// The errors of the layers that are missing.
    unread: Vec<anyhow::Error>,
}

/// A value, and the form field with its path.
#[derive(Serialize)]
struct ValueRow<'a> {
    #[serde(flatten)]
    value: &'a ExplainedValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'a FormField>,
}

impl<'a> ValueRow<'a> {
    fn new(value: &'a ExplainedValue, form: &'a [FormField]) -> Self {
        let mut form = form.iter();
        let is_there = |field: &&FormField| {
            ValuePath::parse(&field.internal_name).is_ok_and(|path| path == value.path)
        };
        Self {
            value,
            form: form.find(is_there),
        }
    }
}

async fn read_values(
    session: &Session,
    record: &AddonInstallation,
    args: &reading::ValuesArgs,
) -> Result<ReadValues> {
    let at = match args.revision {
        None => None,
        Some(number) => {
            let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
            let revision = resolver.find_revision(record, number).await?;
            Some((resolver, revision))
        }
    };
    let now = record;
    let then = at.as_ref();
    let then = then.map(|(_, revision)| record_at_revision(record, revision));
    let record = then.as_ref().unwrap_or(record);
    let mut unread = Vec::new();
    let mut form = Vec::new();
    let entry = async || match &at {
        Some((resolver, revision)) => resolver.find_revision_entry(now, revision).await,
        None => origin::find_entry(session.ctx(), record).await,
    };
    let entry = match args.user_supplied {
        true => None,
        false => Some(entry().await),
    };
    let mut layers = match entry {
        None => Layers::of_user(record),
        Some(Ok(entry)) => {
            let mut layers = Layers::for_installation(&entry, record);
            form.clone_from(&entry.version.template.form_spec);
            match package_values(session, record, &entry).await {
                _ if entry.version.source.catalogue.is_some() => output::note(
                    "the package's own values are left out: you may not read its catalogue",
                ),
                Ok(values) => layers.package = values,
                Err(error) => unread.push(error.context("the package's own values are left out")),
            }
            layers
        }
        Some(Err(error)) => {
            unread.push(
                anyhow::Error::from(error)
                    .context("the values of package, catalogue and form are left out"),
            );
            let stored = record.spec.values.clone().unwrap_or_default();
            Layers {
                spec: LayerValues::new("spec.values", stored),
                ..Layers::default()
            }
        }
    };
    match values_from::read_secrets(session.ctx(), record).await {
        Ok(found) => layers.values_from = found.values,
        Err(error) => {
            unread.push(anyhow::Error::from(error).context("the values of Secrets are left out"))
        }
    }
    Ok(ReadValues {
        layers,
        form,
        unread,
    })
}

/// Reads the default values in the package of an entry.
async fn package_values(
    session: &Session,
    record: &AddonInstallation,
    entry: &CatalogueEntry,
) -> Result<LayerValues> {
    let method = entry.version.template.method;
    if method == Method::Manifest {
        return Ok(LayerValues::default());
    }
    let resolved = Resolved::new(
        name_of(record),
        Some(record.clone()),
        entry.clone(),
        SelectionRules::Auto,
    );
    let package = fetch::package(session.ctx(), &resolved)
        .await?
        .fetched
        .package;
    match method {
        Method::Helm => Ok(LayerValues::new(
            "values.yaml of the chart",
            addons_helm::read_chart(&package)?.values,
        )),
        _ => Ok(text::package_values(&package)?),
    }
}

/// Renders the table. Wide, it shows what the form accepts at each path.
fn table(explained: &[ValueRow<'_>], format: OutputFormat) -> Table {
    let mut titles = vec!["PATH", "VALUE", "LAYER", "FROM", "OVERRIDES"];
    if format == OutputFormat::Wide {
        titles.push("FORM");
    }
    let mut table = Table::new(&titles);
    for ValueRow { value: leaf, form } in explained {
        let value = match &leaf.value {
            Some(value) => shorten(value.to_string(), MAX_WIDTH),
            None if leaf.deleted => "(deleted)".to_owned(),
            None => leaf.by.note(),
        };
        let overrides: Vec<&str> = leaf.overrides.iter().map(|by| by.layer.name()).collect();
        let mut cells = vec![
            leaf.path.to_string(),
            value,
            leaf.by.layer.name().to_owned(),
            leaf.by.source.clone(),
            overrides.join(", "),
        ];
        if format == OutputFormat::Wide {
            cells.push(form.map(words::describe_accepted).unwrap_or_default());
        }
        table.add_row(cells);
    }
    table
}
