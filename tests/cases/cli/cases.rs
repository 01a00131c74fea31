//! Names and command lines. A file of each name stands beside this one.

/// All cases.
#[rustfmt::skip]
pub const CASES: &[(&str, &str)] = &[
    // Help and mistakes.
    ("help", "kubectl-addons -h"),
    ("help-long", "kubectl-addons --help"),
    ("help-other-name", "other-name search -h"),
    ("help-catalogue", "kubectl-addons catalogue -h"),
    ("help-catalog", "kubectl-addons catalog -h"),
    ("help-command", "kubectl-addons help"),
    ("help-command-install", "kubectl-addons help channel apply"),
    ("help-list", "kubectl-addons list -h"),
    ("list-all-and-one", "kubectl-addons list -A -n shop"),
    ("help-init", "kubectl-addons init -h"),
    ("help-show", "kubectl-addons show -h"),
    ("help-images", "kubectl-addons images -h"),
    ("help-install", "kubectl-addons install -h"),
    ("help-diff", "kubectl-addons diff -h"),
    ("help-sync", "kubectl-addons sync -h"),
    ("sync-missing", "kubectl-addons sync missing"),
    ("sync-kinds", "kubectl-addons sync --prune-allowlist ConfigMap"),
    ("help-plan", "kubectl-addons plan -h"),
    ("help-apply", "kubectl-addons apply -h"),
    ("plan-format", "kubectl-addons plan web -o wide"),
    ("apply-no-file", "kubectl-addons apply missing.json"),
    ("apply-no-plan", "kubectl-addons apply catalogue.yaml"),
    ("no-command", "kubectl-addons"),
    ("unknown-command", "kubectl-addons serach"),
    ("missing-argument", "kubectl-addons show"),
    ("allow-prune-number", "kubectl-addons upgrade --allow-prune 60"),
    ("allow-prune-too-much", "kubectl-addons upgrade --allow-prune 101%"),
    ("unknown-format", "kubectl-addons search -o xml"),
    ("unknown-version", "kubectl-addons search --channel index.yaml --k8s latest"),
    ("two-sources", "kubectl-addons search --channel index.yaml --catalogue platform"),
    ("version-client", "kubectl-addons version --client"),
    ("version-json", "kubectl-addons version --client -o json"),

    // search
    ("search", "kubectl-addons search --channel index.yaml --k8s 1.36.3"),
    ("search-wide", "kubectl-addons search --channel index.yaml --k8s v1.29.4-eks-1 -o wide"),
    ("search-json", "kubectl-addons search --channel index.yaml --k8s 1.36.3 -o json"),
    ("search-yaml", "kubectl-addons search --channel index.yaml --k8s 1.36.3 -o yaml"),
    ("search-name", "kubectl-addons search --channel index.yaml --k8s 1.36.3 -o name"),
    ("search-words", "kubectl-addons search --channel catalogue.yaml --k8s 1.36.3 REQUESTS limits"),
    ("search-nothing", "kubectl-addons search --channel index.yaml --k8s 1.36.3 storage"),
    ("search-core-hidden", "kubectl-addons search --channel catalogue.yaml --k8s 1.36.3"),
    ("search-core", "kubectl-addons search --channel catalogue.yaml --k8s 1.36.3 --core"),
    ("search-no-cluster", "kubectl-addons search --channel index.yaml"),

    // show
    ("show", "kubectl-addons show web --channel index.yaml --k8s 1.36.3"),
    ("show-version", "kubectl-addons show web@1 --channel index.yaml --k8s 1.36.3"),
    ("show-json", "kubectl-addons show web --channel index.yaml --k8s 1.36.3 -o json"),
    ("show-inline", "kubectl-addons show limits --channel catalogue.yaml --k8s 1.36.3 -o yaml"),
    ("show-chart", "kubectl-addons show monitoring --channel catalogue.yaml --k8s 1.36.3 --kkp 2.28"),
    ("show-does-not-fit", "kubectl-addons show future --channel index.yaml --k8s 1.36.3"),
    ("show-no-such-version", "kubectl-addons show web@7 --channel index.yaml --k8s 1.36.3"),
    ("show-unknown", "kubectl-addons show webb --channel index.yaml --k8s 1.36.3"),
    ("show-unknown-far", "kubectl-addons show kubernetes-dashboard --channel index.yaml --k8s 1.36.3"),
    ("show-forged", "kubectl-addons show forged --channel index.yaml --k8s 1.36.3"),
    ("show-dangling", "kubectl-addons show dangling --channel index.yaml --k8s 1.36.3"),

    // images
    ("images", "kubectl-addons images --channel index.yaml --k8s 1.36.3"),
    ("images-named", "kubectl-addons images web@1.0 --channel index.yaml --k8s 1.36.3"),
    ("images-wide", "kubectl-addons images web --channel index.yaml --k8s 1.36.3 -o wide"),
    ("images-json", "kubectl-addons images web --channel index.yaml --k8s 1.36.3 -o json"),
    ("images-name", "kubectl-addons images web --channel index.yaml --k8s 1.36.3 -o name"),
    ("images-unknown", "kubectl-addons images webb --channel index.yaml --k8s 1.36.3"),

    // catalogue
    ("validate", "kubectl-addons catalogue validate catalogue.yaml index.yaml"),
    ("validate-duplicate", "kubectl-addons catalogue validate duplicate.yaml"),
    ("validate-across", "kubectl-addons catalogue validate index.yaml duplicate.yaml"),
    ("validate-misspelt", "kubectl-addons catalogue validate misspelt.yaml"),
    ("validate-index", "kubectl-addons catalogue validate broken.yaml unclosed.yaml manifests/web-1.yaml"),
    ("validate-kind", "kubectl-addons catalogue validate kinds/near.yaml kinds/none.yaml kinds/versioned.yaml kinds/elsewhere.yaml"),
    ("validate-types", "kubectl-addons catalogue validate types.yaml"),
    ("validate-hashes", "kubectl-addons catalogue validate hashes.yaml"),
    ("validate-hashes-channels", "kubectl-addons catalogue validate hashes.yaml --rules channels"),
    ("validate-sources", "kubectl-addons catalogue validate sources.yaml"),

    // render
    ("render", "kubectl-addons render --dir templates --method go-template --data data.yaml"),
    ("render-json", "kubectl-addons render --dir templates --method go-template --data data.yaml --set colour=red -o json"),
    ("render-raw", "kubectl-addons render --dir templates --method go-template --data data.yaml --set colour=red -o raw"),
    ("render-strict", "kubectl-addons render --dir templates --method go-template --data data.yaml --strict"),
    ("render-mistake", "kubectl-addons render --dir mistaken --method go-template --data data.yaml"),
    ("render-not-rendered", "kubectl-addons render --dir mistaken --method manifest"),
    ("render-no-such-version", "kubectl-addons render web@7 --channel index.yaml --k8s 1.36.3"),
    ("render-no-helm", "kubectl-addons render --dir chart --method helm --k8s 1.36.3"),
    ("render-no-version", "kubectl-addons render --dir chart --method helm --data missing.yaml"),

    // Sources.
    ("source-missing", "kubectl-addons search --channel missing.yaml --k8s 1.36.3"),
    ("source-folder", "kubectl-addons search --channel manifests --k8s 1.36.3"),
    ("source-scheme", "kubectl-addons search --channel ftp://example.test/index.yaml --k8s 1.36.3"),
    ("source-offline", "kubectl-addons search --offline --channel https://example.test/index.yaml --k8s 1.36.3"),
    ("source-file-url", "kubectl-addons search --channel file://index.yaml --k8s 1.36.3"),
    ("source-credentials", "kubectl-addons search --channel https://me:secret@example.test/index.yaml --k8s 1.36.3"),

    // Kubeconfigs.
    ("kubeconfig-none", "kubectl-addons list"),
    ("kubeconfig-missing", "KUBECONFIG=missing kubectl-addons list"),
    ("kubeconfig-broken", "KUBECONFIG=kubeconfig-broken kubectl-addons list"),
    ("kubeconfig-context", "KUBECONFIG=missing:kubeconfig kubectl-addons list --context elsewhere"),
    ("kubeconfig-server", "KUBECONFIG=kubeconfig kubectl-addons list --server 127.0.0.1:1"),

    // Completion.
    ("complete-commands", "kubectl_complete-addons ''"),
    ("complete-addons", "kubectl_complete-addons show --channel index.yaml ''"),
    ("complete-core", "kubectl_complete-addons show --core --channel catalogue.yaml d"),
    ("complete-core-hidden", "kubectl_complete-addons show --channel=catalogue.yaml ''"),
    ("complete-flags", "kubectl_complete-addons search --k"),
    ("complete-values", "kubectl_complete-addons search --rules d"),
    ("complete-contexts", "KUBECONFIG=kubeconfig kubectl_complete-addons list --context t"),
];
