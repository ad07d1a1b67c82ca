// Package protobuf has no code. The folder below it has the file that protobuf has
// another one of in a module.
package protobuf
