//! `render NAME[@VERSION] | --dir DIR`: prints the manifests that would be applied, without applying them. It needs no cluster unless the
//! add-on asks for its facts.

mod masked;
mod output_folder;

use std::path::Path;
use std::sync::Arc;

use addons_operation::fetch::{self, VerifiedPackage};
use addons_operation::render::inputs::{Inputs, RenderData};
use addons_operation::{Resolved, render};
use addons_sources::{FetchedPackage, folder, kustomize};
use anyhow::{Context as _, Result};
use common::api::catalogue::{AddonTemplate, AddonVersion, CatalogueClass};
use common::api::names::{InstallationName, installation_name};
use common::catalogue::author::Author;
use common::catalogue::{CatalogueEntry, Origin};
use common::values;
use serde_json::{Value, json};

use super::chosen::{self, LookupScope};
use crate::cli::ValueFormat;
use crate::cli::render::{RenderArgs, RenderFormat, RenderMethod};
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::{choices, output};

/// Renders an add-on or a folder.
///
/// # Errors
/// The add-on is unknown or does not fit, or a source, a template or a manifest fails.
pub async fn run(session: &Session, args: &RenderArgs) -> Result<Exit> {
    let (entry, folder) = match &args.dir {
        Some(dir) => {
            let (entry, verified) = folder_entry(session, args, dir).await?;
            (entry, Some(verified))
        }
        None => (catalogue_entry(session, args).await?, None),
    };
    let name = match &args.name {
        Some(name) => name.clone(),
        None => installation_name(&entry.addon),
    };
    let name = InstallationName {
        namespace: session.global().system_namespace.clone(),
        name,
    };
    let mut resolved = Resolved::new(name, None, entry, session.rules());
    let spec = &mut resolved.wanted.spec;
    spec.target_namespace = args.target_namespace.clone();
    spec.registry = args.values.registry.clone();
    spec.skip_crds = args.values.skip_crds.unwrap_or_default();
    let form = &resolved.entry.version.template.form_spec;
    let edits = choices::parse_edits(&args.values, &[])?;
    spec.values = Some(edits.apply_to(None, form)?);
    spec.values_from = edits.values_from.unwrap_or_default();
    spec.patches = edits.patches.unwrap_or_default();
    let is_offline = args.data.is_some() || args.dir.is_some() || args.fit.k8s.is_some();
    if is_offline && !spec.values_from.is_empty() {
        let usage = "with --data, --dir or --k8s no Secret is read from a cluster: pass its values with -f instead of --values-from";
        return Err(UsageError(usage.to_owned()).into());
    }
    let inputs = match &args.data {
        Some(file) => Inputs::without_cluster(&resolved, RenderData::Given(read_data(file)?)),
        None if args.dir.is_some() || args.fit.k8s.is_some() => {
            let version = args.fit.k8s.as_deref().unwrap_or_default();
            Inputs::without_cluster(&resolved, RenderData::with_version(version))
        }
        None => Inputs::read(session.ctx(), &resolved).await?,
    };
    let verified = match folder {
        Some(verified) => fetch::with_dependencies(session.ctx(), &resolved, verified).await?,
        None => fetch::package(session.ctx(), &resolved).await?,
    };
    // The Secret beside the installations is part of the data, and is masked like the values of the manifest's own Secrets.
    let mask = inputs.mask();
    if args.output == RenderFormat::Raw {
        let text = render::render_text(session.ctx(), &resolved, &inputs, verified.fetched.package)
            .await?;
        warn_each(&text.warnings);
        let bytes = text.to_bytes();
        if args.show_secrets {
            output::print_bytes(&bytes);
        } else {
            let text = masked::mask_text(&String::from_utf8_lossy(&bytes));
            output::print_bytes(mask.mask_text(&text).as_bytes());
        }
        return Ok(Exit::Done);
    }
    let (ctx, occasion) = (session.ctx(), resolved.occasion());
    let rendered = render::render_objects(ctx, &resolved, occasion, inputs, verified).await?;
    warn_each(&rendered.warnings);
    let objects = rendered.manifests.into_iter();
    let objects = objects.map(|one| match args.show_secrets {
        true => Value::clone(&one.object),
        false => masked::mask_object(mask.mask_object(&one.object)),
    });
    let objects: Vec<Value> = objects.collect();
    match &args.output_dir {
        Some(dir) => output_folder::write_objects(dir, &objects)?,
        None => print(&objects, args.output)?,
    }
    Ok(Exit::Done)
}

/// Chooses the entry that fits.
async fn catalogue_entry(session: &Session, args: &RenderArgs) -> Result<CatalogueEntry> {
    let offered = LookupScope {
        source: &args.source,
        registry: args.values.registry.as_deref(),
        fit: &args.fit,
    };
    let name = args.addon.as_deref().unwrap_or_default();
    let (entry, selection) = chosen::choose_entry(session, &offered, name).await?;
    warn_each(&selection.warnings);
    Ok(entry)
}

/// Reads a folder as a catalogue entry.
async fn folder_entry(
    session: &Session,
    args: &RenderArgs,
    dir: &Path,
) -> Result<(CatalogueEntry, VerifiedPackage)> {
    let named = || format!("--dir {}", dir.display());
    let programs = session.ctx().kustomize();
    let package = match programs.filter(|_| args.method == Some(RenderMethod::Manifest)) {
        Some(programs) if kustomize::is_kustomization(dir) => {
            kustomize::build(dir, programs).await.with_context(named)?
        }
        _ => folder::read(dir).with_context(named)?,
    };
    let absolute = std::path::absolute(dir)?;
    let addon = absolute.file_name().map(|name| name.to_string_lossy());
    let location = dir.display().to_string();
    let version = AddonVersion {
        template: AddonTemplate {
            method: args.method.map(Into::into).unwrap_or_default(),
            ..AddonTemplate::default()
        },
        ..AddonVersion::default()
    };
    let entry = CatalogueEntry {
        addon: addon.map_or_else(|| "addon".to_owned(), |name| name.into_owned()),
        description: None,
        support: None,
        class: CatalogueClass::default(),
        deprecated: None,
        version,
        // The name that errors show.
        origin: Arc::new(Origin::Index {
            location: format!("--dir {location}"),
        }),
        base_url: None,
        registry: None,
        signature: None,
        place: String::new(),
        author: Author::default(),
    };
    let verified = VerifiedPackage {
        manifest_hash: package.digest(),
        fetched: FetchedPackage {
            package,
            location,
            resolved: None,
        },
        signature: None,
        warnings: Vec::new(),
    };
    Ok((entry, verified))
}

/// Reads the document of `--data`, which is one map.
fn read_data(file: &Path) -> Result<Value> {
    let name = file.display().to_string();
    let bytes = crate::input::read_input(file).with_context(|| format!("--data {name}"))?;
    values::read(&bytes, &name).with_context(|| format!("--data {name}"))
}

fn print(objects: &[Value], format: RenderFormat) -> Result<()> {
    if format == RenderFormat::Json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return output::print_value(&list, ValueFormat::Json);
    }
    for object in objects {
        match format {
            RenderFormat::Kyaml => output::print_value(object, ValueFormat::Kyaml)?,
            RenderFormat::Json | RenderFormat::Yaml | RenderFormat::Raw => {
                output::print_bytes(b"---\n");
                output::print_value(object, ValueFormat::Yaml)?;
            }
        }
    }
    Ok(())
}

fn warn_each(warnings: &[String]) {
    for warning in warnings {
        output::warn(warning);
    }
}
