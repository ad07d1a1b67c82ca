// Package gcp is empty, because a module does not log in.
package gcp
