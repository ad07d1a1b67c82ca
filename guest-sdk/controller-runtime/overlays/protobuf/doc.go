// SPDX-License-Identifier: Apache-2.0

// Package protobuf has no code. A folder below it has a file that replaces one of protobuf in
// modules.
package protobuf
