//! The webhook that the tests run, `addons-webhook`.

fn main() -> anyhow::Result<()> {
    addons_webhook::main()
}
