// SPDX-License-Identifier: Apache-2.0

// Package azure is empty, because a module does not log in.
package azure
