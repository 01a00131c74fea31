//! Writes the reference pages from what the plugin parses and from the definitions: `cargo run -p addons-tests --bin generate-reference [-- --check]`.

use std::process::ExitCode;

use addons_tests::generated::Generator;
use addons_tests::reference;

fn main() -> ExitCode {
    let generator = Generator {
        program: "generate-reference",
        folder: "kubectl-addons/docs",
        sources: "the command line and the definitions say",
    };
    generator.main(reference::files)
}
