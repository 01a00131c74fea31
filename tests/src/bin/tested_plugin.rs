//! The plugin that the tests run, `kubectl-addons`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_addons::main()
}
