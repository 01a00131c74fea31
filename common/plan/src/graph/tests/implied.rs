//! Orders that follow from the objects themselves.

use super::*;

#[test]
fn the_order_of_nodes_is_rank_then_place_then_key() {
    let graph = graph(
        "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: ns}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
",
    )
    .unwrap();
    let names: Vec<String> = graph.nodes.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "Namespace ns",
            "ns/ConfigMap c",
            "ns/Deployment b",
            "ns/Deployment a"
        ]
    );
    assert_eq!(graph.levels(), [vec![0], vec![1, 2, 3]]);
    assert_eq!(graph.edges_from(0).len(), 3);
    assert_eq!(graph.edges_into(3).count(), 1);
    assert!(graph.edges_from(3).is_empty());
    assert!(graph.edges_from(17).is_empty());
}

#[test]
fn definitions_and_namespaces_go_before_what_is_of_them() {
    check(
        "
{apiVersion: e.test/v1, kind: Till, metadata: {name: t, namespace: ns}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tills.e.test}
spec: {group: e.test, names: {kind: Till, plural: tills}, scope: Namespaced, versions: [{name: v1}]}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: other}}
",
        &[
            "CustomResourceDefinition tills.e.test -> ns/Till t: definition Served",
            "Namespace ns -> ns/Till t: namespace Applied",
        ],
    );
}

#[test]
fn a_workload_waits_for_what_its_pods_name() {
    check(
        "
apiVersion: batch/v1
kind: CronJob
metadata: {name: w, namespace: ns}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          serviceAccountName: sa
          priorityClassName: p
          runtimeClassName: r
          imagePullSecrets: [{name: pull}]
          initContainers: [{env: [{valueFrom: {secretKeyRef: {name: s1, key: k}}}]}]
          containers:
          - env: [{valueFrom: {configMapKeyRef: {name: c1, key: k}}}, {value: s1}]
            envFrom: [{configMapRef: {name: c2}}, {secretRef: {name: s2}}]
          volumes:
          - {configMap: {name: c3}}
          - {secret: {secretName: s3}}
          - {persistentVolumeClaim: {claimName: d}}
          - {projected: {sources: [{configMap: {name: c4}}, {secret: {name: gone}}]}}
          - {emptyDir: {}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: ns}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: m}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: r}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: ns}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s1, namespace: ns}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s2, namespace: ns}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s3, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c1, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c2, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c3, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c4, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c5, namespace: ns}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: d, namespace: ns}
spec: {storageClassName: fast, volumeName: pv}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}
",
        &[
            "PersistentVolume pv -> ns/PersistentVolumeClaim d: reference Applied",
            "PriorityClass p -> ns/CronJob w: reference Applied",
            "RuntimeClass r -> ns/CronJob w: reference Applied",
            "StorageClass fast -> ns/PersistentVolumeClaim d: reference Applied",
            "ns/ConfigMap c1 -> ns/CronJob w: reference Applied",
            "ns/ConfigMap c2 -> ns/CronJob w: reference Applied",
            "ns/ConfigMap c3 -> ns/CronJob w: reference Applied",
            "ns/ConfigMap c4 -> ns/CronJob w: reference Applied",
            "ns/PersistentVolumeClaim d -> ns/CronJob w: reference Applied",
            "ns/Secret pull -> ns/CronJob w: reference Applied",
            "ns/Secret s1 -> ns/CronJob w: reference Applied",
            "ns/Secret s2 -> ns/CronJob w: reference Applied",
            "ns/Secret s3 -> ns/CronJob w: reference Applied",
            "ns/ServiceAccount sa -> ns/CronJob w: reference Applied",
        ],
    );
}

#[test]
fn other_objects_wait_for_what_they_name() {
    check(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: ns}
spec:
  serviceName: db
  template: {spec: {}}
  volumeClaimTemplates: [{spec: {storageClassName: fast}}]
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: ns}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: ns}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: ns}, spec: {ingressClassName: c}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: c}}
---
{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: ns, annotations: {kubernetes.io/service-account.name: default}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: ns}}
",
        &[
            "IngressClass c -> ns/Ingress i: reference Applied",
            "StorageClass fast -> ns/StatefulSet db: reference Applied",
            "ns/Service db -> ns/StatefulSet db: reference Applied",
            "ns/ServiceAccount default -> ns/Secret t: reference Applied",
            "ns/ServiceAccount default -> ns/StatefulSet db: reference Applied",
            "ns/StatefulSet db -> ns/HorizontalPodAutoscaler h: reference Applied",
        ],
    );
}

#[test]
fn rights_are_there_before_those_who_use_them() {
    check(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, name: sa, namespace: ns}, {kind: Group, name: 'system:serviceaccounts'}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: m}
roleRef: {kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: other, namespace: ns}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: m}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {serviceAccountName: sa}}
",
        &[
            "ClusterRole r -> ClusterRoleBinding b: rights Applied",
            "ClusterRoleBinding b -> ns/Pod p: rights Applied",
            "m/Role r -> m/RoleBinding b: rights Applied",
        ],
    );
}

#[test]
fn a_required_add_on_is_installed_before_the_other_begins() {
    let base = desired(
        "
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}",
    );
    let user = desired("{apiVersion: v1, kind: Namespace, metadata: {name: ns}}");
    let part = |name, desired, requires| GraphPart {
        name,
        desired,
        requires,
    };
    let graph = Graph::new(&[part("user", &user, &[1]), part("base", &base, &[])]).unwrap();
    assert_eq!(
        lines(&graph),
        [
            "Namespace ns -> base is installed: requires Ready",
            "Namespace ns -> ns/ConfigMap a: namespace Applied",
            "base is installed -> Namespace ns: requires Ready",
            "ns/ConfigMap a -> base is installed: requires Ready",
        ]
    );
    let cycle = Graph::new(&[part("user", &user, &[1]), part("base", &base, &[0])]).unwrap_err();
    assert_eq!(
        cycle.to_string(),
        "these wait for each other: Namespace ns → (requires) → user is installed → (requires) → Namespace ns → (requires) → base is installed → (requires) → Namespace ns; change requires in the catalogue, or install what is needed first as an add-on of its own"
    );
}

#[test]
fn edges_grow_with_the_objects_and_not_with_their_pairs() {
    let mut yaml = String::new();
    for ns in 0..10 {
        let _ = writeln!(
            yaml,
            "---\n{{apiVersion: v1, kind: Namespace, metadata: {{name: ns{ns}}}}}"
        );
        for object in 0..100 {
            let _ = writeln!(
                yaml,
                "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{object}, namespace: ns{ns}, annotations: {{argocd.argoproj.io/sync-wave: '{}', kapp.k14s.io/change-group: g{}, kapp.k14s.io/change-rule: upsert after upserting h}}}}}}",
                object / 25,
                object / 50,
            );
        }
    }
    let graph = graph(&yaml).unwrap();
    assert_eq!(graph.nodes.len(), 1010 + 3);
    // One to each namespace, two to the gates between four waves; the namespaces come along with the first wave.
    assert_eq!(graph.edges.len(), 1000 + 10 + 1000 + 500);
}
