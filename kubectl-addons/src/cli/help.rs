//! The end of each command's help: examples, and a pointer to the global options.

use clap::Command;

/// The name under which the program is called.
const PROGRAM: &str = "kubectl addons";
/// The last sentence of every help text.
const GLOBAL_HINT: &str =
    "Use \"kubectl addons options\" for a list of global options (they apply to all commands).";

/// The description of an example, and its command.
#[rustfmt::skip]
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("Install the CRDs and the system namespace", "kubectl addons init"),
    ("Show what installing or upgrading the webhook and the policies would change", "kubectl addons init --webhook --policies --dry-run"),
    ("Generate a catalogue from a manifest and a chart", "kubectl addons catalogue create platform --from web-1.0.0.yaml --from charts/db > catalogue.yaml"),
    ("Add or replace a catalogue", "kubectl addons catalogue add catalogue.yaml"),
    ("Add a kops index under a name", "kubectl addons catalogue add https://example.org/index.yaml --name platform"),
    ("List the catalogues, including those of core add-ons", "kubectl addons catalogue list --core"),
    ("Print a catalogue in a form that can be added again", "kubectl addons catalogue show platform -o yaml"),
    ("Remove a catalogue; installations from it stay", "kubectl addons catalogue remove platform"),
    ("Update every catalogue from the location that it came from", "kubectl addons catalogue sync"),
    ("Push the catalogue of this folder, and its packages, to a registry", "kubectl addons catalogue publish oci://registry.example/team/platform"),
    ("Show what would be pushed", "kubectl addons catalogue publish oci://registry.example/team/platform catalogue.yaml --dry-run"),
    ("Push the catalogues to the clusters of two contexts", "kubectl addons catalogue push --to-context east,west"),
    ("Show the entries of all catalogues, and duplicates among them", "kubectl addons catalogue view"),
    ("Check a catalogue before it is added", "kubectl addons catalogue validate catalogue.yaml"),
    ("Find add-ons by words in their name and description", "kubectl addons search ingress"),
    ("List the add-ons of an index that fit a version, without a cluster", "kubectl addons search --channel index.yaml --k8s 1.36"),
    ("Show an add-on, and why versions were passed over", "kubectl addons show ingress"),
    ("Show one version", "kubectl addons show ingress@1.2.0"),
    ("Save the default values, to edit the copy", "kubectl addons show ingress --values > values.yaml"),
    ("List the images of everything that fits", "kubectl addons images"),
    ("Show which add-ons need which image", "kubectl addons images -o wide"),
    ("Export an add-on with its images to an archive", "kubectl addons export ingress -o site.tar"),
    ("Export everything in an index that fits a version of Kubernetes", "kubectl addons export --all --channel index.yaml --k8s 1.36 -o site.tar"),
    ("Push an archive to the registry of a site", "kubectl addons import site.tar --registry mirror.example.org/site"),
    ("Install the newest version that fits", "kubectl addons install ingress"),
    ("Install a version with values, without asking", "kubectl addons install ingress@1.2.0 -f values.yaml --yes"),
    ("Print events as JSON lines, for a program", "kubectl addons install ingress --yes --events"),
    ("Set a value for one of several add-ons", "kubectl addons install ingress dns --set dns:replicas=3"),
    ("Show what an install would change", "kubectl addons install ingress --dry-run=server"),
    ("Install a chart or manifests from a folder", "kubectl addons install ./ingress --target-namespace edge"),
    ("Install from a file into a namespace", "kubectl addons install ingress --channel index.yaml --target-namespace edge"),
    ("Upgrade everything", "kubectl addons upgrade"),
    ("Upgrade one installation to a version", "kubectl addons upgrade ingress@1.3.0"),
    ("Go back to the default of a value, and keep the version", "kubectl addons upgrade ingress@1.3.0 --unset replicas"),
    ("Roll back if the upgrade fails", "kubectl addons upgrade ingress --atomic"),
    ("Restore what was edited or deleted", "kubectl addons upgrade ingress --repair"),
    ("List the revisions of an installation", "kubectl addons history ingress"),
    ("Roll back to the previous revision", "kubectl addons rollback ingress"),
    ("Roll back to a version", "kubectl addons rollback ingress --to 1.2.0"),
    ("Show what a rollback to revision 3 would change", "kubectl addons rollback ingress 3 --dry-run=server"),
    ("Reconcile every installation once", "kubectl addons reconcile"),
    ("Reconcile continuously, until interrupted", "kubectl addons reconcile --watch"),
    ("List what other tools installed, and the commands that take it over", "kubectl addons adopt"),
    ("Show what taking over would change", "kubectl addons adopt ingress --dry-run"),
    ("Give an installation back to its former tool", "kubectl addons adopt --release ingress"),
    ("Show what would be deleted", "kubectl addons uninstall ingress --dry-run"),
    ("Uninstall everything except core add-ons", "kubectl addons uninstall --all"),
    ("Remove the record of an installation and keep its objects", "kubectl addons uninstall ingress --keep"),
    ("List what is installed", "kubectl addons list"),
    ("List what can be upgraded", "kubectl addons list --outdated"),
    ("Check what does not fit Kubernetes 1.37", "kubectl addons preflight --to 1.37"),
    ("Write the report as a table for an issue", "kubectl addons preflight --to 1.37 -o markdown > preflight.md"),
    ("Show the objects of an installation, and why they are not ready", "kubectl addons status ingress"),
    ("Fail if anything is not ready", "kubectl addons status --all-namespaces --exit-code"),
    ("Follow an installation until Ctrl-C", "kubectl addons status ingress --watch"),
    ("Write a page of everything that is installed", "kubectl addons status --all-namespaces -o html > status.html"),
    ("Show the merged values", "kubectl addons values ingress"),
    ("Show where each value comes from", "kubectl addons values ingress --explain"),
    ("Show what was set in revision 3", "kubectl addons values ingress --revision 3 --user-supplied"),
    ("Show what an upgrade of everything would change", "kubectl addons diff"),
    ("Compare with other values", "kubectl addons diff ingress -f values.yaml"),
    ("Compare with revision 3, field by field", "kubectl addons diff ingress --revision 3"),
    ("Show what applying a set would change", "kubectl addons diff -f set.yaml"),
    ("Show what upgrading everything would do", "kubectl addons plan"),
    ("Show by the exit code whether there is anything to upgrade", "kubectl addons plan --exit-code"),
    ("Write a plan for review", "kubectl addons plan ingress@1.3.0 -o plan.json"),
    ("Write a page for a pull request", "kubectl addons plan ingress@1.3.0 -o html > plan.html"),
    ("Write a plan of what a set would do, including what left it", "kubectl addons plan -f set.yaml --set-name base --prune -o plan.json"),
    ("Write a plan to uninstall", "kubectl addons plan --uninstall ingress -o plan.json"),
    ("Carry out a plan file, unless something has changed since", "kubectl addons apply plan.json"),
    ("Install the installations in a file, or update their spec to match it", "kubectl addons apply -f set.yaml"),
    ("The same, and uninstall what is no longer in the file", "kubectl addons apply -f set.yaml --set-name base --prune"),
    ("Print the manifests of an add-on", "kubectl addons render ingress"),
    ("Write the manifests into a folder, to apply or compare them", "kubectl addons render ingress --output-dir out --show-secrets"),
    ("Verify that an add-on is signed as its catalogue requires", "kubectl addons verify ingress@1.2.0"),
    ("Verify that a chart in a registry is signed with a key", "kubectl addons verify oci://registry.example/charts/ingress:1.2.0 --key cosign.pub"),
    ("Render a folder of templates without a cluster", "kubectl addons render --dir templates --method go-template --data data.yaml"),
    ("Install or upgrade every add-on of an index", "kubectl addons channel apply index.yaml"),
    ("List what kops has recorded", "kubectl addons channel list"),
    ("List the core add-ons, and why they are core", "kubectl addons core list"),
    ("Show how the rules decide about one add-on", "kubectl addons core explain dns"),
    ("Allow a core add-on to be uninstalled", "kubectl addons core release dns"),
    ("Show which record would be restored", "kubectl addons core restore dns --dry-run"),
    ("Show what a directory would change", "kubectl addons sync manifests --dry-run"),
    ("Follow a directory until interrupted", "kubectl addons sync manifests --watch --yes"),
    ("Look for problems, and the commands that fix them", "kubectl addons doctor"),
    ("Write the schema with which an editor checks catalogues", "kubectl addons schema catalogue > catalogue.schema.json"),
    ("Print only the version of the client", "kubectl addons version --client"),
    ("Let kubectl complete kubectl addons", "kubectl addons completion --install"),
    ("Complete kubectl-addons in this shell", "source <(kubectl addons completion bash)"),
    ("Print the global options", "kubectl addons options"),
];

/// Adds examples to the help of every command, and hides the global options there: another command lists them.
pub fn with_examples(command: Command) -> Command {
    let command = command
        .mut_args(|arg| {
            let is_global = arg.is_global_set();
            arg.hide_short_help(is_global).hide_long_help(is_global)
        })
        .after_help(GLOBAL_HINT);
    add_examples(command, PROGRAM)
}

fn add_examples(command: Command, path: &str) -> Command {
    command.mut_subcommands(|verb| {
        let path = format!("{path} {}", verb.get_name());
        let examples: String = EXAMPLES
            .iter()
            .filter(|(_, line)| is_example_of(line, &path))
            .map(|(what, line)| format!("  # {what}\n  {line}\n\n"))
            .collect();
        let verb = verb
            .after_help(GLOBAL_HINT)
            .after_long_help(format!("Examples:\n{examples}{GLOBAL_HINT}"));
        add_examples(verb, &path)
    })
}

/// Whether an example calls this command or one of its subcommands.
fn is_example_of(line: &str, path: &str) -> bool {
    let Some(at) = line.find(path) else {
        return false;
    };
    let rest = &line[at + path.len()..];
    rest.is_empty() || rest.starts_with([' ', ')'])
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn without_example(command: &Command, path: &str) -> Vec<String> {
        let verbs = command.get_subcommands();
        let lacking = verbs.flat_map(|verb| {
            let path = format!("{path} {}", verb.get_name());
            let has_one = EXAMPLES.iter().any(|(_, line)| is_example_of(line, &path));
            let mut lacking = without_example(verb, &path);
            lacking.extend((!has_one).then_some(path));
            lacking
        });
        lacking.collect()
    }

    #[test]
    fn every_command_has_an_example() {
        assert_eq!(
            without_example(&Cli::command(), PROGRAM),
            Vec::<String>::new()
        );
    }
}
