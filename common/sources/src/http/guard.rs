//! Which addresses a source may not lead to that the user of this machine did not name. [`refuse`] is the one rule: it sees every
//! address that a name resolves to, and every address that stands in a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::Reach;

/// A name or a URL leads to an address that only this machine may ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Where clouds serve the credentials of a machine.
    #[error("{0} is a link-local address")]
    LinkLocal(IpAddr),
    /// This machine itself.
    #[error("{0} is an address of this machine")]
    Loopback(IpAddr),
    /// Nothing is known of its addresses: a proxy could find any.
    #[error("{0} has no address here")]
    Unresolved(String),
}

fn refuse(address: IpAddr, reach: Reach) -> Result<(), Refused> {
    const AWS_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    if reach == Reach::Own {
        return Ok(());
    }
    let plain = match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => embedded(v6).map_or(address, IpAddr::V4),
    };
    let is_link_local = match plain {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6 == AWS_METADATA,
    };
    if is_link_local {
        return Err(Refused::LinkLocal(address));
    }
    if reach == Reach::Tenant
        && (address.is_loopback() || plain.is_loopback() || is_this_host(plain))
    {
        return Err(Refused::Loopback(address));
    }
    Ok(())
}

/// The IPv4 address that another spelling stands for: mapped, compatible, translated (RFC 6052) and 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// `0.0.0.0/8` and `::`: a connection to them ends at this machine.
fn is_this_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unspecified(),
    }
}

/// Judges a URL before it is asked for. A name is judged by its addresses: behind a proxy no resolver of ours sees them, so they
/// are looked up here. A name without any is left to the connection to fail, unless a proxy could find one for a tenant.
pub async fn check(url: &Url, reach: Reach) -> Result<(), Refused> {
    match url.host() {
        Some(Host::Ipv4(address)) => refuse(address.into(), reach),
        Some(Host::Ipv6(address)) => refuse(address.into(), reach),
        Some(Host::Domain(name)) => check_name(name, reach).await,
        None => Ok(()),
    }
}

async fn check_name(name: &str, reach: Reach) -> Result<(), Refused> {
    match address_of(name, reach).await {
        Err(Refused::Unresolved(_)) if reach == Reach::Cluster => Ok(()),
        judged => judged.map(drop),
    }
}

/// The address to connect to where a name was judged by all of its addresses; `None` where it need not be judged.
///
/// # Errors
/// One that is out of reach; none at all.
pub async fn address_of(name: &str, reach: Reach) -> Result<Option<IpAddr>, Refused> {
    if reach == Reach::Own {
        return Ok(None);
    }
    let found = tokio::net::lookup_host((name, 0)).await;
    let found: Vec<IpAddr> = found.into_iter().flatten().map(|it| it.ip()).collect();
    for address in &found {
        refuse(*address, reach)?;
    }
    match found.first() {
        Some(first) => Ok(Some(*first)),
        None => Err(Refused::Unresolved(name.to_owned())),
    }
}

/// Resolves names as the machine does and judges every address: what was judged is what is connected to.
pub struct Guarded(pub Reach);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            for address in &found {
                refuse(address.ip(), reach)?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (address, whether a catalogue in the cluster may name it, whether a tenant may).
    #[test]
    fn addresses_of_the_machine_in_every_spelling() {
        for (address, cluster, tenant) in [
            ("169.254.169.254", false, false),
            ("169.254.0.1", false, false),
            ("fe80::1", false, false),
            ("febf::1", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("::169.254.169.254", false, false),
            ("64:ff9b::169.254.169.254", false, false),
            ("2002:a9fe:a9fe::1", false, false),
            ("fd00:ec2::254", false, false),
            ("127.0.0.1", true, false),
            ("127.8.8.8", true, false),
            ("0.0.0.0", true, false),
            ("::", true, false),
            ("::1", true, false),
            ("::ffff:127.0.0.1", true, false),
            ("64:ff9b::127.0.0.1", true, false),
            ("10.0.0.1", true, true),
            ("192.168.1.1", true, true),
            ("2001:db8::1", true, true),
        ] {
            let parsed = address.parse().unwrap();
            assert!(refuse(parsed, Reach::Own).is_ok(), "{address}");
            assert_eq!(refuse(parsed, Reach::Cluster).is_ok(), cluster, "{address}");
            assert_eq!(refuse(parsed, Reach::Tenant).is_ok(), tenant, "{address}");
        }
    }

    #[tokio::test]
    async fn addresses_in_urls() {
        for (url, refused) in [
            ("http://169.254.169.254/latest", true),
            ("http://2851997447/latest", true),
            ("https://[::ffff:a9fe:a9fe]/latest", true),
            ("https://10.0.0.1/latest", false),
            ("http://localhost/latest", false),
        ] {
            let checked = check(&url.parse().unwrap(), Reach::Cluster).await;
            assert_eq!(checked.is_err(), refused, "{url}");
        }
        let of_tenant = async |url: &str| check(&url.parse().unwrap(), Reach::Tenant).await;
        assert!(matches!(
            of_tenant("http://localhost/").await,
            Err(Refused::Loopback(_))
        ));
        assert!(matches!(
            of_tenant("http://nowhere.invalid/").await,
            Err(Refused::Unresolved(_))
        ));
    }

    /// A name whose only record is such an address; resolvers read addresses as names of themselves.
    #[tokio::test]
    async fn a_name_is_judged_by_its_addresses() {
        let resolve = |name: &str| Guarded(Reach::Cluster).resolve(name.parse().unwrap());
        let error = resolve("169.254.169.254").await.err().unwrap();
        let expected = Refused::LinkLocal(Ipv4Addr::new(169, 254, 169, 254).into());
        assert_eq!(error.downcast_ref::<Refused>(), Some(&expected));
        assert!(resolve("127.0.0.1").await.is_ok());
    }
}
