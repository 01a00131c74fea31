use addons_gotemplate::TemplateFile;
use serde_json::{Value as Json, json};

use super::{KkpOptions, SEPARATOR, render};

fn text(template: &str, data: Json) -> String {
    let template = TemplateFile {
        name: "t",
        text: template,
    };
    let rendered = render(&[template], &data, &KkpOptions::default());
    match rendered {
        Ok(rendered) => rendered.text.trim_end_matches(SEPARATOR).to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A plain cluster has fewer facts than a cluster of KKP.
#[test]
fn a_document_may_have_any_part_of_the_fields() {
    let facts =
        json!({"Cluster": {"Version": "v1.35.8", "Network": {"DNSDomain": "cluster.local"}}});
    let asks = "{{ .Cluster.Version }} {{ .Cluster.Network.DNSDomain }}{{ if .Cluster.Network.StrictArp }}x{{ end }}";
    assert_eq!(text(asks, facts.clone()), "1.35.8 cluster.local");
    assert_eq!(
        text("{{ len .Cluster.Network.ConfigHash }}", facts.clone()),
        "40"
    );
    assert_eq!(
        text("{{ .Cluster.Features.Has \"x\" }}", facts),
        "<no value>"
    );
    for data in [
        json!(null),
        json!({}),
        json!([1]),
        json!({"Cluster": null}),
        json!({"Cluster": {"Network": 1, "CSI": []}}),
    ] {
        assert_eq!(text("x", data), "x");
    }
}

#[test]
fn features_are_a_set_of_names() {
    for features in [json!(["b", "a"]), json!({"a": true, "b": false})] {
        let data = json!({"Cluster": {"Features": features}});
        let asks =
            "{{ .Cluster.Features.Has \"b\" }} {{ .Cluster.Features }} {{ len .Cluster.Features }}";
        assert_eq!(text(asks, data), "true map[a:{} b:{}] 2");
    }
    assert_eq!(
        text(
            "{{ .Cluster.Features.Has \"b\" }}",
            json!({"Cluster": {"Features": null}})
        ),
        "false"
    );
}

#[test]
fn a_field_of_another_type_is_named() {
    let expect = [
        (
            json!({"Version": "junk"}),
            "the template data at Cluster.Version: \"junk\" is not a valid version",
        ),
        (
            json!({"Features": [1]}),
            "the template data at Cluster.Features[0]: expected a string, found a number",
        ),
        (
            json!({"Network": {"StrictArp": "true"}}),
            "the template data at Cluster.Network.StrictArp: expected a boolean or null, found a string",
        ),
        (
            json!({"Network": {"NodeCIDRMaskSizeIPv4": 1e10}}),
            "the template data at Cluster.Network.NodeCIDRMaskSizeIPv4: expected a whole number of 32 bits, found a number",
        ),
        (
            json!({"Network": {"IPAMAllocations": {"metallb": {"Addresses": [null, {}]}}}}),
            "the template data at Cluster.Network.IPAMAllocations.metallb.Addresses[1]: expected a string, found an object",
        ),
        (
            json!({"KubeVirtInfraStorageClasses": [{"Labels": {"a": 1}}]}),
            "the template data at Cluster.KubeVirtInfraStorageClasses[0].Labels.a: expected a string, found a number",
        ),
    ];
    for (cluster, error) in expect {
        let found = text("x", json!({"Cluster": cluster}));
        assert!(found.starts_with(error), "{found}");
    }
}
