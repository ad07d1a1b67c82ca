// SPDX-License-Identifier: Apache-2.0

// Package clientgo has no code. The folders below it replace packages of client-go in modules.
// The real ones connect to the API server. A module has no connection, and they would double
// its size.
package clientgo
