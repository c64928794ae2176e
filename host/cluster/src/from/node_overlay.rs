//! NodeOverlays.

use whittle_model::{Micros, NodeOverlay, PriceChange, Resources, resources};

use super::{Cx, amounts, names, requirement};
use crate::api;

/// What an instance type has by itself.
const OWN: [&str; 4] = [resources::CPU, resources::MEMORY, resources::EPHEMERAL_STORAGE, resources::PODS];

/// A NodeOverlay, checked.
pub(crate) fn node_overlay(written: &api::NodeOverlay, cx: &mut Cx) -> NodeOverlay {
    let name = names::object_name(&written.metadata, cx);
    let spec = &written.spec;
    cx.key("spec", |cx| {
        if spec.weight.is_some_and(|weight| !(1..=10_000).contains(&weight)) {
            cx.broken_at("weight", "is out of range; write 1 to 10000, or leave it out");
        }
        NodeOverlay {
            name,
            weight: spec.weight.unwrap_or(0),
            requirements: requirement::of_overlay(&spec.requirements, cx),
            price: price(spec, cx),
            capacity: capacity(spec, cx),
        }
    })
}

fn price(spec: &api::NodeOverlaySpec, cx: &mut Cx) -> Option<PriceChange> {
    if spec.price.is_some() && spec.price_adjustment.is_some() {
        cx.broken_at("price", "price and priceAdjustment exclude each other; keep one of them");
    }
    if let Some(text) = &spec.price {
        let price = decimal(text).map(PriceChange::Absolute);
        if price.is_none() {
            cx.broken_at("price", format!("{text:?} is no price; write dollars an hour, such as 0.085"));
        }
        return price;
    }
    let text = spec.price_adjustment.as_ref()?;
    let change = adjustment(text);
    if change.is_none() {
        let rule = "write dollars an hour or percent with a sign, such as -0.02, +10% or -15%, and no less than -100%";
        cx.broken_at("priceAdjustment", format!("{text:?} is no adjustment: {rule}"));
    }
    change
}

fn adjustment(text: &str) -> Option<PriceChange> {
    const ALL: i64 = 1_000_000;
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        (_, _) => return None,
    };
    match rest.strip_suffix('%') {
        None => decimal(rest).map(|amount| PriceChange::Add(Micros(sign * amount.0))),
        // A percent is read like a dollar: in millionths.
        Some(percent) => decimal(percent).map(|percent| sign * percent.0 / 100).filter(|share| *share >= -ALL).map(PriceChange::Scale),
    }
}

/// Digits, with digits after a point if there is one.
fn decimal(text: &str) -> Option<Micros> {
    Micros::from_dollars(text).filter(|_| !text.ends_with('.'))
}

fn capacity(spec: &api::NodeOverlaySpec, cx: &mut Cx) -> Resources {
    for name in spec.capacity.iter().flatten().map(|(name, _)| name).filter(|name| OWN.contains(&name.as_str())) {
        cx.keys(&["capacity", name], |cx| {
            cx.broken(format!("{name} is what the instance type has; an overlay adds other resources only"));
        });
    }
    amounts::resources_of("capacity", spec.capacity.as_ref(), cx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjustments_are_dollars_or_percent_with_a_sign() {
        for (text, wanted) in [
            ("+0.5", Some(PriceChange::Add(Micros(500_000)))),
            ("-.02", Some(PriceChange::Add(Micros(-20_000)))),
            ("+10%", Some(PriceChange::Scale(100_000))),
            ("-15%", Some(PriceChange::Scale(-150_000))),
            ("-12.5%", Some(PriceChange::Scale(-125_000))),
            ("-100%", Some(PriceChange::Scale(-1_000_000))),
            ("+250%", Some(PriceChange::Scale(2_500_000))),
            ("-101%", None),
            ("10%", None),
            ("0.5", None),
            ("+", None),
            ("+%", None),
            ("+5.", None),
            ("+1e3", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(adjustment(text), wanted, "{text}");
        }
    }
}
