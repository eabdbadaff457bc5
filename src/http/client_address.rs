//! The address of the client, also if there are proxies between it and this process.

use std::net::IpAddr;

use ipnet::IpNet;

/// Finds the client's address. It is the address of the peer, unless that is a trusted proxy: then it is the rightmost
/// address in `X-Forwarded-For` that is not a trusted proxy. Each proxy appends the address it sees, so the client may
/// have written everything further left itself. Text that is not an address ends the search, because no trusted proxy
/// wrote it; empty elements are ignored (RFC 9110, 5.6.1.2). `forwarded` holds all `X-Forwarded-For` headers in order.
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded: impl DoubleEndedIterator<Item = &'a str>,
    trusted: &[IpNet],
) -> IpAddr {
    let mut client = peer.to_canonical();
    let hops = forwarded.rev().flat_map(|header| header.rsplit(','));
    for hop in hops.map(|hop| hop.trim_matches([' ', '\t'])).filter(|hop| !hop.is_empty()) {
        if !is_trusted_proxy(client, trusted) {
            break;
        }
        match parse(hop) {
            Some(address) => client = address,
            None => break,
        }
    }
    client
}

/// Whether `address` is one of the configured proxies.
pub fn is_trusted_proxy(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address.to_canonical()))
}

/// Parses an address, which some proxies write with a port, in brackets or in quotes.
fn parse(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim_matches('"');
    let bare = hop.parse().ok().or_else(|| hop.parse().ok().map(|a: std::net::SocketAddr| a.ip()));
    let bracketed = || hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    bare.or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

/// The part of an address that a client cannot change at will. An IPv6 client commonly has a whole /64 to itself
/// (RFC 8273), so the lower 64 bits of its address are cleared.
pub fn network(address: IpAddr) -> IpAddr {
    first_bits(address, 32, 64)
}

/// The network of a site, to which providers hand out a /48 at most (RFC 6177), so the lower 80 bits of an IPv6 address
/// are cleared. `None` for IPv4.
pub fn site(address: IpAddr) -> Option<IpAddr> {
    Some(first_bits(address, 32, 48)).filter(IpAddr::is_ipv6)
}

/// The network of a provider, in which all addresses of a client with many of them commonly are: a /16 in IPv4, and in
/// IPv6 the /32 that registries allocate at least (ripe-738, 5.1.1).
pub fn provider_network(address: IpAddr) -> IpAddr {
    first_bits(address, 16, 32)
}

/// An address of which all but the first so many bits are cleared.
pub fn first_bits(address: IpAddr, of_ipv4: u32, of_ipv6: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & !(u32::MAX >> (of_ipv4 - 1) >> 1)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !(u128::MAX >> of_ipv6)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
        let trusted = ["10.0.0.0/8".parse()?, "::1/128".parse()?];
        Ok(client_address(peer.parse()?, forwarded.iter().copied(), &trusted).to_string())
    }

    #[test]
    fn only_trusted_proxies_are_believed() -> Result<(), Box<dyn std::error::Error>> {
        for (peer, forwarded, expected, reason) in [
            ("192.0.2.1", vec!["203.0.113.9"], "192.0.2.1", "the peer is not trusted"),
            ("10.0.0.1", vec![], "10.0.0.1", "no header"),
            ("10.0.0.1", vec!["203.0.113.9"], "203.0.113.9", "one proxy"),
            (
                "10.0.0.1",
                vec!["198.51.100.7, 203.0.113.9"],
                "203.0.113.9",
                "the client wrote the left one",
            ),
            ("10.0.0.1", vec!["203.0.113.9, 10.0.0.2"], "203.0.113.9", "two proxies"),
            ("10.0.0.1", vec!["198.51.100.7", "203.0.113.9"], "203.0.113.9", "two headers"),
            ("10.0.0.1", vec!["10.0.0.3, 10.0.0.2"], "10.0.0.3", "all hops are trusted"),
            ("10.0.0.1", vec!["203.0.113.9, nonsense"], "10.0.0.1", "not an address"),
            ("10.0.0.1", vec!["203.0.113.9,"], "203.0.113.9", "an empty element at the end"),
            ("10.0.0.1", vec!["203.0.113.9, \t,, "], "203.0.113.9", "several"),
            ("10.0.0.1", vec!["203.0.113.9", ""], "203.0.113.9", "an empty header"),
            ("10.0.0.1", vec!["203.0.113.9,,10.0.0.2"], "203.0.113.9", "one between two proxies"),
            ("10.0.0.1", vec![" , "], "10.0.0.1", "nothing else"),
            ("10.0.0.1", vec!["\"203.0.113.9\""], "203.0.113.9", "in quotes"),
            ("10.0.0.1", vec!["\"[2001:db8::1]:4711\""], "2001:db8::1", "in quotes, with a port"),
            ("10.0.0.1", vec!["203.0.113.9:4711"], "203.0.113.9", "with a port"),
            ("::1", vec!["[2001:db8::1]:4711"], "2001:db8::1", "IPv6 with a port"),
            ("::1", vec!["[2001:db8::1]"], "2001:db8::1", "IPv6 in brackets"),
            ("::ffff:10.0.0.1", vec!["::ffff:203.0.113.9"], "203.0.113.9", "IPv4-mapped"),
        ] {
            assert_eq!(client(peer, &forwarded)?, expected, "{reason}");
        }
        Ok(())
    }

    #[test]
    fn an_ipv6_client_is_known_by_its_first_64_bits() -> Result<(), Box<dyn std::error::Error>> {
        assert_eq!(network("2001:db8:1:2:3:4:5:6".parse()?), "2001:db8:1:2::".parse::<IpAddr>()?);
        assert_eq!(network("::ffff:192.0.2.1".parse()?), "192.0.2.1".parse::<IpAddr>()?);
        assert_eq!(network("192.0.2.1".parse()?), "192.0.2.1".parse::<IpAddr>()?);
        assert_eq!(site("2001:db8:1:2:3:4:5:6".parse()?), Some("2001:db8:1::".parse()?));
        assert_eq!(site("::ffff:192.0.2.1".parse()?), None);
        let provider = provider_network("2001:db8:1:2:3:4:5:6".parse()?);
        assert_eq!(provider, "2001:db8::".parse::<IpAddr>()?);
        for address in ["192.0.2.1", "::ffff:192.0.2.1"] {
            assert_eq!(provider_network(address.parse()?), "192.0.0.0".parse::<IpAddr>()?);
        }
        Ok(())
    }
}
