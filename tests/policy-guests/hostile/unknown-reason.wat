;; Vetoes for a reason it never gave.
(func $price (param i32 i32 i32 i32) (result i32)
  (i64.store (i32.load offset=4 (local.get 2)) (i64.const -1))
  (i32.add (local.get 2) (i32.const 4)))
