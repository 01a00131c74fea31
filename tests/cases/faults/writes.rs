//! The writes of the record, whichever requests a seed chooses.

use addons_tests::chaos::matrix;
use addons_tests::chaos::operation::Operation;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Result, ensure};

use super::one;

const RECORD: &str = "/addoninstallations/thirty?";
const STATUS: &str = "/addoninstallations/thirty/status?";

/// The number of the request among those with this method and path.
const WRITES: [(Operation, usize, &str, &str); 6] = [
    (Operation::Install, 1, "POST", "/addoninstallations?"),
    (Operation::Upgrade, 1, "PUT", RECORD),
    // The lock, and the end of the operation.
    (Operation::Upgrade, 1, "PUT", STATUS),
    (Operation::Upgrade, 2, "PUT", STATUS),
    // The dry run, and the deletion.
    (Operation::Uninstall, 1, "DELETE", "/addoninstallations/"),
    (Operation::Uninstall, 2, "DELETE", "/addoninstallations/"),
];

async fn writes_of_the_record(name: &'static str, operation: Operation) -> Result<()> {
    let undisturbed = operation.undisturbed().await?;
    let writes = WRITES.into_iter().filter(|(of, ..)| *of == operation);
    let cases: Vec<_> = writes
        .flat_map(|(_, number, method, path)| {
            [true, false].map(|delivered| (number, method, path, delivered))
        })
        .collect();
    matrix::run(name, cases, async |&(number, method, path, delivered)| {
        let rig = undisturbed.rig("fault-record").await?;
        let fault = Fault::at(number, Action::Cut { delivered });
        let fault = fault.method(method).path(path);
        let is_broken = one(operation, &rig, fault, true, &undisturbed.state).await?;
        ensure!(is_broken, "{number}. {method} {path} did not come");
        Ok(true)
    })
    .await
}

#[tokio::test]
async fn writes_of_the_record_on_install() -> Result<()> {
    let name = "faults::writes_of_the_record_on_install";
    writes_of_the_record(name, Operation::Install).await
}

#[tokio::test]
async fn writes_of_the_record_on_upgrade() -> Result<()> {
    let name = "faults::writes_of_the_record_on_upgrade";
    writes_of_the_record(name, Operation::Upgrade).await
}

#[tokio::test]
async fn writes_of_the_record_on_uninstall() -> Result<()> {
    let name = "faults::writes_of_the_record_on_uninstall";
    writes_of_the_record(name, Operation::Uninstall).await
}
