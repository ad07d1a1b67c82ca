module github.com/wasmctl/wasmctl/guest-sdk/go

// TinyGo 0.35 reads no newer version.
go 1.23
