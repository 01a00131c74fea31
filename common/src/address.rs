//! Addresses that only the machine itself may connect to: those at which a cloud serves its credentials, and its own.
//!
//! All guards call [`scope`]: the one for sources, and the one for the servers in kubeconfigs (semantics 6.3, 6.4).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The range of machines that can reach an address, as seen from the machine that connects to it. The most dangerous comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressScope {
    /// Only the machine's own link, where clouds serve credentials.
    LinkLocal,
    /// A cloud service for this machine only.
    Metadata,
    /// The machine itself.
    Machine,
    /// Any other machine.
    Other,
}

/// IPv4 prefixes, with their length in bits.
const V4: [(Ipv4Addr, u32, AddressScope); 6] = [
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressScope::LinkLocal),
    // Alibaba Cloud.
    (
        Ipv4Addr::new(100, 100, 100, 200),
        32,
        AddressScope::Metadata,
    ),
    // WireServer of Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32, AddressScope::Metadata),
    // Oracle Cloud.
    (Ipv4Addr::new(192, 0, 0, 192), 32, AddressScope::Metadata),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressScope::Machine),
    // A connection to 0.0.0.0 reaches this machine.
    (Ipv4Addr::new(0, 0, 0, 0), 8, AddressScope::Machine),
];

/// IPv6 prefixes, with their length in bits.
const V6: [(Ipv6Addr, u32, AddressScope); 6] = [
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
        AddressScope::LinkLocal,
    ),
    // Instance metadata of AWS, and the credentials of EKS pods.
    (
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        128,
        AddressScope::Metadata,
    ),
    (
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
        128,
        AddressScope::Metadata,
    ),
    // Google Cloud.
    (
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
        128,
        AddressScope::Metadata,
    ),
    (Ipv6Addr::LOCALHOST, 128, AddressScope::Machine),
    (Ipv6Addr::UNSPECIFIED, 128, AddressScope::Machine),
];

/// Returns the scope of an address, also of an IPv4 address that is embedded in an IPv6 one.
#[must_use]
pub fn scope(address: IpAddr) -> AddressScope {
    let v6 = match address {
        IpAddr::V4(v4) => return scope_v4(v4),
        IpAddr::V6(v6) => v6,
    };
    let found = V6.iter().find(|(prefix, length, _)| {
        let unlike = prefix.to_bits() ^ v6.to_bits();
        unlike.leading_zeros() >= *length
    });
    if let Some((.., scope)) = found {
        return *scope;
    }
    let embedded = embedded_v4(v6).into_iter().map(scope_v4);
    embedded.min().unwrap_or(AddressScope::Other)
}

/// Whether a text is safe as a host, or as the user before it, in the arguments of a program: a shell that `ssh` starts
/// (`ProxyCommand … %h`) reads it as one word.
#[must_use]
pub fn is_safe_argument(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_word)
}

fn scope_v4(v4: Ipv4Addr) -> AddressScope {
    let found = V4.iter().find(|(prefix, length, _)| {
        let unlike = prefix.to_bits() ^ v4.to_bits();
        unlike.leading_zeros() >= *length
    });
    found.map_or(AddressScope::Other, |(.., scope)| *scope)
}

/// Returns every IPv4 address that may be embedded in an IPv6 address: mapped, compatible, 6to4, translated (RFC 6052 and RFC 8215),
/// Teredo and ISATAP. In the local prefix of RFC 8215, the position depends on the network, so every position that is not padding
/// counts.
fn embedded_v4(v6: Ipv6Addr) -> Vec<Ipv4Addr> {
    let octets = v6.octets();
    let at = |positions: [usize; 4]| {
        let [a, b, c, d] = positions.map(|at| octets.get(at).copied().unwrap_or_default());
        Ipv4Addr::new(a, b, c, d)
    };
    let last = at([12, 13, 14, 15]);
    let mut found = match v6.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![last],
        [0x64, 0xff9b, 1, ..] => {
            let positions = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]];
            let found = positions.into_iter().map(at).chain([last]);
            found.filter(|v4| v4.octets()[0] != 0).collect()
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        [0x2001, 0, ..] => vec![at([4, 5, 6, 7]), Ipv4Addr::from_bits(!last.to_bits())],
        _ => Vec::new(),
    };
    if matches!(v6.segments(), [.., 0 | 0x200, 0x5efe, _, _]) {
        found.push(last);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_one_word() {
        for (text, expected) in [
            ("git.example-1.com", true),
            ("my_host", true),
            ("2001:db8::1", true),
            ("", false),
            ("-oProxyCommand=id", false),
            ("$(id)", false),
            ("a;id", false),
            ("a b", false),
            ("fe80::1%eth0", false),
            ("`id`", false),
        ] {
            assert_eq!(is_safe_argument(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_in_every_spelling() {
        for (scope, addresses) in [
            (
                AddressScope::LinkLocal,
                &[
                    "169.254.169.254",
                    "169.254.0.1",
                    "fe80::1",
                    "febf::1",
                    "::ffff:169.254.169.254",
                    "::169.254.169.254",
                    "64:ff9b::169.254.169.254",
                    "2002:a9fe:a9fe::1",
                    // RFC 8215 with prefixes of 48, 56, 64 and 96 bits.
                    "64:ff9b:1:a9fe:a9:fe00::",
                    "64:ff9b:1:a9:fe:a9fe::",
                    "64:ff9b:1:0:a9:fea9:fe00:0",
                    "64:ff9b:1::169.254.169.254",
                    // Teredo: the server, and the client inverted.
                    "2001:0:a9fe:a9fe::1",
                    "2001:0:102:304:0:0:5601:5601",
                    "2001:db8::5efe:169.254.169.254",
                    "2001:db8::200:5efe:169.254.169.254",
                ][..],
            ),
            (
                AddressScope::Metadata,
                &[
                    "100.100.100.200",
                    "168.63.129.16",
                    "192.0.0.192",
                    "::ffff:100.100.100.200",
                    "64:ff9b:1::168.63.129.16",
                    "fd00:ec2::254",
                    "fd00:ec2::23",
                    "fd20:ce::254",
                ],
            ),
            (
                AddressScope::Machine,
                &[
                    "127.0.0.1",
                    "127.8.8.8",
                    "0.0.0.0",
                    "::",
                    "::1",
                    "::ffff:127.0.0.1",
                    "64:ff9b::127.0.0.1",
                    "64:ff9b:1::127.0.0.1",
                ],
            ),
            (
                AddressScope::Other,
                &[
                    "10.0.0.1",
                    "192.168.1.1",
                    "100.100.100.201",
                    "192.0.0.191",
                    "2001:db8::1",
                    "fd00:ec2::1",
                    "64:ff9b::10.0.0.1",
                    "64:ff9b:1::10.0.0.1",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(super::scope(address.parse().unwrap()), scope, "{address}");
            }
        }
    }
}
