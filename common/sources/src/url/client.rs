//! The clients of this process: one for each set of certificate authorities, made when it is first needed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, Client};
use url::{Host, Url};

use super::UrlError;
use crate::Access;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two pieces of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Clients that are kept.
const KEPT: usize = 16;

static CLIENTS: Mutex<Vec<(Key, Client)>> = Mutex::new(Vec::new());

/// What makes clients differ.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    ca: Option<Vec<u8>>,
    guarded: bool,
    gzip: bool,
}

/// The client for these authorities. It follows no redirects; with `gzip` it asks for compressed answers and unpacks them;
/// proxies are those of the environment.
pub fn client(access: &Access<'_>, gzip: bool) -> Result<Client, UrlError> {
    let key = Key {
        ca: access
            .credentials
            .and_then(|credentials| credentials.ca.clone()),
        guarded: !access.ambient,
        gzip,
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(other, _)| *other == key) {
        return Ok(client.clone());
    }
    let secret = access.credentials.map(|credentials| &*credentials.secret);
    let client = build(&key, secret.unwrap_or_default())?;
    if clients.len() >= KEPT {
        clients.remove(0);
    }
    clients.push((key, client.clone()));
    Ok(client)
}

fn build(key: &Key, secret: &str) -> Result<Client, UrlError> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .gzip(key.gzip)
        .user_agent(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION")));
    if key.guarded {
        builder = builder.dns_resolver(Guarded);
    }
    if let Some(pem) = &key.ca {
        let certificates = Certificate::from_pem_bundle(pem).unwrap_or_default();
        if certificates.is_empty() {
            let secret = secret.to_owned();
            return Err(UrlError::Authority { secret });
        }
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|source| UrlError::Http {
        location: "the HTTP client".to_owned(),
        source,
    })
}

/// Refuses a URL whose host is an address that no catalogue in a cluster may name; names are judged when they are resolved.
pub fn check_address(url: &Url) -> Result<(), Refused> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    if is_of_the_machine(address) {
        return Err(Refused(address));
    }
    Ok(())
}

/// A name or a URL led to an address that only this machine should ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub IpAddr);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is a link-local address", self.0)
    }
}

impl std::error::Error for Refused {}

/// Resolves names as the machine does, and refuses what leads to its own services. Behind a proxy it is the proxy that
/// resolves them, and its services that would be asked.
pub struct Guarded;

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let mut addresses = found.iter().map(SocketAddr::ip);
            if let Some(address) = addresses.find(|address| is_of_the_machine(*address)) {
                return Err(Refused(address).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Link-local addresses, where clouds serve the credentials of a machine, in every spelling; and the one that AWS has besides.
fn is_of_the_machine(address: IpAddr) -> bool {
    const AWS_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d).is_link_local()
    };
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => match address.segments() {
            // Mapped, compatible, translated (RFC 6052) and 6to4.
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x2002, high, low, ..] => v4(high, low),
            _ => address.is_unicast_link_local() || address == AWS_METADATA,
        },
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
                is_of_the_machine(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    /// A name whose only record is such an address; resolvers read addresses as names of themselves.
    #[tokio::test]
    async fn a_name_is_judged_by_what_it_stands_for() {
        let resolve = |name: &str| Guarded.resolve(name.parse().unwrap());
        let error = resolve("169.254.169.254").await.err().unwrap();
        assert_eq!(
            error.downcast_ref::<Refused>(),
            Some(&Refused(Ipv4Addr::new(169, 254, 169, 254).into()))
        );
        assert!(resolve("127.0.0.1").await.is_ok());
    }
}
