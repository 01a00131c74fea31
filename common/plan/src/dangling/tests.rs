use std::collections::BTreeMap;

use super::*;
use crate::closing::ClosingStep;
use crate::graph::tests::desired;
use crate::snapshot::{LiveObject, UnservedKind};
use crate::teardown::TeardownTurn;
use crate::{Deletion, Target};
use common::api::names::InstallationName;

/// A Deployment `web` in `shop` whose pod spec and container have more fields.
fn workload(spec: &str, container: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec: {{template: {{spec: {{{spec} containers: [{{name: web, {container}}}]}}}}}}
"
    )
}

/// The plan that creates every object of a manifest.
fn plan_of(desired: &Desired) -> InstallationPlan {
    let name = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "web".to_owned(),
    };
    InstallationPlan {
        verb: Verb::Install,
        steps: desired
            .objects
            .values()
            .map(|one| one.as_update())
            .collect(),
        ..InstallationPlan::nothing(name, "web")
    }
}

/// The warnings about a manifest in a cluster that has nothing.
fn warnings(yaml: &str) -> Vec<String> {
    let desired = desired(yaml);
    let plan = plan_of(&desired);
    let found = DanglingCandidates::find(&[(&plan, &desired)]);
    let warnings = found.warnings(&Snapshot::default()).into_iter();
    warnings.map(|(_, warning)| warning).collect()
}

const CREDS: &str = "volumes: [{name: creds, secret: {secretName: creds}}],";
const MISSING_CREDS: &str = "shop/Deployment web: spec.template.spec.volumes[creds].secret.secretName: shop/Secret creds does not exist, and nothing in this command creates it: pods do not start without it";

#[test]
fn each_field_that_names_a_missing_object_is_a_finding() {
    let pod = "spec.template.spec";
    let web = "containers[web]";
    for (spec, container, field, named) in [
        (
            "serviceAccountName: web,",
            "",
            "serviceAccountName",
            "shop/ServiceAccount web",
        ),
        (
            "imagePullSecrets: [{name: pull}],",
            "",
            "imagePullSecrets",
            "shop/Secret pull",
        ),
        (
            "priorityClassName: high,",
            "",
            "priorityClassName",
            "PriorityClass high",
        ),
        (
            "runtimeClassName: gvisor,",
            "",
            "runtimeClassName",
            "RuntimeClass gvisor",
        ),
        (
            CREDS,
            "",
            "volumes[creds].secret.secretName",
            "shop/Secret creds",
        ),
        (
            "volumes: [{name: c, configMap: {name: conf}}],",
            "",
            "volumes[c].configMap.name",
            "shop/ConfigMap conf",
        ),
        (
            "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}],",
            "",
            "volumes[d].persistentVolumeClaim.claimName",
            "shop/PersistentVolumeClaim data",
        ),
        (
            "volumes: [{name: p, projected: {sources: [{secret: {name: token}}]}}],",
            "",
            "volumes[p].projected.sources.secret.name",
            "shop/Secret token",
        ),
        (
            "volumes: [{name: p, projected: {sources: [{configMap: {name: conf}}]}}],",
            "",
            "volumes[p].projected.sources.configMap.name",
            "shop/ConfigMap conf",
        ),
        (
            "",
            "env: [{name: T, valueFrom: {secretKeyRef: {name: token, key: t}}}]",
            &format!("{web}.env[T].valueFrom.secretKeyRef.name"),
            "shop/Secret token",
        ),
        (
            "",
            "env: [{name: T, valueFrom: {configMapKeyRef: {name: conf, key: t}}}]",
            &format!("{web}.env[T].valueFrom.configMapKeyRef.name"),
            "shop/ConfigMap conf",
        ),
        (
            "",
            "envFrom: [{secretRef: {name: token}}]",
            &format!("{web}.envFrom.secretRef.name"),
            "shop/Secret token",
        ),
        (
            "",
            "envFrom: [{configMapRef: {name: conf}}]",
            &format!("{web}.envFrom.configMapRef.name"),
            "shop/ConfigMap conf",
        ),
    ] {
        let found = warnings(&workload(spec, container));
        let start = format!(
            "shop/Deployment web: {pod}.{field}: {named} does not exist, and nothing in this command creates it: "
        );
        assert!(
            matches!(found.as_slice(), [one] if one.starts_with(&start)),
            "{spec} {container}: {found:?}"
        );
    }
    assert_eq!(warnings(&workload(CREDS, "")), [MISSING_CREDS]);
}

#[test]
fn what_may_be_missing_is_none() {
    for (spec, container) in [
        ("", ""),
        ("serviceAccountName: default,", ""),
        ("priorityClassName: system-node-critical,", ""),
        (
            "volumes: [{name: c, configMap: {name: kube-root-ca.crt}}],",
            "",
        ),
        (
            "volumes: [{name: c, configMap: {name: conf, optional: true}}],",
            "",
        ),
        (
            "volumes: [{name: c, secret: {secretName: creds, optional: true}}],",
            "",
        ),
        (
            "volumes: [{name: p, projected: {sources: [{secret: {name: a, optional: true}}, {configMap: {name: b, optional: true}}, {serviceAccountToken: {path: t}}]}}],",
            "",
        ),
        (
            "",
            "env: [{name: T, valueFrom: {secretKeyRef: {name: token, key: t, optional: true}}}]",
        ),
        (
            "",
            "env: [{name: T, valueFrom: {configMapKeyRef: {name: conf, key: t, optional: true}}}]",
        ),
        (
            "",
            "envFrom: [{secretRef: {name: token, optional: true}}, {configMapRef: {name: conf, optional: true}}]",
        ),
    ] {
        let found = warnings(&workload(spec, container));
        assert!(found.is_empty(), "{spec} {container}: {found:?}");
    }
    for object in [
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: shop}, spec: {storageClassName: manual}}",
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop}, spec: {ingressClassName: x, tls: [{secretName: t}]}}",
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: shop}, spec: {serviceName: a}}",
    ] {
        assert!(warnings(object).is_empty(), "{object}");
    }
}

#[test]
fn what_the_command_contains_exists() {
    let creds = "{apiVersion: v1, kind: Secret, metadata: {name: creds, namespace: shop}}";
    let elsewhere = "{apiVersion: v1, kind: Secret, metadata: {name: creds, namespace: other}}";
    let workload = workload(CREDS, "");
    assert!(warnings(&format!("{workload}---\n{creds}")).is_empty());
    assert_eq!(
        warnings(&format!("{workload}---\n{elsewhere}")),
        [MISSING_CREDS]
    );

    // Another installation of the command brings it.
    let (one, other) = (desired(&workload), desired(creds));
    let (plan, beside) = (plan_of(&one), plan_of(&other));
    let found = DanglingCandidates::find(&[(&plan, &one), (&beside, &other)]);
    assert!(found.is_empty());

    // An installation that is not part of the command has recorded it.
    let mut found = DanglingCandidates::find(&[(&plan, &one)]);
    found.drop_recorded(|key| key.to_string() == "shop/Secret creds");
    assert!(found.is_empty());
}

#[test]
fn what_may_be_created_later_is_none() {
    let workload = workload(CREDS, "");
    for (maker, is_silent) in [
        (
            "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: shop}, spec: {secretName: creds}}",
            true,
        ),
        (
            "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: shop}, spec: {secretName: creds-2}}",
            false,
        ),
        (
            "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: creds, namespace: shop}, spec: {}}",
            true,
        ),
        (
            "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: creds, namespace: shop}, spec: {}}",
            true,
        ),
        (
            "{apiVersion: e.test/v1, kind: Till, metadata: {name: a, namespace: shop, labels: {app: creds}}, spec: {}}",
            false,
        ),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, spec: {template: {spec: {containers: [{name: a, args: [create, --secret-name=creds]}]}}}}",
            true,
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {template: {spec: {containers: [{name: a, env: [{name: S, value: creds}]}]}}}}",
            true,
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop, annotations: {service.beta.openshift.io/serving-cert-secret-name: creds}}}",
            true,
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: creds, namespace: shop, labels: {app: creds}, annotations: {kubectl-addons.dev/installation: kubectl-addons/creds}}}",
            false,
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: shop}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get, create]}]}",
            true,
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: other}, rules: [{apiGroups: [''], resources: [secrets], verbs: [create]}]}",
            false,
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: shop}, rules: [{apiGroups: [''], resources: [configmaps], verbs: ['*']}]}",
            false,
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: [''], resources: [secrets], verbs: ['*']}]}",
            true,
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}",
            false,
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list]}]}",
            false,
        ),
    ] {
        let found = warnings(&format!("{workload}---\n{maker}"));
        let expected: &[&str] = if is_silent { &[] } else { &[MISSING_CREDS] };
        assert_eq!(found, expected, "{maker}");
    }
}

#[test]
fn bindings_webhooks_and_tokens() {
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    let binding = |role: &str, subjects: &str| {
        format!(
            "{{{rbac}, kind: RoleBinding, metadata: {{name: b, namespace: shop}}, roleRef: {{{role}}}, subjects: [{subjects}]}}"
        )
    };
    let (view, missing) = (
        "kind: ClusterRole, name: view",
        "{kind: ServiceAccount, name: gone, namespace: other}",
    );
    let rights = "does not exist, and nothing in this command creates it: the binding gives no rights without it";
    for (object, expected) in [
        (binding(view, missing), vec![format!("shop/RoleBinding b: subjects: other/ServiceAccount gone {rights}")]),
        (binding(view, "{kind: ServiceAccount, name: gone, namespace: kube-system}"), vec![]),
        (binding(view, &format!("{missing}, {{kind: User, name: joe}}")), vec![]),
        (binding(view, &format!("{missing}, {{kind: ServiceAccount, name: default}}")), vec![]),
        (binding("kind: Role, name: r", "{kind: User, name: joe}"), vec![format!("shop/RoleBinding b: roleRef.name: shop/Role r {rights}")]),
        (binding("kind: ClusterRole, name: 'system:auth-delegator'", "{kind: User, name: joe}"), vec![]),
        (
            "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.test, clientConfig: {service: {namespace: shop, name: hook}}}, {name: b.test, clientConfig: {url: 'https://x'}}]}".to_owned(),
            vec!["ValidatingWebhookConfiguration w: webhooks[a.test].clientConfig.service: shop/Service hook does not exist, and nothing in this command creates it: the API server has nothing to call".to_owned()],
        ),
        (
            "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: t, namespace: shop, annotations: {kubernetes.io/service-account.name: gone}}}".to_owned(),
            vec!["shop/Secret t: metadata.annotations.kubernetes.io/service-account.name: shop/ServiceAccount gone does not exist, and nothing in this command creates it: the cluster deletes the token without it".to_owned()],
        ),
        (
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: shop}, imagePullSecrets: [{name: pull}]}".to_owned(),
            vec!["shop/ServiceAccount a: imagePullSecrets: shop/Secret pull does not exist, and nothing in this command creates it: images are pulled without it".to_owned()],
        ),
    ] {
        assert_eq!(warnings(&object), expected, "{object}");
    }
}

#[test]
fn the_cluster_decides_and_what_cannot_be_read_is_not_judged() {
    let desired = desired(&workload(
        CREDS,
        "envFrom: [{secretRef: {name: creds}}, {secretRef: {name: more}}]",
    ));
    let plan = plan_of(&desired);
    let found = DanglingCandidates::find(&[(&plan, &desired)]);
    let [creds, more] = found
        .unknown()
        .into_iter()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let count = |snapshot: &Snapshot| found.warnings(snapshot).len();
    assert_eq!(count(&Snapshot::default()), 2);
    let live = Snapshot {
        live: BTreeMap::from([(creds.clone(), LiveObject::default())]),
        unreadable: BTreeMap::from([(more.clone(), "forbidden".to_owned())]),
        ..Snapshot::default()
    };
    assert_eq!(count(&live), 0);
    let unserved = Snapshot {
        unserved: BTreeMap::from([((String::new(), "Secret".to_owned()), UnservedKind::Gone)]),
        ..Snapshot::default()
    };
    assert_eq!(count(&unserved), 0);
    let first = &found.warnings(&Snapshot::default())[0].1;
    assert!(first.ends_with("(1 more field names it)"), "{first}");
}

#[test]
fn what_the_command_deletes_is_missing_afterwards() {
    let both = desired(&format!(
        "{}---\n{{apiVersion: v1, kind: Secret, metadata: {{name: creds, namespace: shop}}}}",
        workload(CREDS, "")
    ));
    let (key, secret) = both
        .objects
        .iter()
        .find(|(key, _)| key.is_secret())
        .unwrap();
    let without = Desired {
        objects: both
            .objects
            .iter()
            .filter(|(it, _)| *it != key)
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect(),
        warnings: Vec::new(),
    };
    let mut plan = plan_of(&without);
    plan.close([ClosingStep::Delete {
        turn: TeardownTurn::Identity,
        deletion: Deletion {
            target: Target::clone(&secret.target),
            uid: "1".to_owned(),
            resource_version: String::new(),
            labels: BTreeMap::new(),
        },
    }]);
    let found = DanglingCandidates::find(&[(&plan, &without)]);
    assert!(found.unknown().is_empty(), "nothing has to be read");
    let warnings = found.warnings(&Snapshot::default());
    assert_eq!(
        warnings,
        [(0, "shop/Deployment web: spec.template.spec.volumes[creds].secret.secretName: shop/Secret creds is deleted by this command: pods do not start without it".to_owned())]
    );

    let adoption = InstallationPlan {
        verb: Verb::Adopt,
        ..plan_of(&without)
    };
    assert!(DanglingCandidates::find(&[(&adoption, &without)]).is_empty());
}
