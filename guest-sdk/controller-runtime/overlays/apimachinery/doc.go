// SPDX-License-Identifier: Apache-2.0

// Package apimachinery has no code. A folder below it replaces a package of apimachinery in
// programs that do not use CBOR themselves: a module does not use it with the API server.
package apimachinery
