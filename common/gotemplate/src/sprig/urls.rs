//! Functions that convert between URLs and dicts of their parts.

use std::rc::Rc;

use super::url::{ParsedUrl, UrlSyntaxError, UrlUser};
use super::{DICT, MAP};
use crate::function::{Function, FunctionError};
use crate::value::Type::Text;
use crate::value::{Dict, Type, Value};

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
