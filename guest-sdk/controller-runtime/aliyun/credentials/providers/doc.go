// Package providers has no code that is used natively. wasmctl build puts its other file
// into Aliyun's library of credentials, which asks for a call that wasip1 does not have.
package providers
