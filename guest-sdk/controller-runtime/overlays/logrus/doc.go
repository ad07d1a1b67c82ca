// SPDX-License-Identifier: Apache-2.0

// Package logrus has a function that logrus does not define for wasip1, up to version 1.9.3.
// wasmctl build adds the other file to that library.
package logrus
