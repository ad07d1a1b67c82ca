// SPDX-License-Identifier: Apache-2.0

// Package bench compares wasmctl with native peers that do the same work on the
// same control plane. `make bench` runs it.
package bench
