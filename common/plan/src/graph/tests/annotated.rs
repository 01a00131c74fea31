//! Orders that annotations ask for.

use super::*;

const WAVE: &str = "argocd.argoproj.io/sync-wave";
const HOOK: &str = "argocd.argoproj.io/hook";
const DEPENDS: &str = "config.kubernetes.io/depends-on";
const GROUP: &str = "kapp.k14s.io/change-group";
const RULE: &str = "kapp.k14s.io/change-rule";

#[test]
fn waves_follow_each_other_and_what_is_needed_comes_along() {
    let yaml = [
        annotated("Job", "first", &[(WAVE, "-1")]),
        annotated("Job", "plain", &[]),
        annotated("Job", "last", &[(WAVE, "+5")]),
        annotated(
            "Job",
            "after",
            &[(HOOK, "PostSync, SyncFail"), (WAVE, "-9")],
        ),
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: ns}}\n".to_owned(),
    ];
    check(
        &yaml.concat(),
        &[
            "Namespace ns -> ns/Job after: namespace Applied",
            "Namespace ns -> ns/Job first: namespace Applied",
            "Namespace ns -> ns/Job last: namespace Applied",
            // The namespace is needed in wave -1 and comes with it.
            "Namespace ns -> ns/Job plain: sync-wave Ready",
            "ns/Job first -> ns/Job plain: sync-wave Ready",
            "ns/Job last -> ns/Job after: sync-wave Ready",
            "ns/Job plain -> ns/Job last: sync-wave Ready",
        ],
    );
}

#[test]
fn large_waves_meet_at_a_gate() {
    let one = |name: &str, wave| annotated("ConfigMap", name, &[(WAVE, wave)]);
    let yaml: String = ["a", "b", "c"].map(|name| one(name, "1")).concat()
        + &["d", "e", "f"].map(|name| one(name, "2")).concat();
    check(
        &yaml,
        &[
            "ns/ConfigMap a -> wave 1 of web is ready: sync-wave Ready",
            "ns/ConfigMap b -> wave 1 of web is ready: sync-wave Ready",
            "ns/ConfigMap c -> wave 1 of web is ready: sync-wave Ready",
            "wave 1 of web is ready -> ns/ConfigMap d: sync-wave Ready",
            "wave 1 of web is ready -> ns/ConfigMap e: sync-wave Ready",
            "wave 1 of web is ready -> ns/ConfigMap f: sync-wave Ready",
        ],
    );
}

#[test]
fn helm_hooks_stand_around_the_rest_by_weight() {
    let hook = "helm.sh/hook";
    let weight = "helm.sh/hook-weight";
    let yaml = [
        annotated(
            "Job",
            "two",
            &[(hook, "pre-install,pre-upgrade"), (weight, "2")],
        ),
        annotated("Job", "one", &[(hook, "pre-install")]),
        annotated("Job", "end", &[(hook, "post-install"), (weight, "-9")]),
        annotated("ConfigMap", "test", &[(hook, "test"), (weight, "-9")]),
    ];
    check(
        &yaml.concat(),
        &[
            "ns/ConfigMap test -> ns/Job end: hook-weight Ready",
            "ns/Job one -> ns/Job two: hook-weight Ready",
            "ns/Job two -> ns/ConfigMap test: hook-weight Ready",
        ],
    );
}

/// Helm applies `crds/` before any hook, and the definitions of templates with the rest.
#[test]
fn the_definitions_of_crds_come_before_hooks() {
    let definition = |name: &str| {
        format!(
            "---\n{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {name}.shop.example}}, \
             spec: {{group: shop.example, names: {{kind: {name}, plural: {name}}}, versions: [{{name: v1, served: true}}]}}}}\n"
        )
    };
    let yaml = [
        annotated("Job", "before", &[("helm.sh/hook", "pre-install")]),
        definition("of-crds"),
        definition("of-templates"),
    ];
    let mut desired = desired(&yaml.concat());
    desired.mark_shared(&["of-crds.shop.example".to_owned()].into());
    let part = GraphPart {
        name: "web",
        desired: &desired,
        requires: &[],
    };
    assert_eq!(
        lines(&Graph::new(&[part]).unwrap()),
        [
            "CustomResourceDefinition of-crds.shop.example -> ns/Job before: definition Served",
            "ns/Job before -> CustomResourceDefinition of-templates.shop.example: hook-weight Ready",
        ]
    );
}

#[test]
fn objects_and_groups_are_waited_for_by_name() {
    let yaml = [
        annotated(
            "ConfigMap",
            "a",
            &[(
                DEPENDS,
                "/namespaces/ns/Secret/b, /Namespace/ns,batch/namespaces/ns/Job/gone",
            )],
        ),
        annotated(
            "Secret",
            "b",
            &[
                (GROUP, "e.test/db"),
                ("kapp.k14s.io/change-group.x", "all-{namespace}"),
            ],
        ),
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: ns}}\n".to_owned(),
        annotated(
            "ConfigMap",
            "c",
            &[
                (RULE, "upsert after upserting e.test/db"),
                (GROUP, "all-ns"),
            ],
        ),
        annotated(
            "ConfigMap",
            "d",
            &[(
                "kapp.k14s.io/change-rule.1",
                "upsert before upserting all-ns",
            )],
        ),
        annotated("ConfigMap", "e", &[(RULE, "delete after deleting all-ns")]),
    ];
    check(
        &yaml.concat(),
        &[
            "Namespace ns -> ns/ConfigMap a: depends-on Ready",
            "Namespace ns -> ns/ConfigMap c: namespace Applied",
            "Namespace ns -> ns/ConfigMap d: namespace Applied",
            "Namespace ns -> ns/ConfigMap e: namespace Applied",
            "Namespace ns -> ns/Secret b: namespace Applied",
            "ns/ConfigMap d -> ns/ConfigMap c: change-rule Ready",
            "ns/ConfigMap d -> ns/Secret b: change-rule Ready",
            "ns/Secret b -> ns/ConfigMap a: depends-on Ready",
            "ns/Secret b -> ns/ConfigMap c: change-rule Ready",
        ],
    );
}

#[test]
fn a_cycle_names_every_edge_and_the_way_out() {
    let yaml = [
        annotated("ServiceAccount", "default", &[(WAVE, "3")]),
        "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns, annotations: {argocd.argoproj.io/sync-wave: '1'}}, spec: {}}\n".to_owned(),
    ];
    assert_eq!(
        graph(&yaml.concat()).unwrap_err().to_string(),
        "these wait for each other: ns/ServiceAccount default → (reference) → ns/Pod p → (sync-wave) → ns/ServiceAccount default; change annotation argocd.argoproj.io/sync-wave of ns/Pod p or ns/ServiceAccount default"
    );
    let yaml = [
        annotated("ConfigMap", "a", &[(DEPENDS, "/namespaces/ns/ConfigMap/c")]),
        annotated("ConfigMap", "b", &[(DEPENDS, "/namespaces/ns/ConfigMap/a")]),
        annotated(
            "ConfigMap",
            "c",
            &[(
                DEPENDS,
                "/namespaces/ns/ConfigMap/b,/namespaces/ns/ConfigMap/d",
            )],
        ),
        annotated("ConfigMap", "d", &[(DEPENDS, "/namespaces/ns/ConfigMap/c")]),
    ];
    assert_eq!(
        graph(&yaml.concat()).unwrap_err().to_string(),
        "these wait for each other: ns/ConfigMap c → (depends-on) → ns/ConfigMap d → (depends-on) → ns/ConfigMap c; change annotation config.kubernetes.io/depends-on of ns/ConfigMap c or ns/ConfigMap d"
    );
}
