//! Flags of `plan` and `apply`.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;

use super::ValueFormat;
use super::fleet::{ClusterArgs, WaveArgs};
use super::name::Candidates;
use super::operation::{
    AcceptArgs, ChangeArgs, DeleteArgs, DifferenceArgs, NewInstallationArgs, RepairArgs, SourceArgs,
};
use super::set::{MemberArgs, SetArgs};
use super::values::ValueChangeArgs;

/// Flags of `plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Add-ons to install and installations to upgrade; default: upgrade all installations
    #[arg(value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addons: Vec<String>,
    /// Output: text, json or yaml print the plan, html and markdown print it as a page or for a pull request, dot or mermaid draw the order; anything else is the name of a plan file to write
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "text", value_parser = plan_output, value_hint = clap::ValueHint::FilePath)]
    pub output: PlanOutput,
    /// Plan to uninstall these installations instead
    #[arg(long, conflicts_with_all = ["given", "name", "target_namespace", "core", "repair", "allow_downgrade", "channel", "catalogue"])]
    pub uninstall: bool,
    /// With --uninstall: all installations, except core add-ons
    #[arg(long, requires = "uninstall", conflicts_with = "addons")]
    pub all: bool,
    #[command(flatten)]
    pub set: SetArgs,
    /// Exit like diff; 0: nothing to do, 1: something to do, 2 and above: an error
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub new: NewInstallationArgs,
    #[command(flatten)]
    pub due: RepairArgs,
    #[command(flatten)]
    pub accept: AcceptArgs,
    #[command(flatten)]
    pub delete: DeleteArgs,
    #[command(flatten)]
    pub differences: DifferenceArgs,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub values: ValueChangeArgs,
    #[command(flatten)]
    pub clusters: ClusterArgs,
}

/// Flags of `apply`.
#[derive(Args, Debug)]
pub struct ApplyArgs {
    /// Plan file, as written by plan -o FILE; - for stdin
    #[arg(value_name = "FILE", required_unless_present = "set", conflicts_with_all = ["set_name", "prune", "allow_downgrade", "repair", "dry_run", "allow_prune", "allow_crd_breakage", "migrate_stored_versions", "adopt", "force_adopt", "force", "delete_crds", "delete_namespaces", "delete_volumes"])]
    pub file: Option<PathBuf>,
    /// Digest of the reviewed plan, as plan prints it (sha256:…): refuse any other plan file
    #[arg(long, value_name = "DIGEST", conflicts_with = "set", value_parser = addons_plan::file::expected)]
    pub expect_digest: Option<String>,
    /// A set instead of a plan: a file with AddonInstallations, or - for stdin; each is installed, or its spec is changed to match
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "SET",
        conflicts_with = "file"
    )]
    pub set: Option<PathBuf>,
    #[command(flatten)]
    pub members: MemberArgs,
    /// With a set: restore what was edited or deleted, even if no other version is due
    #[arg(long)]
    pub repair: bool,
    /// With a set: accept lower versions
    #[arg(long)]
    pub allow_downgrade: bool,
    #[command(flatten)]
    pub delete: DeleteArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub clusters: ClusterArgs,
    #[command(flatten)]
    pub waves: WaveArgs,
}

/// Where `plan` prints or writes the plan, from `-o`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanOutput {
    /// The text of the confirmation, on stdout.
    Text,
    /// The plan file on stdout.
    Print(ValueFormat),
    /// The plan as an HTML page.
    Html,
    /// The plan for a pull request.
    Markdown,
    /// A drawing of the order of the objects.
    Draw(DrawingLanguage),
    /// The plan file, written to a path.
    File(PathBuf),
}

/// Languages for drawing graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawingLanguage {
    /// Graphviz.
    Dot,
    /// Mermaid.
    Mermaid,
}

/// Parses a format, or else a file.
fn plan_output(typed: &str) -> Result<PlanOutput, String> {
    match typed {
        "" => Err("it is empty; name a file".to_owned()),
        "text" => Ok(PlanOutput::Text),
        // As in other programs, `-` is stdout.
        "json" | "-" => Ok(PlanOutput::Print(ValueFormat::Json)),
        "yaml" => Ok(PlanOutput::Print(ValueFormat::Yaml)),
        "kyaml" => Ok(PlanOutput::Print(ValueFormat::Kyaml)),
        "html" => Ok(PlanOutput::Html),
        "markdown" => Ok(PlanOutput::Markdown),
        "dot" => Ok(PlanOutput::Draw(DrawingLanguage::Dot)),
        "mermaid" => Ok(PlanOutput::Draw(DrawingLanguage::Mermaid)),
        // Formats of other commands are not file names.
        "table" | "wide" | "name" | "md" => Err(format!(
            "{typed} is not a format of a plan; use text, json, yaml, kyaml, html, markdown, dot, mermaid, or ./{typed} for a file of that name"
        )),
        page if page.ends_with(".html") => Err(format!(
            "a file is a plan for apply; for the page: -o html > {page}"
        )),
        file => Ok(PlanOutput::File(PathBuf::from(file))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_files() {
        assert_eq!(
            plan_output("yaml"),
            Ok(PlanOutput::Print(ValueFormat::Yaml))
        );
        assert_eq!(plan_output("-"), Ok(PlanOutput::Print(ValueFormat::Json)));
        for file in ["plan.json", "./dot", "out/json"] {
            assert_eq!(plan_output(file), Ok(PlanOutput::File(file.into())));
        }
        for wrong in ["", "wide", "md", "plan.html"] {
            assert!(plan_output(wrong).is_err(), "{wrong}");
        }
    }
}
