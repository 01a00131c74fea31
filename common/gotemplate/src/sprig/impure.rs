//! Functions of sprig that are refused: every diff, check and repair renders again, and must get the same result.

use crate::function::{Function, FunctionResult};
use crate::value::Type::Any;

#[rustfmt::skip]
pub(super) const IMPURE: &[Function<'static>] = &[
    Function::variadic("now", &[], Any, &|_, _| {
        refuse("depends on the clock or the time zone of this machine: write the date into the values")
    })
    .with_aliases(&[
        "ago", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify", "mustDateModify", "must_date_modify",
        "htmlDate", "htmlDateInZone", "toDate", "mustToDate", "unixEpoch",
    ]),
    Function::variadic("randAlphaNum", &[], Any, &|_, _| {
        refuse("gives something else at every rendering, so nothing would ever be up to date: write it into the values, secrets into a Secret of valuesFrom")
    })
    .with_aliases(&[
        "randAlpha", "randAscii", "randNumeric", "randInt", "randBytes", "shuffle", "uuidv4", "bcrypt", "htpasswd",
        "encryptAES",
    ]),
    Function::variadic("decryptAES", &[], Any, &|_, _| {
        refuse("makes secrets from a password in the template: keep them in a Secret of valuesFrom")
    })
    .with_aliases(&["derivePassword"]),
    Function::variadic("genPrivateKey", &[], Any, &|_, _| {
        refuse("makes another key at every rendering: let cert-manager issue certificates, or keep them in a Secret of valuesFrom")
    })
    .with_aliases(&[
        "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
        "genSignedCertWithKey", "buildCustomCert",
    ]),
    Function::variadic("env", &[], Any, &|_, _| {
        refuse("reads the environment of whoever renders: write it into the values")
    })
    .with_aliases(&["expandenv"]),
    Function::variadic("getHostByName", &[], Any, &|_, _| {
        refuse("asks the network of whoever renders: write the address into the values")
    }),
];

fn refuse(reason: &str) -> FunctionResult {
    Err(reason.into())
}
