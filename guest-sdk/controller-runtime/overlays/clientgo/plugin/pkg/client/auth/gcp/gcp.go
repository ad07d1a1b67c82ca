// Package gcp has nothing: a module does not log in anywhere.
package gcp
