//! `lookup` in a chart that the real helm renders: it finds what the caller finds, whatever helm asks before and after.

use addons_helm::HelmError;
use addons_helm::lookup::{Lookup, LookupQuery, LookupQuestion};
use addons_render::package::Package;
use anyhow::{Result, ensure};
use common::manifest::key::Gvk;
use common::manifest::kinds::KindTable;
use serde_json::{Value, json};

use super::rig::{Rig, folder};

/// It renders the object that it looks up, and one of a kind that it defines itself.
const CHART: &str = r#"
{{- $old := lookup "v1" "Secret" .Release.Namespace "db" }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: {{ if $old }}{{ $old.data.password }}{{ else }}bmV3{{ end }}}
---
apiVersion: own.example/v1
kind: Thing
metadata: {name: thing}
spec:
  all: {{ len (lookup "v1" "Secret" "" "").items }}
  served: {{ .Capabilities.APIVersions.Has "own.example/v1" }}
  upgrade: {{ .Release.IsUpgrade }}
"#;
const GROUPS: usize = 150;
const SERVED: [&str; 3] = ["v1", "v1/Secret", "v1/ConfigMap"];

/// What helm says of the chart, and what it asked for.
async fn rendered(
    rig: &Rig,
    chart: &Package,
    is_upgrade: bool,
    answer: impl Fn(&LookupQuery) -> Result<Vec<Value>, String>,
) -> (Result<String, HelmError>, Vec<LookupQuery>) {
    let kinds = KindTable::default();
    // Many groups, as clusters with many definitions have them: helm lists each of them.
    let others = (0..GROUPS).flat_map(|number| {
        let group = format!("group-{number}.example/v1");
        [format!("{group}/Thing"), group]
    });
    let served: Vec<String> = SERVED
        .map(str::to_owned)
        .into_iter()
        .chain(others)
        .collect();
    let (lookup, mut questions) = Lookup::new(&kinds);
    let mut asked = Vec::new();
    let answers = async {
        while let Some(question) = questions.recv().await {
            let LookupQuestion { query, answer: to } = question;
            let _ = to.send(answer(&query));
            asked.push(query);
        }
    };
    let rendering = rig.template(chart, |request| {
        request.is_upgrade = is_upgrade;
        request.api_versions = &served;
        request.lookup = Some(&lookup);
    });
    let text = tokio::select! {
        text = rendering => text,
        () = answers => Err(HelmError::Answer { verb: "template" }),
    };
    (text, asked)
}

#[tokio::test]
async fn helm_finds_what_the_caller_finds() -> Result<()> {
    let rig = Rig::new().await?;
    let definition = "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n\
        metadata: {name: things.own.example}\n";
    let files = [
        ("templates/db.yaml", CHART),
        ("crds/thing.yaml", definition),
    ];
    let chart = folder("web", &files);
    for is_upgrade in [false, true] {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "space"},
            "data": {"password": "b2xk"}});
        let begun = std::time::Instant::now();
        let (text, asked) = rendered(&rig, &chart, is_upgrade, |_| Ok(vec![object.clone()])).await;
        let text = text?;
        println!("rendered in {:.1?}:\n{text}", begun.elapsed());
        for part in [
            "data: {password: b2xk}".to_owned(),
            "all: 1".to_owned(),
            "served: false".to_owned(),
            format!("upgrade: {is_upgrade}"),
            "things.own.example".to_owned(),
        ] {
            ensure!(text.contains(&part), "{part} is missing in {text}");
        }
        let query = |namespace: Option<&str>, name: Option<&str>| LookupQuery {
            gvk: Gvk::new("v1", "Secret"),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        // A kind that cannot be mapped is known after a first attempt. Nothing is asked but what templates ask.
        let all = [query(Some("space"), Some("db")), query(None, None)];
        ensure!(
            asked.len() <= 4 && asked.chunks(2).all(|asked| asked == all),
            "{asked:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn what_the_caller_cannot_find_out_ends_the_rendering() -> Result<()> {
    let rig = Rig::new().await?;
    let chart = folder("web", &[("templates/db.yaml", CHART)]);
    let (text, _) = rendered(&rig, &chart, true, |_| Err("ask someone else".to_owned())).await;
    let message = match text {
        Err(HelmError::Failed { message, .. }) => message,
        other => anyhow::bail!("{other:?}"),
    };
    println!("{message}");
    ensure!(
        message.contains("ask someone else") && !message.contains("127.0.0.1"),
        "{message}"
    );
    Ok(())
}
