;; Has no manifest section, but describe.
(module
  (memory (export "memory") 1)
  (data (i32.const 16) "\85\a4name\a9described\a3abi\01\a8requires\91\aaconfig_get\abconcurrency\02\a6config\81\a5color\a4blue")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "describe") (result i64) (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const 74)))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0)))
