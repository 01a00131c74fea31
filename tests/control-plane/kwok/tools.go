//go:build tools

// Package tools pins the programs of the test control plane.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
