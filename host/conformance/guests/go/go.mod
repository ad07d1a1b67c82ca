module github.com/wasmctl/wasmctl/host/conformance/guests/go

// TinyGo 0.35 reads no newer version.
go 1.23

require github.com/wasmctl/wasmctl/guest-sdk/go v0.1.0

replace github.com/wasmctl/wasmctl/guest-sdk/go => ../../../../guest-sdk/go
