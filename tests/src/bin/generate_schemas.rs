//! Writes `deploy/schemas` from the Rust types: `cargo run -p addons-tests --bin generate-schemas [-- --check]`.

use std::process::ExitCode;

use addons_tests::generated::Generator;
use addons_tests::schemas;

fn main() -> ExitCode {
    let generator = Generator {
        program: "generate-schemas",
        folder: "deploy/schemas",
        sources: "the Rust types say",
    };
    generator.main(schemas::files)
}
