// Package azure has nothing: a module does not log in anywhere.
package azure
