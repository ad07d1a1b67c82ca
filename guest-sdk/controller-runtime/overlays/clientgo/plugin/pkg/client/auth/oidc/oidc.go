// SPDX-License-Identifier: Apache-2.0

// Package oidc is empty, because a module does not log in.
package oidc
