//! Lays the plugin out in memory, so that a short run needs little of it.
//!
//! It is linked at a fixed address, as Go links kubectl and helm: a program that can be loaded anywhere has 42,000 pointers that are
//! rewritten at each start, 1.6 MiB with the list of them. And a release puts the functions that run often next to each other, because
//! a kernel maps a program in large pieces. `KUBECTL_ADDONS_LIBC=FILE` names the static libc of a release (`deploy/release/compile`).
//! The webhook, which listens, stays as it is.

use std::env::var;

/// Linkers that do not read scripts.
const WITHOUT_SCRIPTS: [&str; 3] = ["mold", "wild", "gold"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=often.ld");
    println!("cargo::rerun-if-env-changed=KUBECTL_ADDONS_LIBC");
    let is = |name: &str, wanted: &str| var(name).is_ok_and(|value| value == wanted);
    if !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    if is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    // Before that of the linker, so that its functions are the ones that are used.
    if let Ok(libc) = var("KUBECTL_ADDONS_LIBC") {
        println!("cargo::rustc-link-arg-bins={libc}");
    }
    let linker =
        ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS"].map(|name| var(name).unwrap_or_default());
    let reads_scripts = !WITHOUT_SCRIPTS
        .iter()
        .any(|name| linker.iter().any(|linker| linker.contains(name)));
    if reads_scripts
        && !is("OPT_LEVEL", "0")
        && let Ok(folder) = var("CARGO_MANIFEST_DIR")
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--script={folder}/often.ld");
    }
}
