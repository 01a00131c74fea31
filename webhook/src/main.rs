//! `addons-webhook`: see the library for the map.

fn main() -> anyhow::Result<()> {
    webhook::main()
}
