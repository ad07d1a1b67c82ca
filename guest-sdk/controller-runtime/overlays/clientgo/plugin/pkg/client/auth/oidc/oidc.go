// Package oidc is empty, because a module does not log in.
package oidc
