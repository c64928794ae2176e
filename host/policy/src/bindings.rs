//! The generated bindings of the contract, as a host calls it. What must not enter: what the calls mean.
#![expect(missing_docs, reason = "the generated items are documented in policy.wit")]

wasmtime::component::bindgen!({
    path: "../../sdk/wit",
    world: "policy",
    ownership: Borrowing { duplicate_if_necessary: true },
});

pub use exports::whittle::policy::scoring;
