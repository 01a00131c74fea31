//go:build tools

// Package tools pins a peer of the benchmark.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
