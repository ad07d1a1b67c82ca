// SPDX-License-Identifier: Apache-2.0

// Package journal replaces the connection to the journal in go-systemd. wasmctl build adds the
// other file to that library, which has the type.
package journal

// Priority is the priority of a message.
type Priority int
