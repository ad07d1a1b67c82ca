// SPDX-License-Identifier: Apache-2.0

// Package pq has a function that lib/pq does not define for wasip1, up to version 1.10. wasmctl
// build adds the other file to that library. Newer versions have it in internal/pqutil.
package pq
