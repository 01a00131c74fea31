//! `catalogue publish oci://HOST/NAME [LOCATION]`: pushes a catalogue with its local packages to a registry.

use std::fs;
use std::path::Path;
use std::slice;

use addons_airgap::publish::{PublishRequest, Published, PublishedArtifact, publish};
use addons_operation::catalogue::file::md5;
use addons_operation::catalogue::validate::{SourceScope, validate_files};
use addons_operation::text::shell_word;
use addons_sources::location::{self, LocatedCatalogue};
use addons_sources::signature::signing::SigningKey;
use addons_sources::url;
use anyhow::{Context as _, Result};
use common::api::names;
use common::catalogue::author::Typed;
use serde::Serialize;

use super::objects;
use super::validate::print_problems;
use crate::cli::OutputFormat;
use crate::cli::publish::CataloguePublishArgs;
use crate::exit::{Exit, UsageError};
use crate::interrupt;
use crate::output;
use crate::session::Session;
use crate::words::{airgap, publishing};

/// What was published, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PublishReport<'a> {
    name: &'a str,
    #[serde(flatten)]
    artifact: ArtifactRow,
    packages: Vec<PackageRow<'a>>,
    /// The command that adds the catalogue to a cluster. Absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    add: Option<String>,
}

/// A package in the registry.
#[derive(Debug, Serialize)]
struct PackageRow<'a> {
    addon: &'a str,
    version: &'a str,
    #[serde(flatten)]
    artifact: ArtifactRow,
}

/// An artifact in the registry.
#[derive(Debug, Serialize)]
struct ArtifactRow {
    image: String,
    digest: String,
    /// Size of the files in bytes.
    bytes: u64,
    result: PublishResult,
    signed: bool,
}

/// What happened to an artifact.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum PublishResult {
    /// It was pushed.
    Pushed,
    /// It would be pushed.
    Planned,
    /// The registry already had it.
    Unchanged,
}

/// Validates the catalogue, pushes what the registry lacks, and prints the command that adds the catalogue to a cluster. If the catalogue is
/// not valid, prints its problems, and the exit code is 1.
///
/// # Errors
/// The catalogue, a package or the key cannot be read, or the registry refuses a push.
pub async fn run(session: &Session, args: &CataloguePublishArgs) -> Result<Exit> {
    check_file(&args.location)?;
    let ctx = session.ctx();
    let files = slice::from_ref(&args.location);
    for file in validate_files(ctx, files, SourceScope::Local).await {
        if !file.mistakes.is_empty() {
            print_problems(&file, &[]);
            output::note("error: nothing was pushed: the catalogue is not valid");
            return Ok(Exit::Failed);
        }
    }
    let catalogue = read_catalogue(session, &args.location).await?;
    let key = args.sign_key.as_deref().map(read_key).transpose()?;
    let request = PublishRequest {
        catalogue: &catalogue.object,
        typed: &args.location,
        location: &catalogue.location,
        target: &args.target,
        key: key.as_ref(),
        is_dry_run: args.dry_run,
    };
    interrupt::set_last_words(airgap::import_interrupted());
    let report = |progress| output::note(&airgap::describe_progress(&progress));
    let published = publish(ctx, &request, &report).await?;
    output::note(&publishing::describe(
        &args.target,
        &published,
        args.dry_run,
    ));
    print(&catalogue, &published, args)?;
    Ok(Exit::Done)
}

/// Refuses a folder without a catalogue.
fn check_file(location: &Typed) -> Result<(), UsageError> {
    let folder = Path::new(&**location);
    let is_folder = !location.contains("://") && folder.is_dir();
    let found = url::absolute(location).unwrap_or_default();
    if !is_folder || found.ends_with(".yaml") {
        return Ok(());
    }
    let folder = shell_word(location);
    Err(UsageError(format!(
        "{location}: the folder has no file catalogue.yaml\nfix:    kubectl addons catalogue create NAME --from {folder} > catalogue.yaml"
    )))
}

/// Reads the only catalogue at a location.
async fn read_catalogue(session: &Session, location: &Typed) -> Result<LocatedCatalogue> {
    let reach = session.ctx().reach_of_typed(location);
    let mut found = location::read(location, &session.ctx().access(&reach)).await?;
    let (count, last) = (found.len(), found.pop());
    let (Some(mut one), 1) = (last, count) else {
        let text =
            format!("{location}: {count} catalogues; put the one to publish into its own file");
        return Err(UsageError(text).into());
    };
    let warnings = md5::remove_hashes(session.rules(), &mut one);
    for warning in one.warnings.iter().chain(&warnings) {
        output::warn(warning);
    }
    if !names::is_object_name(objects::catalogue_name(&one.object)) {
        let text = format!("{location}: metadata.name: a catalogue needs a name to be published");
        return Err(UsageError(text).into());
    }
    Ok(one)
}

fn read_key(file: &Path) -> Result<SigningKey> {
    let place = || format!("--sign-key {}", file.display());
    let text = fs::read_to_string(file).with_context(place)?;
    SigningKey::from_pem(&text).with_context(place)
}

fn print(
    catalogue: &LocatedCatalogue,
    published: &Published,
    args: &CataloguePublishArgs,
) -> Result<()> {
    let add = publishing::add_command(published);
    match args.output.format {
        OutputFormat::Value(_) => {
            let row = |artifact: &PublishedArtifact| artifact_row(artifact, args.dry_run);
            let packages = published.packages.iter().map(|one| PackageRow {
                addon: &one.addon,
                version: &one.version,
                artifact: row(&one.artifact),
            });
            let report = PublishReport {
                name: objects::catalogue_name(&catalogue.object),
                artifact: row(&published.catalogue),
                packages: packages.collect(),
                add: Some(add).filter(|_| !args.dry_run),
            };
            output::print_value(&report, args.output.format)?;
        }
        OutputFormat::Name => {
            let name = format!("oci://{}\n", published.catalogue.by_digest());
            output::print_text(&name);
        }
        OutputFormat::Table | OutputFormat::Wide if args.dry_run => {}
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&format!("{add}\n")),
    }
    Ok(())
}

fn artifact_row(artifact: &PublishedArtifact, is_dry_run: bool) -> ArtifactRow {
    ArtifactRow {
        image: artifact.image.to_string(),
        digest: artifact.digest.clone(),
        bytes: artifact.bytes,
        result: match (artifact.was_there, is_dry_run) {
            (true, _) => PublishResult::Unchanged,
            (false, true) => PublishResult::Planned,
            (false, false) => PublishResult::Pushed,
        },
        signed: artifact.is_signed,
    }
}
