// Package oidc has nothing: a module does not log in anywhere.
package oidc
