//! Charts rendered by the real helm, in a private folder, with nothing of the caller's environment.

mod dependencies;
mod hostile;
mod lookup;
mod rig;
mod set;

use addons_render::hooks::{Occasion, select_for_occasion};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use common::api::catalogue::Method;
use common::manifest::parse::{ManifestOptions, parse};
use common::values::mask::SecretMask;
use rig::{Rig, folder, request};
use serde_json::json;

/// What it prints is all that a chart can know.
const TOLD: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
data:
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  kube: {{ .Capabilities.KubeVersion.Version }}
  own: {{ .Capabilities.APIVersions.Has "own.example/v1/Thing" | quote }}
  foreign: {{ .Capabilities.APIVersions.Has "foreign.example/v1" | quote }}
  upgrade: {{ .Release.IsUpgrade | quote }}
  install: {{ .Release.IsInstall | quote }}
  domain: {{ .Values.templateData.Cluster.Network.DNSDomain }}
  values: {{ omit .Values "templateData" "global" | toJson | quote }}
  file: {{ .Files.Get "extra.txt" | trim | quote }}
  lookup: {{ lookup "v1" "Namespace" "" "" | toJson }}
"#;

/// A chart with one file of every kind.
const FILES: [(&str, &str); 6] = [
    (
        "values.yaml",
        "image: {repository: web, tag: '1'}\nargs: [a, b]\nunset: x\n",
    ),
    ("templates/told.yaml", TOLD),
    ("templates/NOTES.txt", "Thank you for {{ .Chart.Name }}\n"),
    (
        "templates/tests/test.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
    ),
    (
        "crds/thing.yaml",
        "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: things.own.example}\n",
    ),
    ("extra.txt", "{{ not a template }}\n"),
];

#[tokio::test]
async fn a_chart_gets_the_capabilities_of_the_cluster() -> Result<()> {
    let mut tally = Tally::new("helm::template");
    let rig = Rig::new().await?;
    // As it is merged, the chart's own values included: `unset` was taken away, lists replace.
    let values = json!({
        "image": {"repository": "mirror/web", "tag": "1"},
        "args": ["c"],
        "big": 12345678,
        "templateData": {"Cluster": {"Network": {"DNSDomain": "cluster.local"}}},
    });
    for (is_upgrade, is_archive) in [(false, false), (true, false), (false, true)] {
        let package = if is_archive {
            rig.archive("web", &FILES)?
        } else {
            folder("web", &FILES)
        };
        let api_versions = ["own.example/v1/Thing".to_owned(), "v1".to_owned()];
        let text = rig
            .template(&package, |request| {
                request.values = &values;
                request.api_versions = &api_versions;
                request.is_upgrade = is_upgrade;
            })
            .await?;
        let parsed = parse(text.as_bytes(), "web", &ManifestOptions::default())?;
        let kept = select_for_occasion(parsed.manifests, Occasion::Install, Method::Helm);
        let kinds: Vec<_> = kept
            .manifests
            .iter()
            .map(|m| m.object["kind"].clone())
            .collect();
        ensure!(
            kinds == ["CustomResourceDefinition", "ConfigMap"],
            "{kinds:?}"
        );
        ensure!(!text.contains("Thank you"), "{text}");
        let told = &kept.manifests[1].object;
        ensure!(
            told["metadata"] == json!({"name": "rel", "namespace": "space"}),
            "{told}"
        );
        let given: serde_json::Value =
            serde_json::from_str(told["data"]["values"].as_str().unwrap_or_default())?;
        let expected = json!({"image": {"repository": "mirror/web", "tag": "1"}, "args": ["c"], "big": 12345678});
        ensure!(given == expected, "{given}");
        for (key, expected) in [
            ("chart", "web-1.0.0"),
            ("kube", "v1.36.3"),
            ("own", "true"),
            ("foreign", "false"),
            ("upgrade", if is_upgrade { "true" } else { "false" }),
            ("install", if is_upgrade { "false" } else { "true" }),
            ("domain", "cluster.local"),
            ("file", "{{ not a template }}"),
        ] {
            ensure!(told["data"][key] == expected, "{key}: {told}");
        }
        tally.ran();
    }
    let text = rig
        .template(&folder("web", &FILES), |request| {
            request.values = &values;
            request.include_crds = false;
        })
        .await?;
    ensure!(!text.contains("CustomResourceDefinition"), "{text}");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn mistakes_are_reported_once() -> Result<()> {
    let mut tally = Tally::new("helm::mistakes");
    let rig = Rig::new().await?;
    let secret = "correct-horse";
    let values = json!({"password": secret, "count": "three"});
    for (files, words) in mistakes() {
        for is_archive in [false, true] {
            let package = if is_archive {
                rig.archive_of("web", &files)?
            } else {
                folder("web", &files)
            };
            let mask = SecretMask::from_values([json!(secret)].iter());
            let answer = rig
                .template(&package, |request| {
                    request.values = &values;
                    request.mask = &mask;
                })
                .await;
            let error = format!(
                "{:#}",
                answer
                    .err()
                    .map_or_else(|| anyhow::anyhow!("rendered"), Into::into)
            );
            ensure!(error.matches(words).count() >= 1, "{words}: {error}");
            ensure!(
                !error.contains(secret) && !error.contains("--debug"),
                "{error}"
            );
            ensure!(error.matches("Error").count() == 0, "{error}");
            tally.ran();
        }
    }
    Ok(())
}

/// The files of a chart, and what the error says of them.
fn mistakes() -> Vec<(Vec<(&'static str, &'static str)>, &'static str)> {
    vec![
        (
            vec![("templates/a.yaml", "a: {{ .Values.x | nope }}\n")],
            "function \"nope\" not defined",
        ),
        (
            vec![(
                "templates/a.yaml",
                "a: {{ required \"x is needed\" .Values.x }}\n",
            )],
            "x is needed",
        ),
        (
            vec![(
                "templates/a.yaml",
                "a: {{ fail (printf \"no %s\" .Values.password) }}\n",
            )],
            "no ***",
        ),
        (vec![("templates/a.yaml", "a: [\n")], "web/templates/a.yaml"),
        (
            vec![(
                "values.schema.json",
                r#"{"properties": {"count": {"type": "integer"}}}"#,
            )],
            "want integer",
        ),
        (
            vec![(
                "Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=99'\n",
            )],
            "kubeVersion",
        ),
        (
            vec![(
                "Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n",
            )],
            "web is a library chart",
        ),
        (
            vec![(
                "Chart.yaml",
                "apiVersion: v2\nname: web\nversion: nonsense!\n",
            )],
            "version",
        ),
        (
            vec![("values.yaml", "a: [\n")],
            "values.yaml:1: cannot be read as YAML",
        ),
    ]
}

#[tokio::test]
async fn nothing_of_the_caller_is_there() -> Result<()> {
    let rig = Rig::new().await?;
    // A chart cannot see the environment; helm, which can, has none that is ours.
    let files = [(
        "templates/a.yaml",
        "kind: {{ .Values.kind }}\napiVersion: v1\nmetadata: {name: {{ .Release.Name }}}\n",
    )];
    let values = json!({"kind": "ConfigMap"});
    let fake = rig.script(
        "env >&2; ls -la \"$HOME\" \"$HELM_PLUGINS\" >&2; cat >&2; echo >&2; echo Error: done >&2; exit 1",
    )?;
    let package = folder("web", &files);
    let request = request(&values);
    let error = addons_helm::template::template(&fake, &package, &request).await;
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(error == "helm template: done", "{error}");
    let fake =
        rig.script("echo \"Error: $(env | cut -d= -f1 | sort | tr '\\n' ' ')\" >&2; exit 1")?;
    let error = addons_helm::template::template(&fake, &package, &request).await;
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    let known = [
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "HELM_PLUGINS",
        "HOME",
        "NO_COLOR",
        "PATH",
        "PWD",
        "SHLVL",
        "TMPDIR",
        "_",
        "OLDPWD",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    let names = error.strip_prefix("helm template: ").unwrap_or_default();
    let foreign: Vec<&str> = names
        .split(' ')
        .filter(|name| !known.contains(name))
        .collect();
    ensure!(
        foreign.is_empty() && names.contains("HELM_CACHE_HOME"),
        "{foreign:?} {names}"
    );
    Ok(())
}
