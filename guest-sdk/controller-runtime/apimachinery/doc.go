// Package apimachinery has no code. The folder below it takes the place of apimachinery's
// package of the same path where nothing but its types would use CBOR: a module does not
// speak it to the API server.
package apimachinery
