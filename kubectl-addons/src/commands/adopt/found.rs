//! `adopt` without a name: lists what other tools installed, and the command that adopts it.

use std::collections::BTreeMap;

use addons_operation::Offer;
use addons_operation::adopt::{find_foreign_installs, find_offered_version};
use addons_plan::found::ForeignInstall;
use anyhow::Result;
use serde::Serialize;

use crate::choices;
use crate::cli::operation::AdoptArgs;
use crate::cli::{Listing, OutputFormat};
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::adoption as words;

/// An install of another tool, and the command that adopts it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AdoptableRow {
    #[serde(flatten)]
    install: ForeignInstall,
    /// Absent if no catalogue has an add-on of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    adopt: Option<String>,
}

/// Lists what other tools installed.
///
/// # Errors
/// The server does not respond, or the index cannot be read.
pub async fn run(session: &Session, args: &AdoptArgs) -> Result<Exit> {
    let offer = choices::parse_offer(&args.source);
    let found = find_foreign_installs(session.ctx(), &offer).await?;
    for (collection, why) in &found.unreadable {
        output::note(&format!("warning: {collection} cannot be listed: {why}"));
    }
    let rows = found.installs.into_iter();
    let rows = rows.map(|install| AdoptableRow {
        adopt: adopt_command(&install, &found.offered, &offer),
        install,
    });
    let rows: Vec<AdoptableRow> = rows.collect();
    let asked = Listing {
        format: args.output,
        no_headers: args.no_headers,
    };
    match args.output {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, asked)?,
        OutputFormat::Name => {
            let names = rows.iter().map(|row| row.install.name.as_str());
            output::print_names("addon", names);
        }
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => {
            output::note("nothing to adopt")
        }
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_painted(&table(rows).render_listing(asked))
        }
    }
    Ok(Exit::Done)
}

fn table(rows: Vec<AdoptableRow>) -> Table {
    let mut table = Table::new(&[
        "FOUND BY",
        "NAME",
        "NAMESPACE",
        "VERSION",
        "OBJECTS",
        "ADOPT",
    ]);
    for AdoptableRow { install, adopt } in rows {
        table.add_row(vec![
            install.found_by.word().to_owned(),
            install.name.clone(),
            install.namespace.clone().unwrap_or_default(),
            install.version_label(&install.name).unwrap_or_default(),
            install.objects.to_string(),
            adopt.unwrap_or_default(),
        ]);
    }
    table
}

/// Returns the `adopt` command for an add-on with the name of the install or of its chart. What kops installed comes from its own index.
fn adopt_command(
    install: &ForeignInstall,
    offered: &BTreeMap<String, Vec<String>>,
    offer: &Offer,
) -> Option<String> {
    let mut flags = match offer {
        Offer::Indexes(indexes) => {
            let flags = indexes
                .iter()
                .map(|index| format!(" --channel {}", index.location));
            flags.collect()
        }
        Offer::Catalogue(name) => format!(" --catalogue {name}"),
        Offer::Catalogues | Offer::Entry(_) | Offer::Nothing => String::new(),
    };
    let names = [Some(&install.name), install.chart.as_ref()];
    let addon = names
        .into_iter()
        .flatten()
        .find(|name| offered.contains_key(*name));
    let addon = match (addon, &install.channel) {
        (Some(addon), _) => addon,
        // Other locations, such as `s3://`, are not read.
        (None, Some(channel)) if channel.starts_with("http") || channel.starts_with("file:") => {
            flags = format!(" --channel {channel}");
            &install.name
        }
        (None, _) => return None,
    };
    let offered = offered.get(addon).map_or(&[][..], Vec::as_slice);
    let version = find_offered_version(offered, install, addon);
    Some(words::adopt_command(install, addon, version, &flags))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use addons_plan::found::FoundBy;

    use common::catalogue::author::Typed;

    use super::*;

    #[test]
    fn the_add_on_is_that_of_the_name_or_of_the_chart() {
        let versions = vec!["1.0.0".to_owned(), "1.1.0".to_owned()];
        let offered =
            BTreeMap::from([("web".to_owned(), versions), ("dns".to_owned(), Vec::new())]);
        let of_version = |version: &str, install: ForeignInstall| ForeignInstall {
            version: Some(version.to_owned()),
            ..install
        };
        let install =
            |found_by, name: &str, chart: Option<&str>, channel: Option<&str>| ForeignInstall {
                found_by,
                name: name.to_owned(),
                namespace: Some("shop".to_owned()),
                version: None,
                id: None,
                manifest_hash: None,
                chart: chart.map(str::to_owned),
                channel: channel.map(str::to_owned),
                objects: 1,
                namespaces: BTreeSet::new(),
                subcharts: BTreeMap::new(),
            };
        let index = Offer::Indexes(vec![Typed::on_command_line("index.yaml").into()]);
        for (install, offer, expected) in [
            (
                install(FoundBy::Kubectl, "web", None, None),
                &Offer::Catalogues,
                Some("web"),
            ),
            (
                of_version("v1.0.0", install(FoundBy::Kubectl, "web", None, None)),
                &Offer::Catalogues,
                Some("web@1.0.0"),
            ),
            (
                of_version("0.9.0", install(FoundBy::Kubectl, "web", None, None)),
                &Offer::Catalogues,
                Some("web"),
            ),
            (
                install(FoundBy::Kubectl, "till", None, None),
                &Offer::Catalogues,
                None,
            ),
            (
                install(FoundBy::Helm, "front", Some("web"), None),
                &index,
                Some("web --channel index.yaml --name front --target-namespace shop"),
            ),
            (
                install(
                    FoundBy::Kops,
                    "core",
                    None,
                    Some("https://example.org/i.yaml"),
                ),
                &Offer::Catalogues,
                Some("core --channel https://example.org/i.yaml --target-namespace shop"),
            ),
            (
                install(FoundBy::Kops, "core", None, Some("s3://b/i.yaml")),
                &Offer::Catalogues,
                None,
            ),
        ] {
            let command = adopt_command(&install, &offered, offer);
            let expected = expected.map(|rest| format!("kubectl addons adopt {rest}"));
            assert_eq!(command, expected, "{install:?}");
        }
    }
}
