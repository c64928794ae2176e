//! The price list: what an hour of each type costs on demand.
//!
//! What must not enter: prices of licences, reservations and savings plans.

use std::collections::BTreeMap;

use aws_sdk_pricing::types::{Filter, FilterType};
use serde::Deserialize;
use whittle_model::Micros;

use super::pages::{Page, all};
use crate::{
    aws::Aws,
    error::{CloudError, ErrorKind},
};

const ACTION: &str = "GetProducts";
const SERVICE: &str = "AmazonEC2";
/// The most that a page may hold.
const PAGE: i32 = 100;
/// Shared tenancy, and bare metal, which is listed as dedicated only.
const TENANCIES: [(&str, &str); 2] = [("Shared", "Compute Instance"), ("Dedicated", "Compute Instance (bare metal)")];

/// Whether the partition of this region serves a price list at all: those of governments and of sovereign clouds do not.
pub(crate) fn served(region: &str) -> bool {
    !["us-gov-", "us-iso", "eu-iso", "eusc-"].iter().any(|partition| region.starts_with(partition))
}

/// The price by type.
pub(crate) type ListPrices = BTreeMap<String, Micros>;

/// The price of everything that is sold by the hour.
pub(crate) async fn read(aws: &Aws, region: &str) -> Result<ListPrices, CloudError> {
    let object = format!("on demand in {region}");
    let [shared, metal] = TENANCIES.map(|(tenancy, family)| read_one(aws, region, &object, tenancy, family));
    let (shared, metal) = tokio::join!(shared, metal);
    let currency = if region.starts_with("cn-") { "CNY" } else { "USD" };
    let mut prices = ListPrices::new();
    for line in metal?.iter().chain(&shared?) {
        match price(line, currency) {
            Ok(Some((instance_type, price))) => {
                prices.insert(instance_type, price);
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "a line of the price list cannot be read"),
        }
    }
    if prices.is_empty() {
        return Err(CloudError::local(ACTION, &object, ErrorKind::Other, "the answer has no price"));
    }
    Ok(prices)
}

async fn read_one(aws: &Aws, region: &str, object: &str, tenancy: &str, family: &str) -> Result<Vec<String>, CloudError> {
    let terms = [
        ("regionCode", region),
        ("serviceCode", SERVICE),
        ("preInstalledSw", "NA"),
        ("operatingSystem", "Linux"),
        ("capacitystatus", "Used"),
        ("marketoption", "OnDemand"),
        ("tenancy", tenancy),
        ("productFamily", family),
    ];
    let filters = terms.iter().map(|(field, value)| {
        let filter = Filter::builder().r#type(FilterType::TermMatch).field(*field).value(*value).build();
        filter.expect("type, field and value are set")
    });
    let request = aws.pricing.get_products().service_code(SERVICE).set_filters(Some(filters.collect())).max_results(PAGE);
    all(ACTION, object, |token| {
        let request = request.clone().set_next_token(token);
        async move {
            let answer = aws.call(ACTION, object, || request.clone().send()).await?;
            Ok(Page { items: answer.price_list.unwrap_or_default(), next: answer.next_token })
        }
    })
    .await
}

/// A line of the list. Source: AWS Price List, "Reading service price list files".
#[derive(Deserialize)]
struct Line {
    product: Product,
    #[serde(default)]
    terms: Terms,
}

#[derive(Deserialize)]
struct Product {
    attributes: Attributes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attributes {
    instance_type: Option<String>,
}

#[derive(Deserialize, Default)]
struct Terms {
    #[serde(default, rename = "OnDemand")]
    on_demand: BTreeMap<String, Term>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default)]
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    unit: Option<String>,
    #[serde(default)]
    price_per_unit: BTreeMap<String, String>,
}

/// Type and price of a line; of several prices the lowest. `None` for what is no instance, or costs nothing.
fn price(line: &str, currency: &str) -> Result<Option<(String, Micros)>, serde_json::Error> {
    let line: Line = serde_json::from_str(line)?;
    let dimensions = line.terms.on_demand.values().flat_map(|term| term.price_dimensions.values());
    let hourly = dimensions.filter(|dimension| dimension.unit.as_deref().is_none_or(|unit| unit == "Hrs"));
    let prices = hourly.filter_map(|dimension| Micros::from_dollars(dimension.price_per_unit.get(currency)?));
    let lowest = prices.filter(|price| *price > Micros(0)).min();
    Ok(line.product.attributes.instance_type.filter(|name| !name.is_empty()).zip(lowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const M5: &str = r#"{"product":{"productFamily":"Compute Instance","attributes":{"memory":"8 GiB","vcpu":"2",
        "instanceType":"m5.large","tenancy":"Shared","usagetype":"BoxUsage:m5.large","marketoption":"OnDemand",
        "operatingSystem":"Linux","capacitystatus":"Used","regionCode":"us-east-1"},"sku":"2GCTBU78G22TGEXZ"},
        "serviceCode":"AmazonEC2","terms":{"OnDemand":{"2GCTBU78G22TGEXZ.JRTCKXETXF":{"priceDimensions":{
        "2GCTBU78G22TGEXZ.JRTCKXETXF.6YS6EN2CT7":{"unit":"Hrs","endRange":"Inf",
        "description":"$0.096 per On Demand Linux m5.large Instance Hour","appliesTo":[],
        "rateCode":"2GCTBU78G22TGEXZ.JRTCKXETXF.6YS6EN2CT7","beginRange":"0","pricePerUnit":{"USD":"0.0960000000"}}},
        "sku":"2GCTBU78G22TGEXZ","effectiveDate":"2025-01-01T00:00:00Z","offerTermCode":"JRTCKXETXF","termAttributes":{}}},
        "Reserved":{"2GCTBU78G22TGEXZ.4NA7Y494T4":{"priceDimensions":{"x":{"unit":"Hrs","pricePerUnit":{"USD":"0.0600000000"}}},
        "termAttributes":{"LeaseContractLength":"1yr"}}}},"version":"20250101000000","publicationDate":"2025-01-01T00:00:00Z"}"#;

    fn short(dimensions: &str) -> String {
        format!(
            r#"{{"product":{{"attributes":{{"instanceType":"c7g.metal"}}}},"terms":{{"OnDemand":{{"x":{{"priceDimensions":{{{dimensions}}}}}}}}}}}"#
        )
    }

    #[test]
    fn lines_tell_type_and_hourly_price() {
        let usd = |line: &str| price(line, "USD").map_err(|error| error.to_string()).unwrap();
        assert_eq!(usd(M5), Some(("m5.large".into(), Micros(96_000))), "not the reserved price");
        for (dimensions, micros) in [
            (r#""y":{"pricePerUnit":{"USD":"2.32"}}"#, Some(2_320_000)),
            (r#""a":{"unit":"Hrs","pricePerUnit":{"USD":"0.5000000000"}},"b":{"unit":"Hrs","pricePerUnit":{"USD":"0.25"}}"#, Some(250_000)),
            (r#""a":{"unit":"Quantity","pricePerUnit":{"USD":"100"}},"b":{"unit":"Hrs","pricePerUnit":{"USD":"0.25"}}"#, Some(250_000)),
            (r#""y":{"pricePerUnit":{"USD":"0.0000000000"}}"#, None),
            (r#""y":{"pricePerUnit":{"CNY":"2.32"}}"#, None),
            (r#""y":{"pricePerUnit":{"USD":"much"}}"#, None),
            ("", None),
        ] {
            assert_eq!(usd(&short(dimensions)), micros.map(|m| ("c7g.metal".into(), Micros(m))), "{dimensions}");
        }
        let yuan = price(&short(r#""y":{"pricePerUnit":{"CNY":"2.32"}}"#), "CNY").unwrap();
        assert_eq!(yuan, Some(("c7g.metal".into(), Micros(2_320_000))));
        assert_eq!(usd(r#"{"product":{"attributes":{"storage":"x"}},"terms":{}}"#), None);
        assert_eq!(usd(r#"{"product":{"attributes":{"instanceType":"m5.large"}}}"#), None);
        assert!(price("{", "USD").is_err());
    }

    #[test]
    fn partitions_without_a_price_list_are_known() {
        for (region, serves) in [
            ("us-east-1", true),
            ("us-gov-west-1", false),
            ("cn-north-1", true),
            ("us-iso-east-1", false),
            ("us-isob-east-1", false),
            ("eu-isoe-west-1", false),
            ("eusc-de-east-1", false),
        ] {
            assert_eq!(served(region), serves, "{region}");
        }
    }
}
