//! What sprig has and we refuse: a rendering is made again for each diff, check and repair, and must come out the same.

use super::super::function::Parameter::Any;
use super::super::function::{Arguments, Context, Function, FunctionError};
use super::Answer;

pub(super) const IMPURE: &[Function] = &[
    refused("now", clock),
    refused("ago", clock),
    refused("date", clock),
    refused("dateInZone", clock),
    refused("date_in_zone", clock),
    refused("dateModify", clock),
    refused("date_modify", clock),
    refused("mustDateModify", clock),
    refused("must_date_modify", clock),
    refused("htmlDate", clock),
    refused("htmlDateInZone", clock),
    refused("toDate", clock),
    refused("mustToDate", clock),
    refused("unixEpoch", clock),
    refused("randAlphaNum", chance),
    refused("randAlpha", chance),
    refused("randAscii", chance),
    refused("randNumeric", chance),
    refused("randInt", chance),
    refused("randBytes", chance),
    refused("shuffle", chance),
    refused("uuidv4", chance),
    refused("bcrypt", chance),
    refused("htpasswd", chance),
    refused("encryptAES", chance),
    refused("decryptAES", secret),
    refused("derivePassword", secret),
    refused("genPrivateKey", certificate),
    refused("genCA", certificate),
    refused("genCAWithKey", certificate),
    refused("genSelfSignedCert", certificate),
    refused("genSelfSignedCertWithKey", certificate),
    refused("genSignedCert", certificate),
    refused("genSignedCertWithKey", certificate),
    refused("buildCustomCert", certificate),
    refused("env", environment),
    refused("expandenv", environment),
    refused("getHostByName", network),
];

/// A function that is known, whatever it is called with, and never runs.
const fn refused(
    name: &'static str,
    reason: fn(&mut Context<'_>, Arguments<'_>) -> Answer,
) -> Function {
    Function::variadic(name, &[], Any, reason)
}

fn clock(_: &mut Context<'_>, _: Arguments<'_>) -> Answer {
    refuse("depends on the clock or the time zone of this machine: write the date into the values")
}

fn chance(_: &mut Context<'_>, _: Arguments<'_>) -> Answer {
    refuse(
        "gives something else at every rendering, so nothing would ever be up to date: write it into the values, secrets into a Secret of valuesFrom",
    )
}

fn secret(_: &mut Context<'_>, _: Arguments<'_>) -> Answer {
    refuse("makes secrets from a password in the template: keep them in a Secret of valuesFrom")
}

fn certificate(_: &mut Context<'_>, _: Arguments<'_>) -> Answer {
    refuse(
        "makes another key at every rendering: let cert-manager issue certificates, or keep them in a Secret of valuesFrom",
    )
}

fn environment(_: &mut Context<'_>, _: Arguments<'_>) -> Answer {
    refuse("reads the environment of whoever renders: write it into the values")
}

fn network(_: &mut Context<'_>, _: Arguments<'_>) -> Answer {
    refuse("asks the network of whoever renders: write the address into the values")
}

fn refuse(reason: &str) -> Answer {
    Err(FunctionError::new(reason))
}
