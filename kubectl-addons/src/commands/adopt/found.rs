//! `adopt` without a name: lists what other tools installed, and the command that adopts it.

use std::collections::BTreeMap;

use addons_operation::Offer;
use addons_operation::adopt::{found, offered_as};
use addons_plan::found::Install;
use anyhow::Result;
use serde::Serialize;

use crate::choices;
use crate::cli::operation::Adopt;
use crate::cli::{Format, Listing};
use crate::exit::Exit;
use crate::output::{self, Items, table::Table};
use crate::session::Session;
use crate::words::adoption as words;

/// An install of another tool, and the command that adopts it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    install: Install,
    /// Absent if no catalogue has an add-on of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    adopt: Option<String>,
}

/// Lists what other tools installed.
///
/// # Errors
/// The server does not respond, or the index cannot be read.
pub async fn run(session: &Session, args: &Adopt) -> Result<Exit> {
    let offer = choices::offer(&args.source);
    let found = found(session.ctx(), &offer).await?;
    for (collection, why) in &found.unreadable {
        output::note(&format!("warning: {collection} cannot be listed: {why}"));
    }
    let rows = found.installs.into_iter();
    let rows = rows.map(|install| Row {
        adopt: command(&install, &found.offered, &offer),
        install,
    });
    let rows: Vec<Row> = rows.collect();
    let asked = Listing {
        format: args.output,
        no_headers: args.no_headers,
    };
    match args.output {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, asked)?
        }
        Format::Name => {
            let names = rows.iter().map(|row| row.install.name.as_str());
            output::names("addon", names);
        }
        Format::Table | Format::Wide if rows.is_empty() => output::note("nothing to adopt"),
        Format::Table | Format::Wide => output::data(&table(rows).listed(asked)),
    }
    Ok(Exit::Done)
}

fn table(rows: Vec<Row>) -> Table {
    let mut table = Table::new(&[
        "FOUND BY",
        "NAME",
        "NAMESPACE",
        "VERSION",
        "OBJECTS",
        "ADOPT",
    ]);
    for Row { install, adopt } in rows {
        table.row(vec![
            install.found_by.word().to_owned(),
            install.name,
            install.namespace.unwrap_or_default(),
            install.version.unwrap_or_default(),
            install.objects.to_string(),
            adopt.unwrap_or_default(),
        ]);
    }
    table
}

/// Returns the `adopt` command for an add-on with the name of the install or of its chart. What kops installed comes from its own index.
fn command(
    install: &Install,
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
        Offer::Catalogues | Offer::Nothing => String::new(),
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
    let version = install.version.as_deref();
    let version = version.and_then(|version| offered_as(offered, version));
    Some(words::command(install, addon, version, &flags))
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
        let of_version = |version: &str, install: Install| Install {
            version: Some(version.to_owned()),
            ..install
        };
        let install = |found_by, name: &str, chart: Option<&str>, channel: Option<&str>| Install {
            found_by,
            name: name.to_owned(),
            namespace: Some("shop".to_owned()),
            version: None,
            chart: chart.map(str::to_owned),
            channel: channel.map(str::to_owned),
            objects: 1,
            namespaces: BTreeSet::new(),
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
            let command = command(&install, &offered, offer);
            let expected = expected.map(|rest| format!("kubectl addons adopt {rest}"));
            assert_eq!(command, expected, "{install:?}");
        }
    }
}
