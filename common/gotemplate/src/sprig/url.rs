//! Functions that convert between URLs and dicts of their parts. URLs are parsed and printed as Go's net/url 1.26 does: unlike in browsers,
//! nothing is resolved or normalised.

use core::net::Ipv6Addr;
use std::fmt;
use std::rc::Rc;

use super::{DICT, MAP};
use crate::function::{Function, FunctionError};
use crate::value::Type::Text;
use crate::value::{Dict, Type, Value};

/// A URL. All parts except `opaque` and `query` are unescaped.
#[derive(Clone, Debug, Default)]
struct ParsedUrl {
    scheme: String,
    /// The text after the scheme if it does not begin with a slash: `mailto:OPAQUE`.
    opaque: String,
    user: Option<UrlUser>,
    /// Host with port.
    host: String,
    path: String,
    query: String,
    fragment: String,
}

/// User name and password.
#[derive(Clone, Debug)]
struct UrlUser {
    name: String,
    password: Option<String>,
}

/// Why a text is not a valid URL. The message does not repeat the text, because it can contain passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum UrlSyntaxError {
    #[error("invalid control character in URL")]
    Control,
    #[error("missing protocol scheme")]
    Scheme,
    #[error("first path segment in URL cannot contain colon")]
    Colon,
    #[error("invalid URL escape")]
    Escape,
    #[error("invalid userinfo")]
    User,
    #[error("invalid host")]
    Host,
    #[error("invalid port after host")]
    Port,
    #[error("an escape is not UTF-8")]
    Utf8,
}

/// A part of a URL. It determines which characters are escaped.
#[derive(Clone, Copy, PartialEq)]
enum UrlPart {
    User,
    Host,
    Zone,
    Path,
    Fragment,
}

impl ParsedUrl {
    fn parse(text: &str) -> Result<Self, UrlSyntaxError> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self {
            fragment: unescape(fragment, UrlPart::Fragment)?,
            ..Self::default()
        };
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(UrlSyntaxError::Control);
        }
        if text == "*" {
            url.path = text.to_owned();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if rest.split('/').next().unwrap_or_default().contains(':') {
                return Err(UrlSyntaxError::Colon);
            }
        }
        let authority = rest
            .strip_prefix("//")
            .filter(|authority| !scheme.is_empty() || !authority.starts_with('/'));
        let path = match authority {
            None => rest,
            Some(authority) => {
                let end = authority.find('/').unwrap_or(authority.len());
                let (authority, path) = authority.split_at(end);
                url.set_authority(authority)?;
                path
            }
        };
        url.path = unescape(path, UrlPart::Path)?;
        Ok(url)
    }

    /// The host without port and brackets.
    fn hostname(&self) -> &str {
        let host = match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => &self.host[..colon],
            _ => &self.host,
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        inner.unwrap_or(host)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), UrlSyntaxError> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = parse_host(host, matches!(self.scheme.as_str(), "http" | "https"))?;
        let Some(user) = user else { return Ok(()) };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_allowed) {
            return Err(UrlSyntaxError::User);
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        self.user = Some(UrlUser {
            name: unescape(name, UrlPart::User)?,
            password: password
                .map(|password| unescape(password, UrlPart::User))
                .transpose()?,
        });
        Ok(())
    }
}

impl fmt::Display for ParsedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            f.write_str(&self.opaque)?;
        } else {
            let has_authority = !self.host.is_empty() || self.user.is_some();
            if has_authority || !self.scheme.is_empty() && !self.path.is_empty() {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&escape(&self.host, UrlPart::Host))?;
            let path = match self.path.as_str() {
                "*" => "*".to_owned(),
                path => escape(path, UrlPart::Path),
            };
            let has_colon = path
                .split('/')
                .next()
                .is_some_and(|first| first.contains(':'));
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            } else if !has_authority && self.scheme.is_empty() && has_colon {
                f.write_str("./")?;
            }
            f.write_str(&path)?;
        }
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", escape(&self.fragment, UrlPart::Fragment))?;
        }
        Ok(())
    }
}

impl fmt::Display for UrlUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.name, UrlPart::User))?;
        match &self.password {
            Some(password) => write!(f, ":{}", escape(password, UrlPart::User)),
            None => Ok(()),
        }
    }
}

/// Splits off the text before the first colon, if it can be a scheme.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlSyntaxError> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    let Some((scheme, rest)) = end.map(|end| text.split_at(end)) else {
        return Ok(("", text));
    };
    match rest.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err(UrlSyntaxError::Scheme),
        Some(rest) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((scheme, rest)),
        _ => Ok(("", text)),
    }
}

fn parse_host(host: &str, is_http: bool) -> Result<String, UrlSyntaxError> {
    if let Some(address) = host.strip_prefix('[') {
        let (address, port) = address.rsplit_once(']').ok_or(UrlSyntaxError::Host)?;
        if !is_port(port) {
            return Err(UrlSyntaxError::Port);
        }
        let (address, zone) = match address.find("%25") {
            Some(zone) => address.split_at(zone),
            None => (address, ""),
        };
        let address = unescape(address, UrlPart::Host)?;
        let zone = unescape(zone, UrlPart::Zone)?;
        let has_name = zone.is_empty() || zone.len() > 1;
        if address.contains('[') || address.parse::<Ipv6Addr>().is_err() || !has_name {
            return Err(UrlSyntaxError::Host);
        }
        return Ok(format!("[{address}{zone}]{port}"));
    }
    let port = if is_http {
        host.find(':')
    } else {
        host.rfind(':')
    };
    if host.contains('[') {
        return Err(UrlSyntaxError::Host);
    }
    if port.is_some_and(|port| !is_port(&host[port..])) {
        return Err(UrlSyntaxError::Port);
    }
    unescape(host, UrlPart::Host)
}

/// Returns whether a text is empty, or a colon and any number of digits.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
        && (text.is_empty() || digits.len() < text.len())
}

fn unescape(text: &str, part: UrlPart) -> Result<String, UrlSyntaxError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_host = matches!(part, UrlPart::Host | UrlPart::Zone);
        if byte != b'%' {
            if is_host && byte.is_ascii() && is_escaped(byte, part) {
                return Err(UrlSyntaxError::Host);
            }
            out.push(byte);
            continue;
        }
        let mut digit = || {
            bytes
                .next()
                .and_then(|digit| char::from(digit).to_digit(16))
        };
        let (high, low) = digit().zip(digit()).ok_or(UrlSyntaxError::Escape)?;
        let byte = u8::try_from(high << 4 | low).map_err(|_| UrlSyntaxError::Escape)?;
        let is_allowed = match part {
            // In host names, only characters outside of ASCII may be escaped (RFC 6874).
            UrlPart::Host => byte == b'%' || !byte.is_ascii(),
            UrlPart::Zone => matches!(byte, b'%' | b' ') || !is_escaped(byte, UrlPart::Host),
            _ => true,
        };
        if !is_allowed {
            return Err(UrlSyntaxError::Escape);
        }
        out.push(byte);
    }
    String::from_utf8(out).map_err(|_| UrlSyntaxError::Utf8)
}

fn escape(text: &str, part: UrlPart) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_escaped(byte, part) {
            out.push_str(&format!("%{byte:02X}"));
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

fn is_escaped(byte: u8, part: UrlPart) -> bool {
    let unescaped: &[u8] = match part {
        UrlPart::Host | UrlPart::Zone => b"-._~!\"$&'()*+,:;<=>[]",
        UrlPart::User => b"-._~$&+,;=",
        UrlPart::Path => b"-._~$&+,/:;=@",
        UrlPart::Fragment => b"-._~!$&()*+,/:;=?@",
    };
    !byte.is_ascii_alphanumeric() && !unescaped.contains(&byte)
}

pub(super) const URLS: &[Function<'static>] = &[
    Function::new("urlParse", &[Text], &|ctx, args| {
        ctx.reserve(args.text(0)?.len().saturating_add(DICT))?;
        let url = ParsedUrl::parse(args.text(0)?).map_err(parse_error)?;
        let user = url
            .user
            .as_ref()
            .map(UrlUser::to_string)
            .unwrap_or_default();
        let parts = [
            ("scheme", url.scheme.clone()),
            ("host", url.host.clone()),
            ("hostname", url.hostname().to_owned()),
            ("path", url.path.clone()),
            ("query", url.query.clone()),
            ("opaque", url.opaque.clone()),
            ("fragment", url.fragment.clone()),
            ("userinfo", user),
        ];
        let parts = parts.map(|(name, part)| (Rc::from(name), Value::text(part)));
        Ok(Value::Dict(Dict::new(&Type::Any, parts)))
    }),
    Function::new("urlJoin", &[MAP], &|_, args| {
        let parts = args.dict(0)?;
        let part = |name: &str| match parts.get(name) {
            None => Ok(String::new()),
            Some(Value::Text(text)) => Ok(text.to_string()),
            Some(other) => Err(FunctionError::new(format!(
                "unable to parse {name} key, must be of type string, but {} found",
                other.kind_name()
            ))),
        };
        let user = part("userinfo")?;
        let url = ParsedUrl {
            scheme: part("scheme")?,
            host: part("host")?,
            path: part("path")?,
            query: part("query")?,
            opaque: part("opaque")?,
            fragment: part("fragment")?,
            user: match user.as_str() {
                "" => None,
                user => {
                    ParsedUrl::parse(&format!("proto://{user}@host"))
                        .map_err(parse_error)?
                        .user
                }
            },
        };
        Ok(Value::text(url.to_string()))
    }),
];

fn parse_error(error: UrlSyntaxError) -> FunctionError {
    FunctionError::new(format!("unable to parse url: {error}"))
}
