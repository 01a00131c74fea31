//! The shape of the data: every field with the zero value of its Go type.

use serde_json::{Value, json};

/// Returns KKP's TemplateData without content. A nil pointer is null; lists and maps are empty.
pub(super) fn empty_template_data() -> Value {
    json!({
        "SeedName": "",
        "DatacenterName": "",
        "Cluster": {
            "Type": "kubernetes",
            "Name": "",
            "HumanReadableName": "",
            "Namespace": "",
            "OwnerName": "",
            "OwnerEmail": "",
            "Labels": {},
            "Annotations": {},
            "Kubeconfig": "",
            "Address": {
                "URL": "", "Port": 0, "ExternalName": "", "InternalName": "", "AdminToken": "", "IP": "",
                "APIServerExternalAddress": "",
            },
            "CloudProviderName": "",
            "Version": "",
            "MajorMinorVersion": "",
            "Network": {
                "DNSDomain": "", "DNSClusterIP": "", "DNSResolverIP": "",
                "PodCIDRBlocks": [], "ServiceCIDRBlocks": [], "ProxyMode": "", "StrictArp": null, "DualStack": false,
                "PodCIDRIPv4": "", "PodCIDRIPv6": "", "NodeCIDRMaskSizeIPv4": 0, "NodeCIDRMaskSizeIPv6": 0,
                "IPAMAllocations": {}, "NodePortRange": "",
            },
            "Features": [],
            "CNIPlugin": {"Type": "", "Version": ""},
            "CSI": {
                "StoragePolicy": "", "StorageContainer": "", "Fstype": "", "SsSegmentedIscsiNetwork": null,
                "StorageProfile": "", "Filesystem": "", "CinderTopologyEnabled": false, "OverwriteRegistry": "",
            },
            "MLA": {"MonitoringEnabled": false, "LoggingEnabled": false},
            "CSIMigration": false,
            "KubeVirtInfraStorageClasses": [],
            "KubeVirtInfraVolumeSnapshotClasses": [],
            "DisableCSIDriver": false,
        },
        "Credentials": {
            "AWS": {"AccessKeyID": "", "SecretAccessKey": "", "AssumeRoleARN": "", "AssumeRoleExternalID": ""},
            "Azure": {"TenantID": "", "SubscriptionID": "", "ClientID": "", "ClientSecret": ""},
            "Baremetal": {"Tinkerbell": {"Kubeconfig": ""}},
            "Digitalocean": {"Token": ""},
            "GCP": {"ServiceAccount": ""},
            "Hetzner": {"Token": ""},
            "Openstack": {
                "Username": "", "Password": "", "Project": "", "ProjectID": "", "Domain": "",
                "ApplicationCredentialID": "", "ApplicationCredentialSecret": "", "Token": "",
            },
            "Kubevirt": {"KubeConfig": ""},
            "VSphere": {"Username": "", "Password": ""},
            "Alibaba": {"AccessKeyID": "", "AccessKeySecret": ""},
            "Anexia": {"Token": ""},
            "Nutanix": {"Username": "", "Password": "", "CSIUsername": "", "CSIPassword": "", "ProxyURL": ""},
            "VMwareCloudDirector": {
                "Username": "", "Password": "", "APIToken": "", "Organization": "", "VDC": "",
            },
        },
        "Variables": {},
    })
}
