//! `version`: prints the versions of this client and of the server.

use anyhow::Result;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::reading::VersionArgs;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;

/// Both versions, in the words of kubectl.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    client_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
}

/// Prints the versions. The client version is printed even if the server does not respond.
///
/// # Errors
/// The server cannot be reached.
pub async fn run(session: &Session, args: &VersionArgs) -> Result<Exit> {
    let server = if args.client {
        None
    } else {
        Some(server_version(session).await)
    };
    let (server_version, failure) = match server.transpose() {
        Ok(version) => (version, None),
        Err(error) => (None, Some(error)),
    };
    let versions = Versions {
        client_version: concat!("v", env!("CARGO_PKG_VERSION")),
        server_version,
    };
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&versions, args.output.format)?,
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Name => {
            let mut text = format!("Client Version: {}\n", versions.client_version);
            if let Some(server) = &versions.server_version {
                text.push_str(&format!("Server Version: {server}\n"));
            }
            output::print_text(&text);
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Exit::Done),
    }
}

async fn server_version(session: &Session) -> Result<String> {
    Ok(session.cluster().await?.kubernetes_version().await?)
}
