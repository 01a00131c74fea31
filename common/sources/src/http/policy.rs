//! Decides which redirects are followed and get the credentials.

use reqwest::Response;
use reqwest::header::LOCATION;
use url::Url;

use super::error::HttpError;
use crate::url::redact_url;

/// The maximum number of consecutive redirects.
pub const REDIRECTS: usize = 5;

/// Which redirects are followed: see the table in [`crate::http`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// None. The redirect itself is returned.
    None,
    /// Those to the same host, with the credentials. An allowed host cannot redirect to one that is not.
    SameHost,
    /// Those to any host. The credentials are only sent to the first one.
    Anywhere,
}

impl Redirects {
    /// Returns the URL to follow, or `None` if the response is final.
    pub fn next_url(self, at: &Url, response: &Response) -> Result<Option<Url>, HttpError> {
        let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(to) = response.headers().get(LOCATION) else {
            return Ok(None);
        };
        if !is_redirect || self == Self::None {
            return Ok(None);
        }
        let to = to.to_str().ok().and_then(|to| at.join(to).ok());
        let refused = |to, why| Err(HttpError::Redirect { to, why });
        let Some(to) = to else {
            return refused("its target".to_owned(), "to something that is not a URL");
        };
        match self.refusal(at, &to) {
            Some(why) => refused(redact_url(&to), why),
            None => Ok(Some(to)),
        }
    }

    /// Returns why a redirect is not followed, if so.
    pub fn refusal(self, from: &Url, to: &Url) -> Option<&'static str> {
        let upgraded = from.scheme() == "http" && to.scheme() == "https";
        if from.scheme() != to.scheme() && !upgraded {
            Some("to another scheme")
        } else if !to.username().is_empty() || to.password().is_some() {
            Some("to a URL with a user name or password")
        } else if self == Self::Anywhere {
            None
        } else if from.host() != to.host() {
            Some("to another host")
        } else if from.port_or_known_default() != to.port_or_known_default() && !upgraded {
            Some("to another port")
        } else {
            None
        }
    }

    /// Whether the credentials of a request to `first` may be sent to `at`.
    pub fn keeps_credentials(self, first: &Url, at: &Url) -> bool {
        self == Self::SameHost || first.origin() == at.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_redirects_may_lead() {
        let (scheme, host, port) = ("to another scheme", "to another host", "to another port");
        let user = "to a URL with a user name or password";
        // From, to, why `SameHost` refuses it, why `Anywhere` refuses it, whether `Anywhere` keeps the
        // credentials.
        for (from, to, same, anywhere, kept) in [
            ("https://h/a", "https://h/b", None, None, true),
            ("http://h:1/a", "https://h:2/a", None, None, false),
            ("http://h/a", "https://h/a", None, None, false),
            (
                "https://h/a",
                "http://h/a",
                Some(scheme),
                Some(scheme),
                false,
            ),
            (
                "https://h/a",
                "file:///a",
                Some(scheme),
                Some(scheme),
                false,
            ),
            ("https://h/a", "https://i/a", Some(host), None, false),
            ("https://h/a", "https://h:1/a", Some(port), None, false),
            (
                "https://h/a",
                "https://u:p@h/a",
                Some(user),
                Some(user),
                true,
            ),
        ] {
            let (from, to) = (Url::parse(from).unwrap(), Url::parse(to).unwrap());
            assert_eq!(Redirects::SameHost.refusal(&from, &to), same, "{to}");
            assert_eq!(Redirects::Anywhere.refusal(&from, &to), anywhere, "{to}");
            let found = Redirects::Anywhere.keeps_credentials(&from, &to);
            assert_eq!(found, kept, "{to}");
        }
    }
}
