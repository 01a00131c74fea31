//! The locations that the command line opens. Only its arguments become a [`Typed`].

use std::convert::Infallible;

use addons_sources::reach::{OwnPlace, OwnPlaceError};
use common::catalogue::author::Typed;

/// Parses a location. Only used for arguments.
pub(crate) fn location(text: &str) -> Result<Typed, Infallible> {
    Ok(Typed::on_command_line(text))
}

/// Parses a value of `--own-access`. An empty variable opens nothing.
pub(super) fn place(text: &str) -> Result<Typed, OwnPlaceError> {
    if !text.is_empty() {
        OwnPlace::parse(text)?;
    }
    Ok(Typed::on_command_line(text))
}
