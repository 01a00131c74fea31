//! `helm install` and `helm upgrade` of a chart of the same objects.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::bench::{Bench, Step, Tool};
use super::set::Set;

pub(crate) async fn measure(helm: &Path, set: &Set, tool: &mut Tool) -> Result<()> {
    let bench = Bench::start(set).await?;
    let plugin = &bench.plugin;
    let chart = plugin.home().join("chart");
    let path = chart.to_string_lossy();
    for step in Step::ALL {
        write(&chart, step.version(), &step.manifest(set))?;
        let verb = match step {
            Step::Install => "install",
            _ => "upgrade",
        };
        // Without --wait helm 4 waits for hooks only, and the chart has none.
        let args = [verb, "bench", &path, "--namespace", "kube-system"];
        tool.add(step, bench.measure(plugin.program(helm, &args)).await?);
    }
    let version = plugin.program(helm, &["version", "--template", "{{.Version}}"]);
    tool.version = version.await?.done()?.stdout.trim().to_owned();
    Ok(())
}

/// A chart whose only template is the manifest. Definitions stand in it too, and not in `crds/`, which helm never
/// upgrades.
fn write(chart: &Path, version: &str, manifest: &str) -> Result<()> {
    fs::create_dir_all(chart.join("templates"))?;
    let about = format!("apiVersion: v2\nname: bench\nversion: {version}\n");
    fs::write(chart.join("Chart.yaml"), about)?;
    let template = manifest.replace("{{", r#"{{ "{{" }}"#);
    fs::write(chart.join("templates/set.yaml"), template)?;
    Ok(())
}
