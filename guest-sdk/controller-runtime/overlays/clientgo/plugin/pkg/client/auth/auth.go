// SPDX-License-Identifier: Apache-2.0

// Package auth is empty, because a module does not log in.
package auth
