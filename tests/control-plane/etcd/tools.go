//go:build tools

// Package tools pins the programs of the test control plane.
package tools

import _ "go.etcd.io/etcd/server/v3"
