// Package clientgo has no code. The folders below it take the place of client-go's
// packages of the same path when wasmctl build builds a module. The real ones
// bring connections to the API server, which a module does not have, and which
// would double its size.
package clientgo
