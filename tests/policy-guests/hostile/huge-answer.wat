;; Answers the same 64 KiB four thousand times over.
(func $price (param i32 i32 i32 i32) (result i32)
  (local $at i32)
  (loop $again
    (i32.store (i32.add (i32.const 4096) (i32.mul (local.get $at) (i32.const 8))) (i32.const 65536))
    (i32.store (i32.add (i32.const 4100) (i32.mul (local.get $at) (i32.const 8))) (i32.const 8000))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 4000))))
  (i32.store (i32.const 0) (i32.const 4096))
  (i32.store (i32.const 4) (i32.const 4000))
  (i32.const 0))
