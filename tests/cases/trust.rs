//! No one loses data, leaks a Secret or gains rights through this tool. Each test says what it did on the real API server.

pub(crate) mod stored;

mod cache;
mod canaries;
mod claims;
mod dependencies;
mod discovery;
mod drift;
mod forged;
mod generated;
mod hashes;
mod immutable;
mod interruption;
mod labels;
mod least;
mod lookup;
mod many;
mod orphans;
mod records;
mod releases;
mod remade;
mod retained;
mod rights;
mod secrets;
mod slowness;
mod small;
mod taken_back;
mod templates;
mod temporary;
mod terminal;
mod unreadable;
mod values;
