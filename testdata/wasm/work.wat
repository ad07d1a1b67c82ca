;; Works as long as its request says: the object ends with two i32, rounds and
;; calls. It goes through a loop as many times as rounds says, and then, calls
;; times, calls api_get with an empty request and goes through the loop again.
(module
  (import "reconciler_v1" "api_get" (func $api_get (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 2)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))

  (func $work (param $rounds i32)
    (if (i32.eqz (local.get $rounds)) (then (return)))
    (loop $again
      (local.set $rounds (i32.sub (local.get $rounds) (i32.const 1)))
      (br_if $again (local.get $rounds))))

  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $rounds i32) (local $calls i32)
    (local.set $ptr (i32.add (local.get $ptr) (local.get $len)))
    (local.set $rounds (i32.load (i32.sub (local.get $ptr) (i32.const 8))))
    (local.set $calls (i32.load (i32.sub (local.get $ptr) (i32.const 4))))
    (call $work (local.get $rounds))
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $calls)))
        (local.set $calls (i32.sub (local.get $calls) (i32.const 1)))
        (drop (call $api_get (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
        (call $work (local.get $rounds))
        (br $again)))
    (i64.const 0)))
