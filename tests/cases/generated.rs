//! Generated files are what their sources say; `cargo run -p addons-tests --bin generate` writes them.

use addons_tests::generated::{FROM_THIS_REPOSITORY, Generated, LIFECYCLE};
use anyhow::Result;

#[test]
fn files_from_this_repository_are_up_to_date() -> Result<()> {
    FROM_THIS_REPOSITORY.iter().try_for_each(Generated::check)
}

#[test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: downloads five releases of Kubernetes' sources"
)]
fn the_table_of_apis_is_up_to_date() -> Result<()> {
    LIFECYCLE.check()
}
