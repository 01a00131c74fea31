//! `schema FILE`: prints the JSON schemas with which editors check catalogues and sets.

use crate::cli::schema::{SchemaArgs, SchemaFile};
use crate::exit::Exit;
use crate::output;

const CATALOGUE: &str = include_str!("../../../deploy/schemas/catalogue.json");
const SET: &str = include_str!("../../../deploy/schemas/set.json");

/// Prints a JSON schema.
#[must_use]
pub fn run(args: &SchemaArgs) -> Exit {
    let schema = match args.file {
        SchemaFile::Catalogue => CATALOGUE,
        SchemaFile::Set => SET,
    };
    output::print_bytes(schema.as_bytes());
    Exit::Done
}
