// SPDX-License-Identifier: Apache-2.0

// Package providers has no code for native programs. wasmctl build adds its other file to
// Alibaba Cloud's library of credentials, which locks files by a system call that wasip1 does
// not have.
package providers
