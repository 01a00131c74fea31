//! Refuses addresses that a source may not access. [`check_address`] checks every address in a URL and every
//! address to which a name resolves.

use std::net::{IpAddr, SocketAddr};

use common::address::{self, AddressScope};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::reach::Addresses;

/// A name or URL leads to an address that the source may not access.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedAddress {
    /// A link-local address, where clouds serve the credentials of a machine.
    #[error("{0} is a link-local address")]
    LinkLocal(IpAddr),
    /// A service of the cloud for this machine.
    #[error("{0} is an address where a cloud serves the credentials of a machine")]
    Metadata(IpAddr),
    /// This machine.
    #[error("{0} is an address of this machine")]
    Loopback(IpAddr),
    /// The name does not resolve, so a proxy could connect to any address.
    #[error("{0} has no address here")]
    Unresolved(String),
}

fn check_address(address: IpAddr, addresses: Addresses) -> Result<(), RefusedAddress> {
    match address::scope(address) {
        _ if addresses == Addresses::Any => Ok(()),
        AddressScope::LinkLocal => Err(RefusedAddress::LinkLocal(address)),
        AddressScope::Metadata => Err(RefusedAddress::Metadata(address)),
        AddressScope::Machine if addresses == Addresses::OtherMachines => {
            Err(RefusedAddress::Loopback(address))
        }
        AddressScope::Machine | AddressScope::Other => Ok(()),
    }
}

/// Checks a URL before a request is sent. Names are resolved here, because with a proxy the resolver of the
/// client does not see them. A name that does not resolve is accepted, and the connection then fails, unless
/// a tenant named it: a proxy could resolve it.
pub async fn check(url: &Url, addresses: Addresses) -> Result<(), RefusedAddress> {
    match url.host() {
        Some(Host::Ipv4(address)) => check_address(address.into(), addresses),
        Some(Host::Ipv6(address)) => check_address(address.into(), addresses),
        Some(Host::Domain(name)) => check_name(name, addresses).await,
        None => Ok(()),
    }
}

async fn check_name(name: &str, addresses: Addresses) -> Result<(), RefusedAddress> {
    match checked_address(name, addresses).await {
        Err(RefusedAddress::Unresolved(_)) if addresses == Addresses::NoMetadata => Ok(()),
        judged => judged.map(drop),
    }
}

/// Resolves a name, checks all of its addresses and returns the one to connect to. Returns `None` if all
/// addresses are allowed.
///
/// # Errors
/// An address is not allowed, or the name does not resolve.
pub async fn checked_address(
    name: &str,
    addresses: Addresses,
) -> Result<Option<IpAddr>, RefusedAddress> {
    if addresses == Addresses::Any {
        return Ok(None);
    }
    let found = tokio::net::lookup_host((name, 0)).await;
    let found: Vec<IpAddr> = found.into_iter().flatten().map(|it| it.ip()).collect();
    for address in &found {
        check_address(*address, addresses)?;
    }
    match found.first() {
        Some(first) => Ok(Some(*first)),
        None => Err(RefusedAddress::Unresolved(name.to_owned())),
    }
}

/// A resolver that checks every address, so that the client can only connect to checked addresses.
pub struct GuardedResolver(pub Addresses);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            for address in &found {
                check_address(address.ip(), addresses)?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: address, whether a catalogue in the cluster may name it, whether a tenant may.
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
            assert!(check_address(parsed, Addresses::Any).is_ok(), "{address}");
            assert_eq!(
                check_address(parsed, Addresses::NoMetadata).is_ok(),
                cluster,
                "{address}"
            );
            assert_eq!(
                check_address(parsed, Addresses::OtherMachines).is_ok(),
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
            Err(RefusedAddress::Loopback(_))
        ));
        assert!(matches!(
            of_tenant("http://nowhere.invalid/").await,
            Err(RefusedAddress::Unresolved(_))
        ));
    }

    /// Resolvers accept an address as a name, so this stands for a name with only this record.
    #[tokio::test]
    async fn a_name_is_judged_by_its_addresses() {
        let resolve =
            |name: &str| GuardedResolver(Addresses::NoMetadata).resolve(name.parse().unwrap());
        let error = resolve("169.254.169.254").await.err().unwrap();
        let expected =
            RefusedAddress::LinkLocal(std::net::Ipv4Addr::new(169, 254, 169, 254).into());
        assert_eq!(error.downcast_ref::<RefusedAddress>(), Some(&expected));
        assert!(resolve("127.0.0.1").await.is_ok());
    }
}
