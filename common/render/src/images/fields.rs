//! Fields of custom resources that hold images, besides the containers of pod templates.

use serde_json::Value;

/// Fields with images in one or more kinds of a group.
struct ImageFields {
    group: &'static str,
    kinds: &'static [&'static str],
    /// Paths from the root; `*` stands for every item of a list.
    paths: &'static [&'static [&'static str]],
}

/// Taken from the API reference of each project, without fields that hold only a registry or only a tag.
const FIELDS: &[ImageFields] = &[
    // prometheus-operator, Documentation/api-reference/api.md; baseImage until 0.60
    ImageFields {
        group: "monitoring.coreos.com",
        kinds: &[
            "Alertmanager",
            "Prometheus",
            "PrometheusAgent",
            "ThanosRuler",
        ],
        paths: &[
            &["spec", "image"],
            &["spec", "baseImage"],
            &["spec", "thanos", "image"],
            &["spec", "thanos", "baseImage"],
        ],
    },
    // opentelemetry-operator, docs/api
    ImageFields {
        group: "opentelemetry.io",
        kinds: &["OpenTelemetryCollector", "OpAMPBridge", "TargetAllocator"],
        paths: &[&["spec", "image"], &["spec", "targetAllocator", "image"]],
    },
    ImageFields {
        group: "opentelemetry.io",
        kinds: &["Instrumentation"],
        paths: &[
            &["spec", "java", "image"],
            &["spec", "nodejs", "image"],
            &["spec", "python", "image"],
            &["spec", "dotnet", "image"],
            &["spec", "go", "image"],
            &["spec", "apacheHttpd", "image"],
            &["spec", "nginx", "image"],
        ],
    },
    // argo-workflows, docs/fields.md: one container a template
    ImageFields {
        group: "argoproj.io",
        kinds: &["Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"],
        paths: &[
            &["spec", "templates", "*", "container", "image"],
            &["spec", "templates", "*", "script", "image"],
            &["spec", "templates", "*", "sidecars", "*", "image"],
        ],
    },
    ImageFields {
        group: "argoproj.io",
        kinds: &["CronWorkflow"],
        paths: &[
            &[
                "spec",
                "workflowSpec",
                "templates",
                "*",
                "container",
                "image",
            ],
            &["spec", "workflowSpec", "templates", "*", "script", "image"],
            &[
                "spec",
                "workflowSpec",
                "templates",
                "*",
                "sidecars",
                "*",
                "image",
            ],
        ],
    },
    // tekton, docs/tasks.md
    ImageFields {
        group: "tekton.dev",
        kinds: &["Task", "ClusterTask"],
        paths: &[
            &["spec", "steps", "*", "image"],
            &["spec", "sidecars", "*", "image"],
            &["spec", "stepTemplate", "image"],
        ],
    },
    // cloudnative-pg, docs/src/cloudnative-pg.v1.md
    ImageFields {
        group: "postgresql.cnpg.io",
        kinds: &["Cluster"],
        paths: &[&["spec", "imageName"]],
    },
    ImageFields {
        group: "postgresql.cnpg.io",
        kinds: &["ImageCatalog", "ClusterImageCatalog"],
        paths: &[&["spec", "images", "*", "image"]],
    },
    // rabbitmq cluster-operator, docs/api/rabbitmq.com.ref.asciidoc
    ImageFields {
        group: "rabbitmq.com",
        kinds: &["RabbitmqCluster"],
        paths: &[&["spec", "image"]],
    },
    // strimzi, "Custom Resource API Reference"
    ImageFields {
        group: "kafka.strimzi.io",
        kinds: &["Kafka"],
        paths: &[
            &["spec", "kafka", "image"],
            &["spec", "zookeeper", "image"],
            &["spec", "entityOperator", "topicOperator", "image"],
            &["spec", "entityOperator", "userOperator", "image"],
            &["spec", "kafkaExporter", "image"],
            &["spec", "cruiseControl", "image"],
        ],
    },
    ImageFields {
        group: "kafka.strimzi.io",
        kinds: &["KafkaConnect", "KafkaBridge", "KafkaMirrorMaker2"],
        paths: &[&["spec", "image"]],
    },
    // rook, Documentation/CRDs/Cluster/ceph-cluster-crd.md
    ImageFields {
        group: "ceph.rook.io",
        kinds: &["CephCluster"],
        paths: &[&["spec", "cephVersion", "image"]],
    },
    // cloud-on-k8s, docs/reference/api-docs.md
    ImageFields {
        group: "elasticsearch.k8s.elastic.co",
        kinds: &["Elasticsearch"],
        paths: &[&["spec", "image"]],
    },
    ImageFields {
        group: "kibana.k8s.elastic.co",
        kinds: &["Kibana"],
        paths: &[&["spec", "image"]],
    },
    ImageFields {
        group: "beat.k8s.elastic.co",
        kinds: &["Beat"],
        paths: &[&["spec", "image"]],
    },
    // operator-lifecycle-manager, operators.coreos.com/v1alpha1
    ImageFields {
        group: "operators.coreos.com",
        kinds: &["CatalogSource"],
        paths: &[&["spec", "image"]],
    },
    ImageFields {
        group: "operators.coreos.com",
        kinds: &["ClusterServiceVersion"],
        paths: &[&["spec", "relatedImages", "*", "image"]],
    },
    // crossplane, packages are images
    ImageFields {
        group: "pkg.crossplane.io",
        kinds: &["Provider", "Configuration", "Function"],
        paths: &[&["spec", "package"]],
    },
    // envoy gateway, api/extension_types: one container of the proxy's deployment or daemon set
    ImageFields {
        group: "gateway.envoyproxy.io",
        kinds: &["EnvoyProxy"],
        paths: &[
            &[
                "spec",
                "provider",
                "kubernetes",
                "envoyDeployment",
                "container",
                "image",
            ],
            &[
                "spec",
                "provider",
                "kubernetes",
                "envoyDaemonSet",
                "container",
                "image",
            ],
        ],
    },
    // knative, pkg/apis/caching/v1alpha1: images that nodes are to pull in advance
    ImageFields {
        group: "caching.internal.knative.dev",
        kinds: &["Image"],
        paths: &[&["spec", "image"]],
    },
    // kubevirt, container disks
    ImageFields {
        group: "kubevirt.io",
        kinds: &["VirtualMachine"],
        paths: &[&[
            "spec",
            "template",
            "spec",
            "volumes",
            "*",
            "containerDisk",
            "image",
        ]],
    },
    ImageFields {
        group: "kubevirt.io",
        kinds: &["VirtualMachineInstance"],
        paths: &[&["spec", "volumes", "*", "containerDisk", "image"]],
    },
];

/// Returns the paths of images in objects of this kind.
pub(super) fn image_paths(object: &Value) -> impl Iterator<Item = &'static [&'static str]> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let rows = FIELDS
        .iter()
        .filter(move |fields| fields.group == group && fields.kinds.contains(&kind));
    rows.flat_map(|fields| fields.paths.iter().copied())
}
