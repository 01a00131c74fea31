//! A policy is judged itself, by its schema alone: no webhook has to answer while an administrator mends one.

use addons_tests::control_plane::{ControlPlane, definitions, unique};
use addons_tests::plugin::Plugin;
use addons_tests::scene::create;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::row::policy;

#[tokio::test]
async fn what_makes_no_sense_is_not_a_policy() -> Result<()> {
    let mut tally = Tally::new("policy::definition");
    let cluster = ControlPlane::shared().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let allowed =
        |field: &str, values: Value| json!({"action": "Enforce", "allowed": {field: values}});
    let hosts = |value: &str| allowed("sourceHosts", json!([value]));
    let registries = |value: &str| allowed("imageRegistries", json!([value]));
    let window = |schedule: &str, duration: &str, zone: Option<&str>| {
        let mut window = json!({"schedule": schedule, "duration": duration});
        if let Some(zone) = zone {
            window["timeZone"] = json!(zone);
        }
        json!({"action": "Enforce", "maintenance": {"windows": [window]}})
    };
    let night = |schedule: &str| window(schedule, "4h", None);
    for (spec, refusal) in [
        (night("0 2 * * 6"), None),
        (night("*/15 22-4/2 1,15,31 JAN-MAR,11 MON-FRI"), None),
        (night("0 0 31 2 MON"), None),
        (night("0 0 29 2 *"), None),
        (night("0 2 * *"), Some("should match")),
        (night("0 2 * * SAT "), Some("should match")),
        (night("60 2 * * *"), Some("the minute must be 0-59")),
        (night("0 24 * * *"), Some("the hour must be 0-23")),
        (
            night("0 0 0 * *"),
            Some("the day of the month must be 1-31"),
        ),
        (night("0 0 1 SEX *"), Some("the month must be 1-12")),
        (night("0 0 * * 7"), Some("the day of the week must be 0-6")),
        (night("*/0 * * * *"), Some("the minute must be 0-59")),
        (night("0 0 30,31 2 *"), Some("it never opens")),
        (night("0 0 31 4,JUN *"), Some("it never opens")),
        (window("0 2 * * 6", "90m", Some("Europe/Berlin")), None),
        (
            window("0 2 * * 6", "1h30m", Some("America/Argentina/Buenos_Aires")),
            None,
        ),
        (
            window("0 2 * * 6", "4h", Some("Europe/Atlantis")),
            Some("timeZone must be a name of the tz database"),
        ),
        (
            window("0 2 * * 6", "4h", Some("Local")),
            Some("timeZone must be a name of the tz database"),
        ),
        (
            window("0 2 * * 6", "4h", Some("+02:00")),
            Some("should match"),
        ),
        (window("0 2 * * 6", "1d", None), Some("should match")),
        (
            window("0 2 * * 6", "0h", None),
            Some("duration must be between"),
        ),
        (
            window("0 2 * * 6", "169h", None),
            Some("duration must be between"),
        ),
        (
            json!({"action": "Enforce", "maintenance": {"windows": []}}),
            Some("should have at least 1 items"),
        ),
        (hosts("git.example.com"), None),
        (hosts("*.example.com:8443"), None),
        (hosts("localhost:5000"), None),
        (hosts("[::1]"), None),
        (hosts("s3://addons"), None),
        (hosts("https://git.example.com"), Some("should match")),
        (hosts("git.example.com/path"), Some("should match")),
        (hosts("*"), Some("should match")),
        (hosts("git.*.com"), Some("should match")),
        (hosts("Git.example.com"), Some("should match")),
        (registries("docker.io"), None),
        (registries("mirror:5000/addons/x_y"), None),
        (registries("*.example.com/addons"), None),
        (registries("mirror"), Some("should match")),
        (
            registries("https://mirror.example.com"),
            Some("should match"),
        ),
        (registries("mirror.example.com/"), Some("should match")),
        (
            allowed("catalogues", json!(["a", "a"])),
            Some("Duplicate value"),
        ),
        (
            allowed("catalogues", json!([])),
            Some("should have at least 1 items"),
        ),
        (allowed("catalogues", json!(["A b"])), Some("should match")),
        (
            allowed("supportClasses", json!(["Best"])),
            Some("Unsupported value"),
        ),
        (
            json!({"action": "Enforce"}),
            Some("a policy needs allowed, installers or maintenance"),
        ),
        (
            json!({"action": "Enforce", "allowed": {}}),
            Some("should have at least 1 properties"),
        ),
        (
            json!({"allowed": {"catalogues": ["a"]}}),
            Some("spec.action: Required value"),
        ),
        (
            json!({"action": "Audit", "installers": {"users": ["a"]}}),
            Some("Unsupported value"),
        ),
        (
            json!({"action": "Warn", "installers": {"users": ["a"]},
                "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            Some("In and NotIn need values"),
        ),
    ] {
        let object = policy(&unique("definition"), spec);
        let said = create(&admin, &object, &["--dry-run=server", "--validate=strict"]).await?;
        match refusal {
            None => ensure!(said.code == 0, "{object}: {}", said.stderr),
            Some(words) => ensure!(said.stderr.contains(words), "{object}: {}", said.stderr),
        }
        tally.ran();
    }
    Ok(())
}
