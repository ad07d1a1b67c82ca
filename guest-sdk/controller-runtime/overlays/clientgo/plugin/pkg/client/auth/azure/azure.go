// Package azure is empty, because a module does not log in.
package azure
