//go:build tools

// Package tools pins kops' own tool, which tests of channels are compared with. 1.35 is the last release that has it
// as a program of its own.
package tools

import _ "k8s.io/kops/channels/cmd/channels"
