//! Installs one add-on of a kops index without the plugin: `cargo run -p addons-operation --example install -- INDEX ADDON`.
//!
//! The five stages one by one, as a controller would call them.

use std::error::Error;
use std::time::Duration;

use addons_engine::{Cluster, ClusterOptions};
use addons_operation::{
    Choices, Context, ContextSettings, Intent, Interruption, NewInstallation, Offer,
    OperationEvent, Resolver, RunOptions, VersionedName, execute, fetch, plan, render,
};
use common::catalogue::author::Typed;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example talks")]
async fn main() -> Result<(), Box<dyn Error>> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut arguments = std::env::args().skip(1);
    let (Some(index), Some(addon)) = (arguments.next(), arguments.next()) else {
        return Err("usage: install INDEX ADDON".into());
    };
    let options = ClusterOptions {
        cache_dir: None,
        request_timeout: Duration::from_secs(30),
        concurrency: 32,
    };
    let cluster = Cluster::new(kube::Config::infer().await?, options).await?;
    let ctx = Context::new(cluster, ContextSettings::default()).on_event(|event| {
        if let OperationEvent::Finding(finding) = event {
            println!("found: {finding:?}");
        }
    });
    let offer = Offer::Indexes(vec![Typed::on_command_line(&index).into()]);
    let resolver = Resolver::new(&ctx, offer).await?;
    let intent = Intent::Install(vec![NewInstallation {
        addon: VersionedName::parse(&addon),
        ..NewInstallation::default()
    }]);
    let choices = Choices::default();
    let resolution = resolver.resolve(&intent, &Default::default()).await?;
    let resolved = resolution.whole()?.installations;
    let fetched = fetch::fetch(&ctx, resolved, &choices).await;
    let rendered = render::render(&ctx, fetched).await;
    let plan = plan::plan(&resolver, rendered, &[], &choices)
        .await?
        .whole()?;
    println!("up to date: {}", plan.up_to_date.len());
    for planned in &plan.installations {
        let (addon, steps) = (&planned.plan.addon, planned.plan.steps.len());
        println!("{addon}: {steps} objects");
    }
    let (run, interruption) = (RunOptions::default(), Interruption::default());
    for outcome in execute::execute(&ctx, &plan, &run, &interruption).await? {
        let (name, report) = (outcome.installation, outcome.result?);
        let (created, changed) = (report.created().count(), report.changed().count());
        println!("{name}: {created} created, {changed} changed");
    }
    Ok(())
}
