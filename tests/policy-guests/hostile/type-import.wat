;; Imports nothing but a type.
(component
  (import "whittle:policy/types@0.1.0" (instance
    (type $table (record (field "rows" u32)))
    (export "table" (type (eq $table))))))
