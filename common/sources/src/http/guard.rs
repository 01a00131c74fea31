//! Which addresses a source may not lead to that the user of this machine did not name. [`refuse`] is the one rule: it sees every
//! address that a name resolves to, and every address that stands in a URL.

use std::net::{IpAddr, SocketAddr};

use common::address::{self, Scope};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::reach::Addresses;

/// A name or a URL leads to an address that only this machine may ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Where clouds serve the credentials of a machine.
    #[error("{0} is a link-local address")]
    LinkLocal(IpAddr),
    /// A service of the cloud for this machine alone.
    #[error("{0} is an address where a cloud serves the credentials of a machine")]
    Metadata(IpAddr),
    /// This machine itself.
    #[error("{0} is an address of this machine")]
    Loopback(IpAddr),
    /// Nothing is known of its addresses: a proxy could find any.
    #[error("{0} has no address here")]
    Unresolved(String),
}

fn refuse(address: IpAddr, addresses: Addresses) -> Result<(), Refused> {
    match address::scope(address) {
        _ if addresses == Addresses::Any => Ok(()),
        Scope::LinkLocal => Err(Refused::LinkLocal(address)),
        Scope::Metadata => Err(Refused::Metadata(address)),
        Scope::Machine if addresses == Addresses::OtherMachines => Err(Refused::Loopback(address)),
        Scope::Machine | Scope::Other => Ok(()),
    }
}

/// Judges a URL before it is asked for. A name is judged by its addresses: behind a proxy no resolver of ours sees them, so they
/// are looked up here. A name without any is left to the connection to fail, unless a proxy could find one for a tenant.
pub async fn check(url: &Url, addresses: Addresses) -> Result<(), Refused> {
    match url.host() {
        Some(Host::Ipv4(address)) => refuse(address.into(), addresses),
        Some(Host::Ipv6(address)) => refuse(address.into(), addresses),
        Some(Host::Domain(name)) => check_name(name, addresses).await,
        None => Ok(()),
    }
}

async fn check_name(name: &str, addresses: Addresses) -> Result<(), Refused> {
    match address_of(name, addresses).await {
        Err(Refused::Unresolved(_)) if addresses == Addresses::NoMetadata => Ok(()),
        judged => judged.map(drop),
    }
}

/// The address to connect to where a name was judged by all of its addresses; `None` where it need not be judged.
///
/// # Errors
/// One that is out of reach; none at all.
pub async fn address_of(name: &str, addresses: Addresses) -> Result<Option<IpAddr>, Refused> {
    if addresses == Addresses::Any {
        return Ok(None);
    }
    let found = tokio::net::lookup_host((name, 0)).await;
    let found: Vec<IpAddr> = found.into_iter().flatten().map(|it| it.ip()).collect();
    for address in &found {
        refuse(*address, addresses)?;
    }
    match found.first() {
        Some(first) => Ok(Some(*first)),
        None => Err(Refused::Unresolved(name.to_owned())),
    }
}

/// Resolves names as the machine does and judges every address: what was judged is what is connected to.
pub struct Guarded(pub Addresses);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            for address in &found {
                refuse(address.ip(), addresses)?;
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
    fn addresses_of_the_machine() {
        for (address, cluster, tenant) in [
            ("169.254.169.254", false, false),
            ("100.100.100.200", false, false),
            ("fd20:ce::254", false, false),
            ("127.0.0.1", true, false),
            ("::1", true, false),
            ("10.0.0.1", true, true),
        ] {
            let parsed = address.parse().unwrap();
            assert!(refuse(parsed, Addresses::Any).is_ok(), "{address}");
            assert_eq!(
                refuse(parsed, Addresses::NoMetadata).is_ok(),
                cluster,
                "{address}"
            );
            assert_eq!(
                refuse(parsed, Addresses::OtherMachines).is_ok(),
                tenant,
                "{address}"
            );
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
            let checked = check(&url.parse().unwrap(), Addresses::NoMetadata).await;
            assert_eq!(checked.is_err(), refused, "{url}");
        }
        let of_tenant =
            async |url: &str| check(&url.parse().unwrap(), Addresses::OtherMachines).await;
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
        let resolve = |name: &str| Guarded(Addresses::NoMetadata).resolve(name.parse().unwrap());
        let error = resolve("169.254.169.254").await.err().unwrap();
        let expected = Refused::LinkLocal(std::net::Ipv4Addr::new(169, 254, 169, 254).into());
        assert_eq!(error.downcast_ref::<Refused>(), Some(&expected));
        assert!(resolve("127.0.0.1").await.is_ok());
    }
}
