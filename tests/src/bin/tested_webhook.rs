//! The webhook that the tests run, `addons-webhook`.

fn main() -> anyhow::Result<()> {
    webhook::main()
}
