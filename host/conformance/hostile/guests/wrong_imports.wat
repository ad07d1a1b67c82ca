;; Imports what no host gives: functions of another module, a memory, one of the
;; host's with another type.
(module
  (import "env" "system" (func (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_spawn" (func))
  (import "reconciler_v1" "log_level" (func (param i64) (result i64)))
  (import "reconciler_v1" "root" (func (result i32)))
  (import "env" "memory" (memory 1))
  (export "memory" (memory 0))
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0)))
