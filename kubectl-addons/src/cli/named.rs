//! The registries and sets that the arguments of a command name. The command line opens them, too.

use std::path::PathBuf;

use common::catalogue::author::Typed;
use common::image::Image;

use super::CliCommand;
use super::reading::CatalogueCommand;
use super::set::SetArgs;
use super::values::ValueEditArgs;

impl CliCommand {
    /// Returns the registries and images that arguments name. `docker login` may be used for them.
    pub(super) fn registries(&self) -> Vec<Typed> {
        let mut images: Vec<&str> = Vec::new();
        let registry = match self {
            Self::Install(args) => args.values.registry.clone(),
            Self::Upgrade(args) => args.values.values.registry.clone(),
            Self::Adopt(args) => args.values.registry.clone(),
            Self::Diff(args) => args.values.values.registry.clone(),
            Self::Plan(args) => args.values.values.registry.clone(),
            Self::Render(args) => args.values.registry.clone(),
            Self::Show(args) => args.site.registry.clone(),
            Self::Images(args) => args.site.registry.clone(),
            Self::Verify(args) => {
                let names = args.names.iter();
                images.extend(names.filter_map(|name| name.strip_prefix("oci://")));
                args.site.registry.clone()
            }
            Self::Catalogue(CatalogueCommand::Publish(args)) => Some(args.target.host.clone()),
            Self::Import(args) => Some(args.registry.to_string()),
            Self::Export(args) => {
                images.extend(args.images.iter().map(String::as_str));
                None
            }
            _ => None,
        };
        let images = images
            .into_iter()
            .filter_map(|name| Image::parse(name).ok());
        let hosts = images.map(|image| image.host).chain(registry);
        hosts
            .map(|host| Typed::on_command_line(&format!("oci://{host}")))
            .collect()
    }

    /// Returns the sets that arguments name. A set may name indexes below its folder.
    pub(super) fn sets(&self) -> Vec<Typed> {
        let either = |set: &SetArgs, values: &ValueEditArgs| -> Option<PathBuf> {
            let only = || match values.files.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            };
            set.filename.clone().or_else(only)
        };
        let set = match self {
            Self::Apply(args) => args.set.clone(),
            Self::Diff(args) if args.addons.is_empty() => either(&args.set, &args.values.values),
            Self::Plan(args) if args.addons.is_empty() => either(&args.set, &args.values.values),
            _ => None,
        };
        let set = set.filter(|set| set.as_os_str() != "-");
        let set = set.iter().filter_map(|set| set.to_str());
        set.map(Typed::on_command_line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_name() {
        for (typed, expected) in [
            ("./web", true),
            ("..", true),
            ("/srv/web", true),
            ("web-1.0.0.tgz", true),
            ("web", false),
            ("web@1.0.0", false),
            ("addon/web", false),
        ] {
            let args = ["x", "install", typed].map(Into::into);
            let Ok(cli) = crate::cli::parse(&args) else {
                assert!(!expected, "{typed}");
                continue;
            };
            let CliCommand::Install(install) = cli.command else {
                panic!("{typed}");
            };
            assert_eq!(install.path().is_some(), expected, "{typed}");
        }
    }

    #[test]
    fn what_arguments_name_is_open() {
        let named = |line: &str| {
            let args: Vec<_> = line.split(' ').map(Into::into).collect();
            let cli = crate::cli::parse(&args).unwrap();
            let all = cli.global.own_access.iter().chain(&cli.global.named);
            let all: Vec<String> = all.map(ToString::to_string).collect();
            all.join(" ")
        };
        for (line, expected) in [
            ("x upgrade web", ""),
            ("x upgrade web --own-access ssh://h,/", "ssh://h /"),
            (
                "x install web --registry m.example/site",
                "oci://m.example/site",
            ),
            (
                "x verify oci://r.example:5000/a:1 --key k",
                "oci://r.example:5000",
            ),
            (
                "x export --all --image r.example/a:1 -o a.tar",
                "oci://r.example",
            ),
            ("x import a.tar --registry m.example", "oci://m.example"),
            (
                "x catalogue publish oci://r.example:5000/c",
                "oci://r.example:5000",
            ),
        ] {
            assert_eq!(named(line), expected, "{line}");
        }
        let args = ["x", "upgrade", "web", "--own-access", "ftp://h"];
        assert!(crate::cli::parse(&args.map(Into::into)).is_err());
    }
}
