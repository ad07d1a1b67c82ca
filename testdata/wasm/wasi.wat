;; Uses WASI by the last byte of its request:
;;   1 prints to stdout    2 prints to stderr, then unreachable
;;   3 exits with code 3   4 exits with code 0
;;   5 reads the real-time clock to 512, the monotonic one to 520, 8 random bytes to 528
;;   6 sleeps for an hour  7 the number of arguments to 512, of environment variables to 520
;;   8 prints 4 KiB of dots without an end of line, 200 times
;;   9 prints 1,000 lines of a dot at once
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "first line\nsecond, without an end")
  (data (i32.const 64) "panic: out of luck\n\ngoroutine 1\n")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "_initialize") (call $print (i32.const 1) (i32.const 16) (i32.const 11)))

  (func $print (param $fd i32) (param $ptr i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $ptr))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))

  (func $flood
    (local $n i32)
    (memory.fill (i32.const 8192) (i32.const 46) (i32.const 4096))
    (loop $again
      (call $print (i32.const 1) (i32.const 8192) (i32.const 4096))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $n) (i32.const 200)))))

  (func $lines
    (local $at i32)
    (local.set $at (i32.const 8192))
    (loop $again
      (i32.store16 (local.get $at) (i32.const 0x0a2e))
      (local.set $at (i32.add (local.get $at) (i32.const 2)))
      (br_if $again (i32.lt_u (local.get $at) (i32.const 10192))))
    (call $print (i32.const 1) (i32.const 8192) (i32.const 2000)))

  (func $sleep
    ;; one subscription: to the monotonic clock, relative
    (memory.fill (i32.const 4096) (i32.const 0) (i32.const 48))
    (i32.store (i32.const 4112) (i32.const 1))
    (i64.store (i32.const 4120) (i64.const 3600000000000))
    (drop (call $poll_oneoff (i32.const 4096) (i32.const 4160) (i32.const 1) (i32.const 4224))))

  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $mode i32)
    (local.set $mode (i32.load8_u (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 1))))
    (if (i32.eq (local.get $mode) (i32.const 1)) (then (call $print (i32.const 1) (i32.const 16) (i32.const 33))))
    (if (i32.eq (local.get $mode) (i32.const 2)) (then
      (call $print (i32.const 2) (i32.const 64) (i32.const 32))
      (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 3)) (then (call $proc_exit (i32.const 3))))
    (if (i32.eq (local.get $mode) (i32.const 4)) (then (call $proc_exit (i32.const 0))))
    (if (i32.eq (local.get $mode) (i32.const 5)) (then
      (drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 512)))
      (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 520)))
      (drop (call $random_get (i32.const 528) (i32.const 8)))))
    (if (i32.eq (local.get $mode) (i32.const 6)) (then (call $sleep)))
    (if (i32.eq (local.get $mode) (i32.const 7)) (then
      (drop (call $args_sizes_get (i32.const 512) (i32.const 516)))
      (drop (call $environ_sizes_get (i32.const 520) (i32.const 524)))))
    (if (i32.eq (local.get $mode) (i32.const 8)) (then (call $flood)))
    (if (i32.eq (local.get $mode) (i32.const 9)) (then (call $lines)))
    (i64.const 0)))
