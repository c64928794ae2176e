;; Uses 64-bit memory, which policies may not.
(component (core module (memory i64 1)))
