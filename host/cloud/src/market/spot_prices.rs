//! Today's spot prices by zone and type.

use std::collections::BTreeMap;

use aws_sdk_ec2::{primitives::DateTime, types::SpotPrice};
use whittle_model::{Micros, Timestamp};

use super::pages::{Page, all};
use crate::{
    aws::Aws,
    error::{CloudError, ErrorKind},
};

const ACTION: &str = "DescribeSpotPriceHistory";
const OBJECT: &str = "of today";
const PAGE: i32 = 1000;
/// The first is what accounts without EC2-Classic see as well; some old types are listed under the second alone.
const PRODUCTS: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

/// The price by (zone, type).
pub(crate) type SpotPrices = BTreeMap<(String, String), Micros>;

/// The price of everything that is sold as spot.
pub(crate) async fn read(aws: &Aws, now: Timestamp) -> Result<SpotPrices, CloudError> {
    let products = PRODUCTS.iter().map(|product| (*product).to_owned()).collect();
    // A history from now on holds the price that counts now of each market, and no older ones.
    let request = aws
        .ec2
        .describe_spot_price_history()
        .set_product_descriptions(Some(products))
        .start_time(DateTime::from_millis(now.0))
        .max_results(PAGE);
    let history = all(ACTION, OBJECT, |token| {
        let request = request.clone().set_next_token(token);
        async move {
            let answer = aws.call(ACTION, OBJECT, || request.clone().send()).await?;
            Ok(Page { items: answer.spot_price_history.unwrap_or_default(), next: answer.next_token })
        }
    })
    .await?;
    let prices = newest(history);
    if prices.is_empty() {
        return Err(CloudError::local(ACTION, OBJECT, ErrorKind::Other, "the answer has no price"));
    }
    Ok(prices)
}

/// Of several prices of a market the newest; of equally new ones the first.
fn newest(history: Vec<SpotPrice>) -> SpotPrices {
    let mut prices: BTreeMap<(String, String), (Option<DateTime>, Micros)> = BTreeMap::new();
    for told in history {
        let price = told.spot_price.as_deref().and_then(Micros::from_dollars).filter(|price| *price > Micros(0));
        let (Some(zone), Some(instance_type), Some(price)) = (told.availability_zone, told.instance_type, price) else { continue };
        let market = (zone, instance_type.as_str().to_owned());
        if prices.get(&market).is_none_or(|(when, _)| *when < told.timestamp) {
            prices.insert(market, (told.timestamp, price));
        }
    }
    prices.into_iter().map(|(market, (_, price))| (market, price)).collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{InstanceType, RiProductDescription};

    use super::*;

    fn told(zone: &str, instance_type: &str, price: &str, second: Option<i64>) -> SpotPrice {
        SpotPrice::builder()
            .availability_zone(zone)
            .instance_type(InstanceType::from(instance_type))
            .product_description(RiProductDescription::LinuxUnix)
            .spot_price(price)
            .set_timestamp(second.map(DateTime::from_secs))
            .build()
    }

    #[test]
    fn the_newest_price_of_a_market_counts() {
        let prices = newest(vec![
            told("us-east-1a", "m5.large", "0.031000", Some(100)),
            told("us-east-1a", "m5.large", "0.033500", Some(300)),
            told("us-east-1a", "m5.large", "0.035000", Some(200)),
            told("us-east-1a", "m5.large", "0.036000", Some(300)),
            told("us-east-1b", "m5.large", "0.041200", None),
            told("us-east-1b", "m5.large", "0.042200", Some(1)),
            told("us-east-1a", "q99.huge", "12.5", Some(1)),
            told("us-east-1a", "c5.large", "free", Some(1)),
            told("us-east-1a", "c5.large", "0.0000", Some(2)),
            SpotPrice::builder().availability_zone("us-east-1a").spot_price("1").build(),
        ]);
        let listed: Vec<_> = prices.iter().map(|((zone, name), price)| (zone.as_str(), name.as_str(), price.0)).collect();
        assert_eq!(
            listed,
            [("us-east-1a", "m5.large", 33_500), ("us-east-1a", "q99.huge", 12_500_000), ("us-east-1b", "m5.large", 42_200)]
        );
    }
}
