//! Sentences about published catalogues.

use addons_airgap::publish::{Published, PublishedArtifact};
use common::image::Image;

use super::airgap::{format_count, format_mebibytes};

/// Describes what was published: `h.example/platform:latest: 2 packages and the catalogue: 2 pushed (3.1 MiB), 1 there already`. A dry run
/// names each artifact, too.
pub fn describe(target: &Image, published: &Published, is_dry_run: bool) -> String {
    let packages = published.packages.iter().map(|one| &one.artifact);
    let all: Vec<&PublishedArtifact> = packages.chain([&published.catalogue]).collect();
    let is_new = |artifact: &&&PublishedArtifact| !artifact.was_there;
    let new = all.iter().filter(is_new).count();
    let bytes = all.iter().filter(is_new).map(|one| one.bytes).sum();
    let mut text = String::new();
    if is_dry_run {
        for one in &all {
            let word = if one.was_there {
                "there already"
            } else {
                "would push"
            };
            let size = format_mebibytes(one.bytes);
            text.push_str(&format!("{word}: {} ({size})\n", one.image));
        }
    }
    let pushed = if is_dry_run { "to push" } else { "pushed" };
    text.push_str(&format!(
        "{target}: {} and the catalogue: {new} {pushed} ({}), {} there already",
        format_count(published.packages.len(), "package"),
        format_mebibytes(bytes),
        all.len() - new,
    ));
    if published.catalogue.is_signed {
        let signatures = format_count(published.signatures, "signature");
        text.push_str(&format!("; {signatures} {pushed}"));
    }
    text
}

/// Returns the command that adds the published catalogue to a cluster.
pub fn add_command(published: &Published) -> String {
    let by_reference = match published.is_large {
        true => " --by-reference",
        false => "",
    };
    format!(
        "kubectl addons catalogue add oci://{}{by_reference}",
        published.catalogue.by_digest()
    )
}

#[cfg(test)]
mod tests {
    use addons_airgap::publish::PublishedPackage;

    use super::*;

    fn artifact(tag: &str, was_there: bool) -> PublishedArtifact {
        PublishedArtifact {
            image: Image::parse(&format!("h.example/c:{tag}")).unwrap(),
            digest: format!("sha256:{}", "a".repeat(64)),
            bytes: 1 << 20,
            was_there,
            is_signed: false,
        }
    }

    #[test]
    fn what_is_published_is_counted_and_added_by_its_digest() {
        let target = Image::parse("h.example/c:latest").unwrap();
        let mut published = Published {
            packages: vec![PublishedPackage {
                addon: "web".to_owned(),
                version: "1.0.0".to_owned(),
                artifact: artifact("web-1.0.0-aaaaaaaaaaaa", true),
            }],
            catalogue: artifact("latest", false),
            signatures: 1,
            is_large: false,
        };
        assert_eq!(
            describe(&target, &published, false),
            "h.example/c:latest: 1 package and the catalogue: 1 pushed (1.0 MiB), 1 there already"
        );
        assert_eq!(
            describe(&target, &published, true),
            "there already: h.example/c:web-1.0.0-aaaaaaaaaaaa (1.0 MiB)\n\
             would push: h.example/c:latest (1.0 MiB)\n\
             h.example/c:latest: 1 package and the catalogue: 1 to push (1.0 MiB), 1 there already"
        );
        published.catalogue.is_signed = true;
        assert_eq!(
            describe(&target, &published, false),
            "h.example/c:latest: 1 package and the catalogue: 1 pushed (1.0 MiB), 1 there already; 1 signature pushed"
        );
        let digest = format!("sha256:{}", "a".repeat(64));
        let add = format!("kubectl addons catalogue add oci://h.example/c@{digest}");
        assert_eq!(add_command(&published), add);
        published.is_large = true;
        assert_eq!(add_command(&published), format!("{add} --by-reference"));
    }
}
