//! What `install` names instead of an add-on of a catalogue: a path (`install ./FOLDER`), or a reference (`install oci://…`).

use addons_operation::{Context, Offer};
use anyhow::Result;
use common::catalogue::author::Typed;
use common::catalogue::channel::is_plain_manifest_name;

use crate::choices;
use crate::cli::operation::{InstallArgs, NewInstallationArgs};
use crate::commands::reference::{TypedReference, misplaced_version};
use crate::exit::UsageError;

/// The add-ons to install, and where they come from.
pub struct NamedAddons {
    /// Their names, which may have versions.
    pub addons: Vec<String>,
    /// How the new installation is named.
    pub new: NewInstallationArgs,
    /// The catalogues, or the path or reference, that contain them.
    pub offer: Offer,
}

/// Returns the add-ons that the command names. For a path, this is the only add-on in it; for a reference, the chart or manifest there.
///
/// # Errors
/// A path or a reference is combined with other names or another source, has several add-ons, or cannot be read.
pub async fn resolve_names(ctx: &Context, args: &InstallArgs) -> Result<NamedAddons> {
    if let Some(reference) = args.reference() {
        return read_reference(ctx, args, &reference).await;
    }
    if let Some(version) = &args.reference.version {
        let name = args.addons.first().map_or("NAME", String::as_str);
        let why = misplaced_version("install", name, version);
        return Err(UsageError(why).into());
    }
    let Some(path) = args.path() else {
        return Ok(NamedAddons {
            addons: args.addons.clone(),
            new: args.new.clone(),
            offer: choices::parse_offer(&args.source),
        });
    };
    check_alone(args, &format!("{path} is a path"))?;
    let catalogue = ctx.fetch_index(&path.clone().into()).await?;
    match catalogue.names().as_slice() {
        // kops gives a bare manifest a name of its own, and installs it into kube-system.
        [name] if is_plain_manifest_name(name) => {
            let text = format!(
                "{path} is a manifest without a name: install the folder that it is in, or list it in a catalogue: \
                 kubectl addons catalogue create NAME --from {path}"
            );
            Err(UsageError(text).into())
        }
        [name] => Ok(NamedAddons {
            addons: vec![(*name).to_owned()],
            new: args.new.clone(),
            offer: Offer::Indexes(vec![path.into()]),
        }),
        names => {
            let text = format!(
                "{path} lists {} add-ons: name those to install, with --channel {path}",
                names.len()
            );
            Err(UsageError(text).into())
        }
    }
}

async fn read_reference(
    ctx: &Context,
    args: &InstallArgs,
    reference: &Typed,
) -> Result<NamedAddons> {
    check_alone(args, &format!("{reference} is a reference"))?;
    let typed = TypedReference::parse(reference, &args.reference, "install")?;
    let mut new = args.new.clone();
    let found = typed.read(ctx, new.named.name.as_deref(), new.core).await?;
    let target = &mut new.named.target_namespace;
    *target = target.take().or(found.target_namespace);
    Ok(NamedAddons {
        addons: vec![found.entry.addon.clone()],
        new,
        offer: Offer::Entry(Box::new(found.entry)),
    })
}

/// Refuses other names and another source beside a path or a reference.
fn check_alone(args: &InstallArgs, what: &str) -> Result<(), UsageError> {
    let source = &args.source;
    if args.addons.len() == 1 && source.channel.is_none() && source.catalogue.is_none() {
        return Ok(());
    }
    Err(UsageError(format!(
        "{what}: it cannot be combined with other names, --channel or --catalogue"
    )))
}
