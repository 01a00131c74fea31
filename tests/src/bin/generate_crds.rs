//! Writes `deploy/crds` from the Rust types: `cargo run -p addons-tests --bin generate-crds [-- --check]`.

use std::process::ExitCode;

use addons_tests::crds;
use addons_tests::generated::Generator;

fn main() -> ExitCode {
    let generator = Generator {
        program: "generate-crds",
        folder: "deploy/crds",
        sources: "the Rust types say",
    };
    generator.main(crds::files)
}
