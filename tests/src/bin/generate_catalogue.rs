//! Writes the starter catalogue from its recipe: `cargo run -p addons-tests --bin generate-catalogue [-- --check]`.

use std::process::ExitCode;

use addons_tests::generated::Generator;
use addons_tests::starter;

fn main() -> ExitCode {
    let generator = Generator {
        program: "generate-catalogue",
        folder: "deploy/catalogue",
        sources: "its recipe says",
    };
    generator.main(starter::files)
}
