//! Which addresses a catalogue in a cluster may not lead to. [`refuse`] is the one rule: it sees every address that a name
//! resolves to, and every address that stands in a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// A name or a URL leads to an address that only this machine may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is a link-local address")]
pub struct Refused(pub IpAddr);

/// Refuses link-local addresses, where clouds serve the credentials of a machine, in every spelling, and the address that AWS
/// uses besides.
fn refuse(address: IpAddr) -> Result<(), Refused> {
    const AWS_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d).is_link_local()
    };
    let is_refused = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => match address.segments() {
            // Mapped, compatible, translated (RFC 6052) and 6to4.
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x2002, high, low, ..] => v4(high, low),
            _ => address.is_unicast_link_local() || address == AWS_METADATA,
        },
    };
    if is_refused {
        return Err(Refused(address));
    }
    Ok(())
}

/// Judges a URL whose host is an address; a name is judged when it is resolved.
pub fn check(url: &Url) -> Result<(), Refused> {
    match url.host() {
        Some(Host::Ipv4(address)) => refuse(address.into()),
        Some(Host::Ipv6(address)) => refuse(address.into()),
        Some(Host::Domain(_)) | None => Ok(()),
    }
}

/// Resolves names as the machine does and judges every address. Behind a proxy it is the proxy that resolves them.
pub struct Guarded;

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            for address in &found {
                refuse(address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_machine_in_every_spelling() {
        for (address, expected) in [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("fe80::1", true),
            ("febf::1", true),
            ("::ffff:169.254.169.254", true),
            ("::169.254.169.254", true),
            ("64:ff9b::169.254.169.254", true),
            ("2002:a9fe:a9fe::1", true),
            ("fd00:ec2::254", true),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(
                refuse(address.parse().unwrap()).is_err(),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn addresses_in_urls() {
        for (url, refused) in [
            ("http://169.254.169.254/latest", true),
            ("http://2851997447/latest", true),
            ("https://[::ffff:a9fe:a9fe]/latest", true),
            ("https://10.0.0.1/latest", false),
            ("https://example.com/", false),
        ] {
            assert_eq!(check(&url.parse().unwrap()).is_err(), refused, "{url}");
        }
    }

    /// A name whose only record is such an address; resolvers read addresses as names of themselves.
    #[tokio::test]
    async fn a_name_is_judged_by_its_addresses() {
        let resolve = |name: &str| Guarded.resolve(name.parse().unwrap());
        let error = resolve("169.254.169.254").await.err().unwrap();
        assert_eq!(
            error.downcast_ref::<Refused>(),
            Some(&Refused(Ipv4Addr::new(169, 254, 169, 254).into()))
        );
        assert!(resolve("127.0.0.1").await.is_ok());
    }
}
