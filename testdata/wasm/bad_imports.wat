;; Imports what no host has: an unknown function that is no operation, a known
;; one of the wrong type, something other than a function, a function that the
;; ABI no longer has, another module, and WASI that does not exist.
(module
  (import "reconciler_v1" "teleport" (func (param i32) (result i32)))
  (import "reconciler_v1" "take" (func (param i32) (result i32)))
  (import "reconciler_v1" "color" (global i32))
  (import "reconciler_v1" "now_ms" (func (result i64)))
  (import "env" "abort" (func))
  (import "wasi_snapshot_preview1" "fd_teleport" (func))
  (import "wasi_snapshot_preview1" "proc_exit" (func))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0)))
