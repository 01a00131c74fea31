//! `values NAME`: shows the values of an installation, and with `--explain` the layer that each comes from.

use addons_render::text;
use anyhow::Result;
use common::api::catalogue::{FormField, Method};
use common::api::installation::AddonInstallation;
use common::catalogue::Entry;
use common::catalogue::select::Rules;
use common::shorten::shortened;
use common::values::layers::{Explained, Layers, Values};
use common::values::path::Path;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::reading;
use crate::exit::Exit;
use crate::output::table::Table;
use crate::output::{self, Items};
use crate::session::Session;
use crate::words::form as words;
use addons_helm;
use addons_operation::installed;
use addons_operation::values_from;
use addons_operation::{Records, name_of};
use addons_operation::{Resolved, fetch};

/// The longest value in a column, in characters.
const MAX_WIDTH: usize = 60;

/// Shows the values of an installation, except those from Secrets. If a layer cannot be read, shows the others, and the exit code is 1.
///
/// The installation does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &reading::Values) -> Result<Exit> {
    let known = Records::read(session.ctx()).await?;
    let record = known.find(&args.name, session.global().namespace.as_deref())?;
    let Read {
        layers,
        form,
        unread,
    } = read(session, record).await?;
    let explained = layers.explain();
    let explained: Vec<Leaf<'_>> = explained
        .iter()
        .map(|leaf| Leaf::new(leaf, &form))
        .collect();
    match args.output.format {
        Format::Name => {
            let lines = explained
                .iter()
                .map(|leaf| format!("{}\n", leaf.value.path));
            output::data(&lines.collect::<String>());
        }
        Format::Json | Format::Yaml | Format::Template(_) if args.explain => {
            output::value(&Items { items: &explained }, args.output)?;
        }
        Format::Table | Format::Wide if args.explain => {
            output::data(&table(&explained, args.output.format).listed(args.output))
        }
        Format::Json | Format::Template(_) => {
            output::value(&layers.masked(), args.output)?;
        }
        Format::Table | Format::Wide | Format::Yaml => {
            output::value(&layers.masked(), Format::Yaml)?;
        }
    }
    for error in &unread {
        output::failure(error);
    }
    Ok(if unread.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// The values of an installation, as far as they could be read.
struct Read {
    layers: Layers,
    form: Vec<FormField>,
    /// The errors of the layers that are missing.
    unread: Vec<anyhow::Error>,
}

/// A value, and the form field with its path.
#[derive(Serialize)]
struct Leaf<'a> {
    #[serde(flatten)]
    value: &'a Explained,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'a FormField>,
}

impl<'a> Leaf<'a> {
    fn new(value: &'a Explained, form: &'a [FormField]) -> Self {
        let mut form = form.iter();
        let is_there = |field: &&FormField| {
            Path::parse(&field.internal_name).is_ok_and(|path| path == value.path)
        };
        Self {
            value,
            form: form.find(is_there),
        }
    }
}

async fn read(session: &Session, record: &AddonInstallation) -> Result<Read> {
    let mut unread = Vec::new();
    let mut form = Vec::new();
    let mut layers = match installed::entry(session.ctx(), record).await {
        Ok(entry) => {
            let mut layers = Layers::of(&entry, record);
            form.clone_from(&entry.version.template.form_spec);
            match package(session, record, &entry).await {
                Ok(values) => layers.package = values,
                Err(error) => unread.push(error.context("the package's own values are left out")),
            }
            layers
        }
        Err(error) => {
            unread.push(
                anyhow::Error::from(error)
                    .context("the values of package, catalogue and form are left out"),
            );
            let stored = record.spec.values.clone().unwrap_or_default();
            Layers {
                spec: Values::new("spec.values", stored),
                ..Layers::default()
            }
        }
    };
    match values_from::read(session.ctx(), record).await {
        Ok(found) => layers.values_from = found.values,
        Err(error) => {
            unread.push(anyhow::Error::from(error).context("the values of Secrets are left out"))
        }
    }
    Ok(Read {
        layers,
        form,
        unread,
    })
}

/// Reads the default values in the package of an entry.
async fn package(session: &Session, record: &AddonInstallation, entry: &Entry) -> Result<Values> {
    let method = entry.version.template.method;
    if method == Method::Manifest {
        return Ok(Values::default());
    }
    let resolved = Resolved::new(
        name_of(record),
        Some(record.clone()),
        entry.clone(),
        Rules::Auto,
    );
    let package = fetch::package(session.ctx(), &resolved)
        .await?
        .fetched
        .package;
    match method {
        Method::Helm => Ok(Values::new(
            "values.yaml of the chart",
            addons_helm::chart(&package)?.values,
        )),
        _ => Ok(text::package_values(&package)?),
    }
}

/// Renders the table. Wide, it shows what the form accepts at each path.
fn table(explained: &[Leaf<'_>], format: Format) -> Table {
    let mut titles = vec!["PATH", "VALUE", "LAYER", "FROM", "OVERRIDES"];
    if format == Format::Wide {
        titles.push("FORM");
    }
    let mut table = Table::new(&titles);
    for Leaf { value: leaf, form } in explained {
        let value = match &leaf.value {
            Some(value) => shortened(value.to_string(), MAX_WIDTH),
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
        if format == Format::Wide {
            cells.push(form.map(words::takes).unwrap_or_default());
        }
        table.row(cells);
    }
    table
}
