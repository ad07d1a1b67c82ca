// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package linear

// keepSmall does nothing: only Linux makes pages huge by itself.
func keepSmall([]byte) {}
