//! `kubectl addons`: see the library for the map.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_addons::main()
}
