//! Dynamic completion: the same program, asked by kubectl as `kubectl_complete-addons` or by the script of `completion`.
//!
//! kubectl passes the words after `addons`, the last one unfinished; the answer is one candidate a line, a tab, its help,
//! and at the end a directive of cobra. Whatever fails completes to nothing: no one could read an error.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use addons_engine::record;
use clap::{CommandFactory as _, Parser as _};
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::CompleteEnv;
use common::api::catalogue::CatalogueClass;
use kube::config::Kubeconfig;

use crate::choices;
use crate::cli::operation::Source;
use crate::cli::{Cli, Global};
use crate::output::plain;
use crate::session::Session;

/// Set by the shell's script: which shell asks.
pub const VARIABLE: &str = "KUBECTL_ADDONS_COMPLETE";
/// What kubectl calls.
const PROGRAM: &str = "kubectl_complete-addons";
/// Cobra's ShellCompDirectiveNoFileComp.
const DIRECTIVE: &str = ":4";
/// A user waits at a prompt.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The words typed so far: candidates depend on `--context`, `--channel`, `--core` and so on.
static WORDS: OnceLock<Vec<String>> = OnceLock::new();

/// The answer, where this run is a request for candidates.
pub fn answer(args: &[OsString]) -> Option<String> {
    let (program, words) = args.split_first()?;
    let name = Path::new(program).file_stem()?.to_str()?;
    if name == PROGRAM {
        return Some(for_kubectl(words));
    }
    if std::env::var_os(VARIABLE).is_some() {
        remember(words);
        // It prints by itself.
        let _ = CompleteEnv::with_factory(Cli::command)
            .var(VARIABLE)
            .try_complete(args, None);
        return Some(String::new());
    }
    None
}

fn for_kubectl(words: &[OsString]) -> String {
    remember(words);
    let mut args = vec![OsString::from("kubectl-addons")];
    args.extend_from_slice(words);
    if words.is_empty() {
        args.push(OsString::new());
    }
    let last = args.len() - 1;
    let is_flag = args
        .last()
        .is_some_and(|word| word.to_string_lossy().starts_with('-'));
    let candidates = complete(&mut Cli::command(), args, last, None).unwrap_or_default();
    let mut text = String::new();
    for candidate in candidates {
        let value = candidate.get_value().to_string_lossy();
        if candidate.is_hide_set() || (value.starts_with('-') && !is_flag) {
            continue;
        }
        text.push_str(&plain(&value));
        let help = candidate
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        if let Some(first) = help.lines().next().filter(|line| !line.is_empty()) {
            text.push('\t');
            text.push_str(&plain(first));
        }
        text.push('\n');
    }
    text.push_str(DIRECTIVE);
    text.push('\n');
    text
}

fn remember(words: &[OsString]) {
    let words = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // Set once: this process answers one request.
    let _ = WORDS.set(words);
}

/// Names of add-ons that can be installed, as the flags typed so far say.
pub fn addons() -> Vec<CompletionCandidate> {
    ask(async |session| {
        let source = Source {
            channel: value_of("--channel"),
            catalogue: value_of("--catalogue"),
        };
        let catalogue = session.ctx().catalogue(&choices::offer(&source)).await?;
        let mut catalogue = common::catalogue::Catalogue::clone(&catalogue);
        catalogue
            .entries
            .retain(|entry| has("--core") || entry.class != CatalogueClass::Core);
        let description = |name: &str| {
            let mut entries = catalogue.entries.iter().filter(|entry| entry.addon == name);
            entries.find_map(|entry| entry.description.clone())
        };
        let candidate =
            |name: &&str| CompletionCandidate::new(*name).help(description(name).map(Into::into));
        Ok(catalogue.names().iter().map(candidate).collect())
    })
}

/// Names of installations.
pub fn installations() -> Vec<CompletionCandidate> {
    ask(async |session| {
        let records = record::list(
            session.cluster().await?,
            session.global().namespace.as_deref(),
        )
        .await?;
        let visible = records
            .iter()
            .filter(|record| has("--core") || !record.spec.core_addon);
        Ok(visible
            .filter_map(|record| record.metadata.name.as_ref())
            .map(CompletionCandidate::new)
            .collect())
    })
}

/// Names of catalogues.
pub fn catalogues() -> Vec<CompletionCandidate> {
    ask(async |session| {
        let objects = session.ctx().catalogues().await?.iter();
        let visible =
            objects.filter(|object| has("--core") || object.spec.class != CatalogueClass::Core);
        Ok(visible
            .filter_map(|object| object.metadata.name.as_ref())
            .map(CompletionCandidate::new)
            .collect())
    })
}

/// Contexts of the kubeconfig.
pub fn contexts() -> Vec<CompletionCandidate> {
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

fn ask(
    question: impl AsyncFnOnce(&Session) -> anyhow::Result<Vec<CompletionCandidate>>,
) -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return Vec::new();
    };
    let session = Session::new(global());
    let answer =
        runtime.block_on(async { tokio::time::timeout(TIMEOUT, question(&session)).await });
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

/// The global flags typed so far; what is unfinished or of another command is passed over.
fn global() -> Global {
    #[derive(clap::Parser)]
    #[command(
        ignore_errors = true,
        disable_help_flag = true,
        disable_version_flag = true
    )]
    struct Only {
        #[command(flatten)]
        global: Global,
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
    if has("--insecure-skip-tls-verify") {
        args.push("--insecure-skip-tls-verify".to_owned());
    }
    Only::try_parse_from(args)
        .map(|only| only.global)
        .unwrap_or_default()
}

fn words() -> &'static [String] {
    WORDS.get().map(Vec::as_slice).unwrap_or_default()
}

/// `--flag VALUE` or `--flag=VALUE`; the last word is still being typed.
fn value_of(flag: &str) -> Option<String> {
    let (_, finished) = words().split_last()?;
    finished.iter().enumerate().find_map(|(i, word)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => finished.get(i + 1).cloned(),
            None => None,
        }
    })
}

fn has(flag: &str) -> bool {
    words().iter().any(|word| word == flag)
}
