//! `schema FILE`: prints the JSON schemas with which editors check catalogues and sets.

use crate::cli::schema::{File, Schema};
use crate::exit::Exit;
use crate::output;

const CATALOGUE: &str = include_str!("../../../deploy/schemas/catalogue.json");
const SET: &str = include_str!("../../../deploy/schemas/set.json");

/// Prints a JSON schema.
#[must_use]
pub fn run(args: &Schema) -> Exit {
    let schema = match args.file {
        File::Catalogue => CATALOGUE,
        File::Set => SET,
    };
    output::bytes(schema.as_bytes());
    Exit::Done
}
