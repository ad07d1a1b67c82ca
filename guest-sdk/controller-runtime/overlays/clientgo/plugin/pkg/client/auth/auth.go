// Package auth is empty, because a module does not log in.
package auth
