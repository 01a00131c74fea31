//! `show NAME --patches`: shows which objects the patches of an installation change, and which of their fields. It prints no values of
//! fields, which could be secret.

use addons_operation::render::inputs::Inputs;
use addons_operation::resolve::origin;
use addons_operation::{Records, Resolved, fetch, name_of, render};
use anyhow::Result;
use common::patch::PatchedObject;

use crate::cli::OutputFormat;
use crate::cli::reading::ShowArgs;
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;

/// Renders the installed version, and shows what the patches change in its objects.
///
/// # Errors
/// The installation does not exist, its version cannot be fetched or rendered, or a patch cannot be applied.
pub(super) async fn run(session: &Session, args: &ShowArgs) -> Result<Exit> {
    let ctx = session.ctx();
    let known = Records::read(ctx).await?;
    let record = known.find(&args.addon, session.global().namespace.as_deref())?;
    let name = name_of(record);
    let patched = match record.spec.patches.is_empty() {
        true => {
            output::note(&format!("{name} has no patches"));
            Vec::new()
        }
        false => {
            let entry = origin::find_entry(ctx, record).await?;
            let resolved = Resolved::new(name, Some(record.clone()), entry, session.rules());
            let inputs = Inputs::read(ctx, &resolved).await?;
            let verified = fetch::package(ctx, &resolved).await?;
            let occasion = resolved.occasion();
            render::render_objects(ctx, &resolved, occasion, inputs, verified)
                .await?
                .patched
        }
    };
    match args.output.format {
        OutputFormat::Value(_) => {
            output::print_value(&ItemList { items: &patched }, args.output.format)?;
        }
        OutputFormat::Name => {
            let lines = patched.iter().map(|one| format!("{}\n", one.object));
            output::print_text(&lines.collect::<String>());
        }
        OutputFormat::Table | OutputFormat::Wide if patched.is_empty() => {}
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&table(&patched).render()),
    }
    Ok(Exit::Done)
}

fn table(patched: &[PatchedObject]) -> Table {
    let mut table = Table::new(&["PATCH", "OBJECT", "FIELD"]);
    for one in patched {
        let mut fields = one.fields.clone();
        if fields.is_empty() {
            let what = match one.deleted {
                true => "(the object is left out)",
                false => "(nothing changes)",
            };
            fields.push(what.to_owned());
        }
        for field in fields {
            let patch = format!("spec.patches[{}]", one.patch);
            table.add_row(vec![patch, one.object.to_string(), field]);
        }
    }
    table
}
