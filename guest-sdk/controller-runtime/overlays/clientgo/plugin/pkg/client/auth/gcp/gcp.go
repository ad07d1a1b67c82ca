// SPDX-License-Identifier: Apache-2.0

// Package gcp is empty, because a module does not log in.
package gcp
