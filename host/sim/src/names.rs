//! Names as Kubernetes and EC2 make them, the same for the same seed.

use crate::random::Seed;

/// `count` letters as Kubernetes uses them in generated names: no vowels, so no words.
pub(crate) fn letters(seed: Seed, count: u64) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..count).map(|n| char::from(ALPHABET[usize::try_from(seed.nth(n).between(0, 26)).unwrap_or(0)])).collect()
}

/// An instance id: `i-` and 17 hexadecimal digits.
pub(crate) fn instance_id(seed: Seed) -> String {
    format!("i-0{:016x}", seed.word())
}

/// The name of the `number`th node to boot in a region, made of its address as EC2 makes it.
pub(crate) fn host_name(number: u32, region: &str) -> String {
    let suffix = if region == "us-east-1" { "ec2.internal".to_owned() } else { format!("{region}.compute.internal") };
    format!("ip-10-0-{}-{}.{suffix}", number / 250, number % 250 + 4)
}
