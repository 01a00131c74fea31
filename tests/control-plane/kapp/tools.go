//go:build tools

// Package tools pins a tool that add-ons are adopted from.
package tools

import _ "carvel.dev/kapp/cmd/kapp"
