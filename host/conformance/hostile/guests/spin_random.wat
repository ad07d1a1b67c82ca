;; Takes random bytes for ever, as many as there are at once.
(module
  (import "reconciler_v1" "random" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $forever (br_if $forever (i32.eqz (call $random (i32.const 0) (i32.const 65536)))))
    (unreachable)))
