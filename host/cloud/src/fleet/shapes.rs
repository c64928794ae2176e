//! The plans of the last launch groups. Claims of a group come together and mostly ask for the same: planned for one is
//! planned for all.
//!
//! What must not enter: calls.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use whittle_model::LaunchFailure;

use super::{order::LaunchOrder, plan::Plan};

/// More groups than one round of planning makes.
const KEPT: usize = 64;

/// A plan and its shape, as they are handed out.
pub(crate) type Shaped = (Arc<Plan>, Arc<str>);

/// Plans by launch group, with an order each was made for.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    last: Mutex<BTreeMap<String, (LaunchOrder, Shaped)>>,
}

impl Shapes {
    pub(crate) fn plan(&self, order: &LaunchOrder) -> Result<Shaped, LaunchFailure> {
        // Held while one is made, so that a thousand claims that come at once do not all make it. A panic leaves whole
        // plans behind.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_for, shaped)) = last.get(order.group())
            && alike(made_for, order)
        {
            return Ok(shaped.clone());
        }
        let plan = Plan::new(order)?;
        let shape = plan.shape(order).into();
        let shaped: Shaped = (Arc::new(plan), shape);
        if last.len() >= KEPT {
            last.clear();
        }
        last.insert(order.group().to_owned(), (order.clone(), shaped.clone()));
        Ok(shaped)
    }
}

/// Whether everything that a plan is made of is the same.
fn alike(a: &LaunchOrder, b: &LaunchOrder) -> bool {
    let LaunchOrder { claim, adopt: _, taken: _, class, catalog, sold_out, settings } = a;
    Arc::ptr_eq(class, &b.class)
        && Arc::ptr_eq(catalog, &b.catalog)
        && (sold_out, settings) == (&b.sold_out, &b.settings)
        && (&claim.requirements, &claim.requests, &claim.node_pool) == (&b.claim.requirements, &b.claim.requests, &b.claim.node_pool)
        && (&claim.labels, &claim.annotations) == (&b.claim.labels, &b.claim.annotations)
        && (&claim.taints, &claim.startup_taints) == (&b.claim.taints, &b.claim.startup_taints)
}
