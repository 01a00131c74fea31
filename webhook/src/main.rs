//! `addons-webhook`: see the library for the map.

fn main() -> anyhow::Result<()> {
    addons_webhook::main()
}
