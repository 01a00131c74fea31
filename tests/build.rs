//! Turns `FULL=1` of the environment into `cfg(full)`: tests that only the second tier runs carry
//! `#[cfg_attr(not(full), ignore = "why")]`, so that the test runner counts them as ignored in the first.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(full)");
    println!("cargo::rerun-if-env-changed=FULL");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("FULL").is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg=full");
    }
}
