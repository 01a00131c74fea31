//! What the webhook adds to a create: the same objects through the API server, by a user that it is asked about and by one that its
//! matchConditions leave out, in turn.

use std::time::Duration;

use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::time::Instant;

use addons_tests::control_plane::cluster::client;

use super::bench::Stage;
use super::bodies::ADDON;
use super::load::Answers;
use super::say;

/// Creates of each.
pub(crate) const CREATES: usize = 3_000;
/// The API server and its clients are slower at first.
const WARM_UP: usize = 200;
/// As in the configurations of deploy/base.
const LEFT_OUT: &str = "system:addon-manager";

pub(crate) struct Creates {
    pub(crate) with: Answers,
    pub(crate) without: Answers,
}

pub(crate) async fn run(stage: &Stage) -> Result<Creates> {
    say(&format!("{CREATES} creates with and without the webhook …"));
    let api = async |user: &str| {
        let user = stage.cluster.user(user, &["system:masters"])?;
        let client = client(&user.kubeconfig).await?;
        anyhow::Ok(Api::<AddonInstallation>::namespaced(
            client,
            SYSTEM_NAMESPACE,
        ))
    };
    let (with, without) = (api("bench").await?, api(LEFT_OUT).await?);
    let mut creates = Creates {
        with: Answers::default(),
        without: Answers::default(),
    };
    for number in 0..WARM_UP + CREATES {
        let sides = [
            (&with, "with", &mut creates.with),
            (&without, "without", &mut creates.without),
        ];
        for (api, name, answers) in sides {
            let time = create(api, &format!("{name}-{number}")).await?;
            if number >= WARM_UP {
                answers.times.push(time);
            }
        }
    }
    Ok(creates)
}

async fn create(api: &Api<AddonInstallation>, name: &str) -> Result<Duration> {
    let object: AddonInstallation = serde_json::from_value(json!({
        "apiVersion": API_VERSION, "kind": "AddonInstallation",
        "metadata": {"name": name}, "spec": {"addonRef": {"name": ADDON}},
    }))?;
    let begun = Instant::now();
    api.create(&PostParams::default(), &object).await?;
    Ok(begun.elapsed())
}
