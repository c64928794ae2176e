//! Network interfaces, a line each.

use serde_json::json;

use super::*;

fn made(fields: serde_json::Value, family: IpFamily, efas: u32) -> Vec<Interface> {
    let mut class = json!({"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": []});
    if let (Some(class), Some(fields)) = (class.as_object_mut(), fields.as_object()) {
        class.extend(fields.clone());
    }
    let class: Ec2NodeClassSpec = serde_json::from_value(class).expect("a class has these fields");
    interfaces(&class, &["sg-1".to_owned()], family, efas).expect("the time-outs fit")
}

/// Card, device, kind, public address, IPv4 and IPv6 prefixes, IPv6 addresses, whether connections are tracked.
fn page(interfaces: &[Interface]) -> Vec<String> {
    let said = |value: Option<i32>| value.map_or("-".to_owned(), |value| value.to_string());
    let line = |nic: &Interface| {
        format!(
            "{} {} {} {} {} {} {} {}",
            said(nic.card),
            nic.device,
            nic.kind.as_deref().unwrap_or("-"),
            nic.public_address.map_or("-".to_owned(), |public| public.to_string()),
            said(nic.ipv4_prefixes),
            said(nic.ipv6_prefixes),
            said(nic.ipv6_addresses),
            nic.tracking.is_some(),
        )
    };
    interfaces.iter().map(line).collect()
}

#[test]
fn an_instance_has_one_interface_unless_efa_is_asked_for() {
    let none = json!({});
    assert_eq!(page(&made(none.clone(), IpFamily::V4, 0)), ["- 0 - - - - - false"]);
    assert_eq!(page(&made(none.clone(), IpFamily::V6, 0)), ["- 0 - - - - 1 false"]);
    assert_eq!(page(&made(none, IpFamily::V4, 3)), ["0 0 efa - - - - false", "1 1 efa - - - - false", "2 1 efa - - - - false"]);
}

#[test]
fn addresses_are_of_the_clusters_family() {
    let class = json!({"ipPrefixCount": 2, "associatePublicIPAddress": false, "connectionTracking": {"udpTimeout": 30}});
    assert_eq!(page(&made(class.clone(), IpFamily::V4, 0)), ["- 0 - false 2 - - true"]);
    assert_eq!(page(&made(class.clone(), IpFamily::V6, 0)), ["- 0 - false - 2 1 true"]);
    assert_eq!(page(&made(class, IpFamily::V6, 1)), ["0 0 efa false - 2 1 true"]);
    assert_eq!(page(&made(json!({"connectionTracking": {}}), IpFamily::V4, 0)), ["- 0 - - - - - false"]);
}

#[test]
fn listed_interfaces_win_and_efa_only_ones_have_no_addresses() {
    let class = json!({
        "associatePublicIPAddress": true, "ipPrefixCount": 1, "connectionTracking": {"udpTimeout": 30},
        "networkInterfaces": [
            {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        ],
    });
    let listed = made(class, IpFamily::V6, 8);
    assert_eq!(page(&listed), ["0 0 interface true - 1 1 true", "1 1 efa-only - - - - false"]);
    assert!(listed.iter().all(|nic| nic.groups == ["sg-1"]));
}

#[test]
fn a_timeout_beyond_32_bits_is_named() {
    let tracking = ConnectionTracking { udp_timeout: Some(1 << 40), ..ConnectionTracking::default() };
    let read = Tracking::of(Some(&tracking)).map_err(|error| error.to_string());
    assert_eq!(read, Err("making a launch template: connectionTracking.udpTimeout 1099511627776 does not fit 32 bits".to_owned()));
}
