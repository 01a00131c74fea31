//! Orders that are dropped where they would close a cycle.

use super::*;

const DEPLOYMENT: &str = "
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: ns}
spec: {template: {metadata: {labels: {app: w, x: z}}, spec: {}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: ns}
spec: {template: {metadata: {labels: {app: other}}, spec: {}}}
---
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {selector: {app: w}}}
";

/// A configuration whose backend is `DEPLOYMENT`, with rules about this resource.
fn configuration(kind: &str, group: &str, resource: &str, more: &str) -> String {
    format!(
        "{DEPLOYMENT}---
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata: {{name: c}}
webhooks:
- clientConfig: {{service: {{name: s, namespace: ns}}}}
  rules: [{{apiGroups: ['{group}'], apiVersions: [v9], operations: [CREATE], resources: ['{resource}']}}]
{more}"
    )
}

#[test]
fn policies_go_before_the_pods_of_their_namespace() {
    check(
        &format!(
            "{DEPLOYMENT}
---
{{apiVersion: v1, kind: LimitRange, metadata: {{name: l, namespace: ns}}}}
---
{{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {{name: p, namespace: m}}}}"
        ),
        &[
            "ns/LimitRange l -> ns/Deployment other: policy Applied",
            "ns/LimitRange l -> ns/Deployment w: policy Applied",
        ],
    );
}

#[test]
fn backends_come_before_webhooks_and_these_before_what_they_match() {
    let custom = "---\n{apiVersion: e.test/v1, kind: Till, metadata: {name: t, namespace: ns}}\n";
    let backend = [
        "ns/Deployment w -> ValidatingWebhookConfiguration c: backend Ready",
        "ns/Service s -> ValidatingWebhookConfiguration c: backend Applied",
    ];
    let judge = "ValidatingWebhookConfiguration c -> ns/Till t: judge Ready";
    let rows = [
        ("e.test", "tills", "", true),
        ("*", "*", "", true),
        ("e.test", "*/*", "", true),
        ("e.test", "tills/status", "", false),
        ("", "tills", "", false),
        ("e.test", "tills", "  failurePolicy: Ignore\n", false),
        ("e.test", "tills", "  matchPolicy: Exact\n", false),
        (
            "e.test",
            "tills",
            "  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: m}}\n",
            false,
        ),
        (
            "e.test",
            "tills",
            "  namespaceSelector: {matchLabels: {who: knows}}\n",
            true,
        ),
        (
            "e.test",
            "tills",
            "  objectSelector: {matchLabels: {a: b}}\n",
            false,
        ),
    ];
    for (group, resource, more, judged) in rows {
        let yaml = configuration("ValidatingWebhookConfiguration", group, resource, more) + custom;
        let mut expect = backend.to_vec();
        if judged {
            expect.push(judge);
        }
        // With `*`, also the Deployment that is not a backend.
        let mut lines = lines(&graph(&yaml).unwrap());
        lines.retain(|line| !line.contains("other"));
        expect.sort_unstable();
        assert_eq!(lines, expect, "{group} {resource} {more}");
    }
}

#[test]
fn a_mutating_webhook_is_there_before_the_pods_of_workloads() {
    let backend = [
        "ns/Deployment w -> MutatingWebhookConfiguration c: backend Ready",
        "ns/Service s -> MutatingWebhookConfiguration c: backend Applied",
    ];
    let other = "MutatingWebhookConfiguration c -> ns/Deployment other: judge Ready";
    let kind = "MutatingWebhookConfiguration";
    check(
        &configuration(kind, "", "pods", "  failurePolicy: Ignore\n"),
        &[backend[0], backend[1], other],
    );
    let system = configuration(kind, "", "pods", "").replace(
        "name: other, namespace: ns",
        "name: other, namespace: kube-system",
    );
    check(&system, &backend);
    // Whether it judges pods of its own add-on has to be beyond doubt.
    let selector = "  namespaceSelector: {matchLabels: {inject: sure}}\n";
    check(&configuration(kind, "", "pods", selector), &backend);
}

#[test]
fn an_annotation_beats_a_weak_order() {
    let yaml = configuration("ValidatingWebhookConfiguration", "e.test", "tills", "").replace(
        "metadata: {name: w, namespace: ns}",
        "metadata: {name: w, namespace: ns, annotations: {config.kubernetes.io/depends-on: admissionregistration.k8s.io/ValidatingWebhookConfiguration/c}}",
    );
    check(
        &yaml,
        &[
            "ValidatingWebhookConfiguration c -> ns/Deployment w: depends-on Ready",
            "ns/Service s -> ValidatingWebhookConfiguration c: backend Applied",
        ],
    );
}

#[test]
fn an_api_service_comes_before_the_objects_of_its_group() {
    check(
        &format!(
            "{DEPLOYMENT}---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.e.test}}
spec: {{group: e.test, version: v1, service: {{name: s, namespace: ns}}}}
---
{{apiVersion: e.test/v1, kind: Till, metadata: {{name: t, namespace: ns}}}}
---
{{apiVersion: e.test/v2, kind: Drawer, metadata: {{name: t, namespace: ns}}}}
"
        ),
        &[
            "APIService v1.e.test -> ns/Till t: api-service Ready",
            "ns/Deployment w -> APIService v1.e.test: backend Ready",
            "ns/Service s -> APIService v1.e.test: backend Applied",
        ],
    );
}

#[test]
fn a_definition_comes_before_its_conversion_webhook_and_that_before_the_objects() {
    check(
        &format!(
            "{DEPLOYMENT}---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: tills.e.test}}
spec:
  group: e.test
  names: {{kind: Till, plural: tills}}
  scope: Namespaced
  versions: [{{name: v1}}]
  conversion: {{strategy: Webhook, webhook: {{clientConfig: {{service: {{name: s, namespace: ns}}}}}}}}
---
{{apiVersion: e.test/v1, kind: Till, metadata: {{name: t, namespace: ns}}}}
"
        ),
        &[
            "CustomResourceDefinition tills.e.test -> ns/Till t: definition Served",
            "ns/Deployment w -> ns/Till t: backend Ready",
            "ns/Service s -> ns/Till t: backend Applied",
        ],
    );
}

#[test]
fn the_source_of_a_certificate_comes_before_the_webhook_that_needs_it() {
    let certificate = "
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: cert, namespace: ns}
spec: {secretName: tls, issuerRef: {name: self}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: self, namespace: ns}}
";
    let yaml = configuration("ValidatingWebhookConfiguration", "cert-manager.io", "*", "").replace(
        "metadata: {name: c}",
        "metadata: {name: c, annotations: {cert-manager.io/inject-ca-from: ns/cert}}",
    ) + certificate;
    let yaml = yaml.replace(
        "labels: {app: w, x: z}}, spec: {}",
        "labels: {app: w, x: z}}, spec: {volumes: [{secret: {secretName: tls}}]}",
    );
    check(
        &yaml,
        &[
            "ns/Certificate cert -> ValidatingWebhookConfiguration c: backend Ready",
            "ns/Certificate cert -> ns/Deployment w: reference Applied",
            "ns/Deployment w -> ValidatingWebhookConfiguration c: backend Ready",
            "ns/Issuer self -> ns/Certificate cert: backend Applied",
            "ns/Service s -> ValidatingWebhookConfiguration c: backend Applied",
        ],
    );
}
