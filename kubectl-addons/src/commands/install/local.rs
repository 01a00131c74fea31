//! `install ./FOLDER`: a path in place of a name.

use addons_operation::Context;
use anyhow::Result;
use common::catalogue::channel::is_plain_manifest_name;

use crate::cli::operation::{InstallArgs, SourceArgs};
use crate::exit::UsageError;

/// Returns the names of add-ons and their source. For a path, this is the only add-on in it.
///
/// # Errors
/// A path is combined with other names or another source, has several add-ons, or cannot be read.
pub async fn resolve_names(ctx: &Context, args: &InstallArgs) -> Result<(Vec<String>, SourceArgs)> {
    let source = &args.source;
    let Some(path) = args.path() else {
        return Ok((args.addons.clone(), source.clone()));
    };
    if args.addons.len() > 1 || source.channel.is_some() || source.catalogue.is_some() {
        let text = format!(
            "{path} is a path: it cannot be combined with other names, --channel or --catalogue"
        );
        return Err(UsageError(text).into());
    }
    let catalogue = ctx.fetch_index(&path.clone().into()).await?;
    let source = SourceArgs {
        channel: Some(path.clone()),
        ..SourceArgs::default()
    };
    match catalogue.names().as_slice() {
        // kops gives a bare manifest a name of its own, and installs it into kube-system.
        [name] if is_plain_manifest_name(name) => {
            let text = format!(
                "{path} is a manifest without a name: install the folder that it is in, or list it in a catalogue: \
                 kubectl addons catalogue create NAME --from {path}"
            );
            Err(UsageError(text).into())
        }
        [name] => Ok((vec![(*name).to_owned()], source)),
        names => {
            let text = format!(
                "{path} lists {} add-ons: name those to install, with --channel {path}",
                names.len()
            );
            Err(UsageError(text).into())
        }
    }
}
