//! `status NAME`: the objects of an installation, and why it is not ready.

use std::fmt::Write as _;

use anyhow::Result;
use common::api::installation::{AddonInstallation, HelmRelease};
use serde::Serialize;

use crate::cli::Format;
use crate::cli::reading::Status;
use crate::commands::list::brief;
use crate::exit::Exit;
use crate::fleet::Fleet;
use crate::output::table::Table;
use crate::output::{self, Items};
use crate::session::Session;
use crate::words::plan::label;
use addons_helm;
use addons_helm::release as helm_release;
use addons_operation::Records;
use addons_operation::health::{self, Health, ObjectHealth};
use addons_operation::release;

/// One installation with its objects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    /// Where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    name: &'a str,
    namespace: &'a str,
    target_namespace: &'a str,
    status: &'a str,
    installed: Option<&'a common::api::installation::Installed>,
    objects: &'a [ObjectHealth],
    /// How helm says that its release is.
    #[serde(skip_serializing_if = "Option::is_none")]
    helm: Option<&'a str>,
}

/// One installation as it is now.
struct Looked {
    record: AddonInstallation,
    word: String,
    objects: Vec<ObjectHealth>,
    helm: Option<String>,
}

/// Shows one installation.
///
/// # Errors
/// There is none of that name; the server cannot be reached, or refuses.
pub async fn run(session: &Session, args: &Status) -> Result<Exit> {
    let looked = look(session, args).await?;
    match args.output.format {
        format @ (Format::Json | Format::Yaml) => output::value(&View::of(None, &looked), format)?,
        Format::Name => output::data(&keys(&looked)),
        Format::Table | Format::Wide => output::data(&tree(&looked)),
    }
    Ok(Exit::Done)
}

/// Shows the installation of this name on every cluster of a fleet: a line each, and with `-o wide` its objects.
///
/// # Errors
/// A value that cannot be printed. A cluster that cannot be read fails alone.
pub async fn of_fleet(fleet: &Fleet, args: &Status) -> Result<Exit> {
    let (found, exit) = fleet.each(async |session| look(session, args).await).await;
    match args.output.format {
        format @ (Format::Json | Format::Yaml) => {
            let items = found.iter();
            let items: Vec<View<'_>> = items
                .map(|(cluster, looked)| View::of(Some(cluster), looked))
                .collect();
            output::value(&Items { items: &items }, format)?;
        }
        Format::Name => found
            .iter()
            .for_each(|(_, looked)| output::data(&keys(looked))),
        Format::Wide => {
            for (cluster, looked) in &found {
                output::data(&format!("{cluster}: {}", tree(looked)));
            }
        }
        Format::Table => {
            let mut table = Table::new(&["CLUSTER", "VERSION", "READY", "STATUS"]);
            for (
                cluster,
                Looked {
                    record,
                    word,
                    objects,
                    ..
                },
            ) in &found
            {
                let version = record.installed().map(|it| it.version.clone());
                let ready = objects.iter().filter(|object| object.is_current()).count();
                table.row(vec![
                    cluster.clone(),
                    version.unwrap_or_default(),
                    format!("{ready}/{}", objects.len()),
                    brief(word),
                ]);
            }
            output::data(&table.render());
        }
    }
    Ok(exit)
}

async fn look(session: &Session, args: &Status) -> Result<Looked> {
    let known = Records::read(session.ctx()).await?;
    let record = known.find(&args.name, session.global().namespace.as_deref())?;
    let Health { objects, older } = health::objects(session.cluster().await?, record).await?;
    let troubles: Vec<_> = objects
        .iter()
        .filter(|object| !object.is_current())
        .cloned()
        .collect();
    let word = match session.ctx().other_cluster(record).await? {
        Some(other) => format!("OtherCluster: {other}"),
        None => health::word(record, &troubles, older.as_ref()),
    };
    let helm = match record.status.as_ref().and_then(release::recorded) {
        Some(named) => Some(helm(release::status(session.ctx(), named).await?, named)),
        None => None,
    };
    Ok(Looked {
        record: record.clone(),
        word,
        objects,
        helm,
    })
}

impl<'a> View<'a> {
    fn of(cluster: Option<&'a str>, looked: &'a Looked) -> Self {
        let (metadata, spec) = (&looked.record.metadata, &looked.record.spec);
        Self {
            cluster,
            name: metadata.name.as_deref().unwrap_or_default(),
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            target_namespace: spec.target_namespace.as_deref().unwrap_or_default(),
            status: &looked.word,
            installed: looked.record.installed(),
            objects: &looked.objects,
            helm: looked.helm.as_deref(),
        }
    }
}

/// Keys of the objects, one a line.
fn keys(looked: &Looked) -> String {
    let keys = looked.objects.iter();
    keys.map(|object| format!("{}\n", object.key)).collect()
}

/// `Release web/web   Deployed, revision 2: Upgrade complete`. What helm says of a failure may repeat values: the record of the
/// installation has it without them.
fn helm(status: Option<helm_release::Status>, named: &HelmRelease) -> String {
    let HelmRelease { name, namespace } = named;
    match status {
        Some(helm_release::Status {
            phase: phase @ helm_release::Phase::Deployed,
            revision,
            description,
            ..
        }) => format!(
            "Release {namespace}/{name}   {phase:?}, revision {revision}: {}",
            release::one_line(&description)
        ),
        Some(status) => format!(
            "Release {namespace}/{name}   {:?}, revision {}",
            status.phase, status.revision
        ),
        None => format!("Release {namespace}/{name}   is gone"),
    }
}

fn tree(looked: &Looked) -> String {
    let (record, word, objects) = (&looked.record, &looked.word, &looked.objects);
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let target = record.spec.target_namespace.as_deref().unwrap_or_default();
    let version = record
        .installed()
        .map(|installed| format!(" {}", label(installed)))
        .unwrap_or_default();
    let mut text = format!("{name}{version} in {target}   {word}\n");
    let names: Vec<String> = objects
        .iter()
        .map(|object| match &object.key.namespace {
            Some(namespace) if namespace != target => object.key.to_string(),
            _ => format!("{} {}", object.key.kind, object.key.name),
        })
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default();
    let states = objects
        .iter()
        .map(|object| object.message().chars().count());
    let state_width = states.max().unwrap_or_default();
    for (i, (object, name)) in objects.iter().zip(&names).enumerate() {
        let branch = if i + 1 == objects.len() {
            "└─"
        } else {
            "├─"
        };
        // Writing to a String cannot fail.
        let state = object.message();
        let _ = match &object.blocker {
            Some(blocker) => {
                let why = &blocker.message;
                writeln!(
                    text,
                    "{branch} {name:<width$}   {state:<state_width$}   {why}"
                )
            }
            None => writeln!(text, "{branch} {name:<width$}   {state}"),
        };
    }
    let edited: Vec<_> = objects.iter().filter(|object| object.edited).collect();
    for object in &edited {
        let _ = writeln!(text, "edited since our last apply: {}", object.key);
    }
    for object in objects {
        for field in &object.yielded {
            let _ = writeln!(text, "left to another manager: {}  {field}", object.key);
        }
    }
    if objects.iter().any(|object| !object.yielded.is_empty()) {
        let _ = writeln!(
            text,
            "take back: kubectl addons upgrade {name} --conflicts take"
        );
    }
    let gone = objects.iter().any(|object| object.readiness.is_none());
    if !edited.is_empty() || gone {
        // Without the version, the newest one would be installed.
        let version = record
            .installed()
            .map(|installed| installed.version.as_str());
        let version = version.filter(|version| !version.is_empty());
        let at = version.map_or_else(String::new, |version| format!("@{version}"));
        let _ = writeln!(text, "restore: kubectl addons upgrade {name}{at} --repair");
    }
    if let Some(helm) = &looked.helm {
        let _ = writeln!(text, "└─ {helm}");
    }
    text
}
