//! Dynamic completion: kubectl runs this program as `kubectl_complete-addons`, and the scripts of `completion` run it too.
//!
//! kubectl passes the words after `addons`, the last one unfinished. The answer has a line with each candidate, a tab and its help, and
//! ends with a cobra directive. Any failure completes to nothing, because nobody could read an error.

mod recorded;
mod typed;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use addons_engine::record;
use clap::{Command, CommandFactory as _, Parser as _};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use clap_complete::env::CompleteEnv;
use common::api::catalogue::CatalogueClass;
use common::catalogue::Catalogue;
use kube::config::Kubeconfig;

use crate::choices;
use crate::cli::name::Candidates;
use crate::cli::operation::SourceArgs;
use crate::cli::{self, Cli, GlobalArgs};
use crate::output::{self, escape_text};
use crate::session::Session;

/// The variable with the name of the shell, which the shell's script sets.
pub const VARIABLE: &str = "KUBECTL_ADDONS_COMPLETE";
/// The program that kubectl runs: this one under another name, or the script of `completion --install`, which runs this one.
pub const PROGRAM: &str = "kubectl_complete-addons";
/// The name of the "shell" that this script sets.
pub const KUBECTL: &str = "kubectl";
/// Cobra's ShellCompDirectiveNoFileComp.
const DIRECTIVE: &str = ":4";
/// Like [`DIRECTIVE`], but without a blank after the candidate: a folder, in which the file follows.
const DIRECTIVE_FOLDER: &str = ":6";
/// The separator at which the script for bash splits candidates.
const IN_BASH: &str = "\u{b}";
/// The timeout of a completion, because a user waits at a prompt.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The words typed so far. Candidates depend on `--context`, `--channel`, `--core` and other flags.
static WORDS: OnceLock<Vec<String>> = OnceLock::new();

/// Returns the answer if this run is a request for candidates.
pub fn answer_request(args: &[OsString]) -> Option<String> {
    let (program, words) = args.split_first()?;
    let name = Path::new(program).file_stem()?.to_str()?;
    if name == PROGRAM {
        return Some(complete_for_kubectl(words));
    }
    let shell = std::env::var_os(VARIABLE)?;
    if shell == KUBECTL {
        return Some(complete_for_kubectl(words));
    }
    if shell == "bash"
        && let Some(at) = words.iter().position(|word| word == "--")
    {
        // After `--` come the name of the program and the typed words.
        let answer = complete_for_bash(words.get(at + 2..).unwrap_or_default());
        output::print_bytes(answer.as_bytes());
        return Some(String::new());
    }
    remember_words(words);
    // `CompleteEnv` prints the answer itself.
    let _ = CompleteEnv::with_factory(|| with_candidates(Cli::command()))
        .var(VARIABLE)
        .try_complete(args, std::env::current_dir().ok().as_deref());
    Some(String::new())
}

/// Returns the candidates for bash. Only the words up to the cursor count.
fn complete_for_bash(words: &[OsString]) -> String {
    let cursor = std::env::var("_CLAP_COMPLETE_INDEX");
    let cursor = cursor.ok().and_then(|index| index.parse::<usize>().ok());
    let words = words.get(..cursor.unwrap_or(words.len())).unwrap_or(words);
    let found = find_candidates(words).into_iter();
    let found: Vec<String> = found.map(|(value, _)| value).collect();
    found.join(IN_BASH)
}

fn complete_for_kubectl(words: &[OsString]) -> String {
    let mut text = String::new();
    let mut has_file = false;
    let found = find_candidates(words);
    for (value, candidate) in &found {
        has_file |= !value.ends_with('/');
        text.push_str(value);
        let help = candidate
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        if let Some(first) = help.lines().next().filter(|line| !line.is_empty()) {
            text.push('\t');
            text.push_str(&escape_text(first));
        }
        text.push('\n');
    }
    text.push_str(if found.is_empty() || has_file {
        DIRECTIVE
    } else {
        DIRECTIVE_FOLDER
    });
    text.push('\n');
    text
}

/// Returns the candidates for the last word: the text as the shell takes it, and its help.
fn find_candidates(words: &[OsString]) -> Vec<(String, CompletionCandidate)> {
    let (words, kept) = typed::join_words(words);
    remember_words(&words);
    let mut args = vec![OsString::from("kubectl-addons")];
    args.extend(words);
    if args.len() == 1 {
        args.push(OsString::new());
    }
    let last = args.len() - 1;
    let is_flag = args
        .last()
        .is_some_and(|word| word.to_string_lossy().starts_with('-'));
    let folder = std::env::current_dir().ok();
    let mut command = with_candidates(Cli::command());
    let found = complete(&mut command, args, last, folder.as_deref()).unwrap_or_default();
    let shown = found.into_iter().filter_map(|candidate| {
        let value = candidate.get_value().to_string_lossy();
        if candidate.is_hide_set() || (value.starts_with('-') && !is_flag) {
            return None;
        }
        let value = escape_text(value.get(kept..)?);
        Some((value, candidate))
    });
    shown.collect()
}

/// Adds the functions that list candidates to the arguments of a command and of its subcommands.
fn with_candidates(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get::<Candidates>() {
        Some(Candidates::Addons) => arg.add(ArgValueCandidates::new(addons)),
        Some(Candidates::Installations) => arg.add(ArgValueCandidates::new(installations)),
        Some(Candidates::Catalogues) => arg.add(ArgValueCandidates::new(catalogues)),
        Some(Candidates::Contexts) => arg.add(ArgValueCandidates::new(contexts)),
        Some(Candidates::Namespaces) => arg.add(ArgValueCandidates::new(recorded::namespaces)),
        Some(Candidates::AllNamespaces) => {
            arg.add(ArgValueCandidates::new(recorded::all_namespaces))
        }
        Some(Candidates::Revisions) => arg.add(ArgValueCandidates::new(recorded::revisions)),
        Some(Candidates::RevisionVersions) => {
            arg.add(ArgValueCandidates::new(recorded::revision_versions))
        }
        Some(Candidates::Objects) => arg.add(ArgValueCandidates::new(recorded::objects)),
        None => arg,
    });
    command.mut_subcommands(with_candidates)
}

fn remember_words(words: &[OsString]) {
    let words = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // This process answers one request, so this is set once.
    let _ = WORDS.set(words);
}

/// Completes the names of add-ons that the typed flags offer, or after `NAME@` its versions.
fn addons() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let catalogue = read_catalogue(session).await?;
        if let Some(name) = typed::unfinished_name(typed_words()) {
            return Ok(version_candidates(&catalogue, name, name));
        }
        let description = |name: &str| {
            let mut entries = catalogue.entries.iter().filter(|entry| entry.addon == name);
            entries.find_map(|entry| entry.description.clone())
        };
        let candidate =
            |name: &&str| CompletionCandidate::new(*name).help(description(name).map(Into::into));
        let unread = catalogue.unread.iter().flat_map(|unread| &unread.addons);
        let mut names = catalogue.names();
        names.extend(unread.map(String::as_str));
        names.sort_unstable();
        names.dedup();
        Ok(names.iter().map(candidate).collect())
    })
}

/// Reads the catalogue that the typed flags select.
async fn read_catalogue(session: &Session) -> anyhow::Result<Catalogue> {
    let source = SourceArgs {
        channel: value_of("--channel").and_then(|typed| cli::typed::location(&typed).ok()),
        catalogue: value_of("--catalogue"),
    };
    let catalogue = session
        .ctx()
        .catalogue(&choices::parse_offer(&source))
        .await?;
    let mut catalogue = Catalogue::clone(&catalogue);
    catalogue
        .entries
        .retain(|entry| has_flag("--core") || entry.class != CatalogueClass::Core);
    catalogue
        .unread
        .retain(|unread| has_flag("--core") || unread.class != CatalogueClass::Core);
    Ok(catalogue)
}

/// Returns `NAME@VERSION` for each version of an add-on. `typed` is its name, or that of an installation.
fn version_candidates(catalogue: &Catalogue, addon: &str, typed: &str) -> Vec<CompletionCandidate> {
    let entries = catalogue.entries.iter();
    let entries = entries.filter(|entry| entry.addon == addon && !entry.version.version.is_empty());
    let versions: BTreeSet<&str> = entries.map(|entry| &*entry.version.version).collect();
    let candidate = |version| CompletionCandidate::new(format!("{typed}@{version}"));
    versions.into_iter().map(candidate).collect()
}

/// Completes the names of installations, or after `NAME@` the versions of its add-on.
fn installations() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let records = record::list(
            session.cluster().await?,
            session.global().namespace.as_deref(),
        )
        .await?;
        if let Some(name) = typed::unfinished_name(typed_words()) {
            let mut records = records.iter();
            let record = records.find(|record| record.metadata.name.as_deref() == Some(name));
            let addon = record.map_or(name, |record| &record.spec.addon_ref.name);
            return Ok(version_candidates(
                &read_catalogue(session).await?,
                addon,
                name,
            ));
        }
        let visible = records
            .iter()
            .filter(|record| has_flag("--core") || !record.spec.core_addon);
        Ok(visible
            .filter_map(|record| record.metadata.name.as_ref())
            .map(CompletionCandidate::new)
            .collect())
    })
}

/// Completes the names of catalogues.
fn catalogues() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let objects = session.ctx().catalogues().await?.iter();
        let visible = objects
            .filter(|object| has_flag("--core") || object.spec.class != CatalogueClass::Core);
        Ok(visible
            .filter_map(|object| object.metadata.name.as_ref())
            .map(CompletionCandidate::new)
            .collect())
    })
}

/// Completes the contexts of the kubeconfig.
fn contexts() -> Vec<CompletionCandidate> {
    let read = match value_of("--kubeconfig") {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let contexts = read
        .map(|kubeconfig| kubeconfig.contexts)
        .unwrap_or_default();
    contexts
        .into_iter()
        .map(|context| CompletionCandidate::new(context.name))
        .collect()
}

fn run_query(
    question: impl AsyncFnOnce(&Session) -> anyhow::Result<Vec<CompletionCandidate>>,
) -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return Vec::new();
    };
    let mut global = parse_global();
    // Completion fetches no catalogue: those by reference are read from the cache. An index was named by the user.
    global.offline |= value_of("--channel").is_none();
    let session = Session::new(global);
    let answer =
        runtime.block_on(async { tokio::time::timeout(TIMEOUT, question(&session)).await });
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

/// Parses the global flags typed so far, ignoring unfinished words and flags of the command.
fn parse_global() -> GlobalArgs {
    #[derive(clap::Parser)]
    #[command(
        ignore_errors = true,
        disable_help_flag = true,
        disable_version_flag = true
    )]
    struct Only {
        #[command(flatten)]
        global: GlobalArgs,
    }
    const FLAGS: [&str; 16] = [
        "--kubeconfig",
        "--context",
        "--cluster",
        "--user",
        "--namespace",
        "-n",
        "--as",
        "--as-group",
        "--as-uid",
        "--server",
        "-s",
        "--token",
        "--certificate-authority",
        "--client-certificate",
        "--client-key",
        "--system-namespace",
    ];
    let mut args = vec!["kubectl-addons".to_owned()];
    for flag in FLAGS {
        if let Some(value) = value_of(flag) {
            args.push(flag.to_owned());
            args.push(value);
        }
    }
    if has_flag("--insecure-skip-tls-verify") {
        args.push("--insecure-skip-tls-verify".to_owned());
    }
    Only::try_parse_from(args)
        .map(|only| only.global)
        .unwrap_or_default()
}

fn typed_words() -> &'static [String] {
    WORDS.get().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the value of `--flag VALUE` or `--flag=VALUE`. The last word is still being typed.
fn value_of(flag: &str) -> Option<String> {
    let (_, finished) = typed_words().split_last()?;
    finished.iter().enumerate().find_map(|(i, word)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => finished.get(i + 1).cloned(),
            None => None,
        }
    })
}

fn has_flag(flag: &str) -> bool {
    typed_words().iter().any(|word| word == flag)
}
