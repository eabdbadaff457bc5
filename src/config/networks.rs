//! Networks of trusted proxies, and which hosts are this one.

use std::net::IpAddr;

use ipnet::IpNet;

use super::values::comma_separated;

/// Parses comma-separated IP addresses and CIDR blocks; an address is a block of one. IPv4 addresses in the form of
/// IPv6 become plain ones, because clients' addresses are compared in that form. `None` if a part is neither.
pub fn networks(text: &str) -> Option<Vec<IpNet>> {
    let network = |part: &str| {
        let block = part.parse().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from))?;
        let bits = block.prefix_len().checked_sub(96);
        match (block.addr().to_canonical(), bits) {
            (address @ IpAddr::V4(_), Some(bits)) => IpNet::new(address, bits).ok(),
            _ => Some(block),
        }
    };
    comma_separated(text).map(network).collect()
}

/// Whether a name or an IP address (without brackets) is certain to mean this host. Other names may resolve to a
/// loopback address today and to another one tomorrow.
pub fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_addresses_or_blocks_and_mapped_ones_are_ipv4() {
        for (text, expected) in [
            ("", vec![]),
            ("10.0.0.0/8, 192.0.2.1", vec!["10.0.0.0/8", "192.0.2.1/32"]),
            ("2001:db8::/32,::1", vec!["2001:db8::/32", "::1/128"]),
            ("::ffff:10.0.0.1,::ffff:10.0.0.0/104", vec!["10.0.0.1/32", "10.0.0.0/8"]),
            ("::ffff:0:0/96", vec!["0.0.0.0/0"]),
        ] {
            let found = networks(text).unwrap_or_default();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(networks("10.0.0.0/33"), None);
        assert_eq!(networks("localhost"), None);
    }
}
