//! Flags about values. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;
use common::api::installation::{SecretKeyRef, ValuesFromSource};
use common::api::names::is_object_name;

/// The key that holds values if none is named, as with Flux.
const DEFAULT_KEY: &str = "values.yaml";

/// Values of the installation, and where its images come from: kept in the installation.
#[derive(Args, Debug, Default)]
#[group(id = "given")]
pub struct ValueEditArgs {
    /// YAML file with values, - for stdin; later files override earlier ones
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Values in helm's grammar. The help stands below, for rustdoc reads an index as a link.
    #[arg(
        long = "set",
        value_name = "PATH=VALUE",
        help = "Values in helm's syntax: a.b=1, list[0]=x, list={x,y}, a=1,b=2; \
                ADDON:a=1 for one of several add-ons; overrides files and --set-json"
    )]
    pub set: Vec<String>,
    /// Like --set, but every value is text; overrides --set
    #[arg(long, value_name = "PATH=TEXT")]
    pub set_string: Vec<String>,
    /// A value in JSON, or a map of values; overrides files
    #[arg(long, value_name = "PATH=JSON")]
    pub set_json: Vec<String>,
    /// Use the text of a file as a value; overrides all other flags for values
    #[arg(long, value_name = "PATH=FILE")]
    pub set_file: Vec<String>,
    /// Read values from a Secret in the namespace of the installation; default of KEY: values.yaml; replaces the Secrets that the
    /// installation refers to ("" for none); all other flags override it
    #[arg(long, value_name = "SECRET[:KEY]", value_parser = secret)]
    pub values_from: Vec<Option<ValuesFromSource>>,
    /// Private registry to which all images, and sources in registries, are rewritten
    #[arg(long, value_name = "HOST[/PATH]")]
    pub registry: Option<String>,
    /// Leave out the CRDs in the folders crds/ of charts, because something else brings them; --skip-crds=false takes them in again
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub skip_crds: Option<bool>,
    /// Patch the rendered objects, as kustomize does: a file with objects to merge, or with a list under patches:, - for stdin;
    /// replaces the patches of the installation ("" for none)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub patch: Vec<String>,
}

/// What is changed in the values of an installation that exists: values are taken away first.
#[derive(Args, Debug, Default)]
pub struct ValueChangeArgs {
    #[command(flatten)]
    pub values: ValueEditArgs,
    /// Take values of the installation away, and go back to the defaults. The help stands below, for rustdoc reads an index as a link.
    #[arg(
        long,
        value_name = "PATH",
        requires = "addons",
        help = "Remove a value from the installation and go back to the default: a.b, list[0]; \
                takes effect before all other flags"
    )]
    pub unset: Vec<String>,
    /// Remove all values of the installation before the other flags apply
    #[arg(long, requires = "addons", conflicts_with = "unset")]
    pub reset_values: bool,
}

/// Parses `[secret/]NAME[:KEY]`. `None` for an empty text.
fn secret(typed: &str) -> Result<Option<ValuesFromSource>, String> {
    if typed.is_empty() {
        return Ok(None);
    }
    let named = match typed.split_once('/') {
        Some((kind, name)) if kind.eq_ignore_ascii_case("secret") => name,
        Some(_) => return Err("values can only be read from a Secret: NAME or NAME:KEY".to_owned()),
        None => typed,
    };
    let (name, key) = named.split_once(':').unwrap_or((named, DEFAULT_KEY));
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !is_object_name(name) {
        return Err(format!("{name:?} is not the name of a Secret"));
    }
    if key.is_empty() || !key.chars().all(is_key) {
        return Err(format!("{key:?} is not a key of a Secret"));
    }
    let secret_key_ref = SecretKeyRef {
        name: name.to_owned(),
        key: key.to_owned(),
        optional: false,
    };
    Ok(Some(ValuesFromSource { secret_key_ref }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_named_with_or_without_its_kind_and_key() {
        for (typed, expected) in [
            ("web", Ok(Some(("web", "values.yaml")))),
            ("web:pass_word.txt", Ok(Some(("web", "pass_word.txt")))),
            ("Secret/web.shop", Ok(Some(("web.shop", "values.yaml")))),
            ("secret/web:a", Ok(Some(("web", "a")))),
            ("", Ok(None)),
            (
                "configmap/web",
                Err("values can only be read from a Secret: NAME or NAME:KEY"),
            ),
            ("Web", Err("\"Web\" is not the name of a Secret")),
            ("web:", Err("\"\" is not a key of a Secret")),
            ("web:a b", Err("\"a b\" is not a key of a Secret")),
        ] {
            let read = secret(typed).map(|found| found.map(|found| found.secret_key_ref));
            let named = |found: &SecretKeyRef| (found.name.clone(), found.key.clone());
            let read = read.map(|found| found.as_ref().map(named));
            let expected = expected
                .map(|found| found.map(|(name, key)| (name.to_owned(), key.to_owned())))
                .map_err(str::to_owned);
            assert_eq!(read, expected, "{typed}");
        }
    }
}
