// SPDX-License-Identifier: Apache-2.0

// Package shared has the buffer that Azure's library of blobs does not define for wasip1.
// wasmctl build adds the other file to that library.
package shared
