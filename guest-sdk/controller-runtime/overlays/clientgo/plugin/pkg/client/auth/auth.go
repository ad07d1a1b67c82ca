// Package auth has nothing: a module does not log in anywhere.
package auth
