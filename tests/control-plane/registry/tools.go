//go:build tools

// Package tools pins a registry for the tests of sources.
package tools

import _ "github.com/distribution/distribution/v3/cmd/registry"
