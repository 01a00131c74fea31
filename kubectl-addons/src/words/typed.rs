//! The command that the user typed, so that printed commands repeat its flags. `main` passes it to [`remember`].
//!
//! - [`with_flags`]: the same command with additional flags, which accept a protection.
//! - [`continue_command`]: the command that continues an operation, with the flags of the one that began it.
//! - [`complete_commands`]: adds the flags that select the cluster to every command of a text, and leaves out the namespace that a command
//!   uses anyway. All printed text goes through it.

use std::ffi::OsString;
use std::sync::OnceLock;

use addons_operation::text::shell_word;
use addons_plan::file::FleetClusterSource;
use clap::{Arg, ArgAction, Command, ValueEnum as _};
use common::api::names::{LABEL_NAMESPACE_NAME, SYSTEM_NAMESPACE};

use crate::cli::{self, ColorChoice};

/// Flags whose value may be a secret. They are not repeated, because printed text may be stored.
const PRIVATE_FLAGS: [&str; 4] = ["--set", "--set-string", "--set-json", "--token"];
/// How commands of this plugin begin.
const PLUGIN: &str = "kubectl addons ";
/// Flags that select the cluster, the identity, and the namespace of installations. `true` if kubectl takes the flag as well.
const CONNECTION_FLAGS: [(&str, bool); 19] = [
    ("kubeconfig", true),
    ("context", true),
    ("cluster", true),
    ("user", true),
    ("namespace", false),
    ("as", true),
    ("as-group", true),
    ("as-uid", true),
    ("server", true),
    ("certificate-authority", true),
    ("client-certificate", true),
    ("client-key", true),
    ("insecure-skip-tls-verify", true),
    ("tls-server-name", true),
    ("system-namespace", false),
    ("cache-dir", false),
    ("own-access", false),
    ("helm-bin", false),
    ("rules", false),
];
/// Flags that select a namespace of installations, or the default one.
const NAMESPACE_FLAGS: [&str; 2] = ["namespace", "system-namespace"];
/// Flags that select another scope than the namespace of `-n`.
const OTHER_SCOPE_FLAGS: [&str; 4] = ["-A", "--all-namespaces", "--for-cluster", "--clusters"];
/// Flags that a continuing command does not repeat: what they say is recorded, or it is about other installations.
const NOT_CONTINUED_FLAGS: [&str; 25] = [
    "all",
    "canary",
    "clusters",
    "conflicts",
    "core",
    "dry-run",
    "max-unavailable",
    "name",
    "output",
    "registry",
    "repo",
    "reset-values",
    "set",
    "set-file",
    "set-json",
    "set-string",
    "soak",
    "target-namespace",
    "to",
    "unpin",
    "unset",
    "values",
    "values-from",
    "version",
    "with-required",
];
/// Flags for several clusters, which a command on one of them does not take.
const FLEET_FLAGS: [&str; 4] = ["clusters", "canary", "max-unavailable", "soak"];

/// A word of a command line, or a flag with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandPiece {
    /// The long name of the flag, if it is one.
    flag: Option<String>,
    /// The words as they were typed.
    words: Vec<String>,
}

impl CommandPiece {
    fn is_flag(&self, flag: &str) -> bool {
        self.flag.as_deref() == Some(flag)
    }

    fn is_one_of(&self, flags: &[&str]) -> bool {
        flags.iter().any(|flag| self.is_flag(flag))
    }
}

/// The definition of the command line, with all global flags.
fn command_line() -> &'static Command {
    static KNOWN: OnceLock<Command> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut all = cli::command();
        all.build();
        all
    })
}

/// The command that this process runs.
static TYPED: OnceLock<TypedCommand> = OnceLock::new();

/// Keeps the arguments of this process, with its name first. Only the first call counts.
pub fn remember(args: &[OsString]) {
    let _ = TYPED.set(TypedCommand::new(args));
}

/// Returns the remembered command, or an empty one.
fn typed() -> &'static TypedCommand {
    TYPED.get_or_init(TypedCommand::default)
}

/// Whether an argument of the typed command contains `text`.
pub fn contains_text(text: &str) -> bool {
    let mut args = typed().args.iter();
    args.any(|arg| arg.to_string_lossy().contains(text))
}

/// Returns a name with the version that was typed behind it, `web@1.2.0`, or the name alone.
pub fn versioned_name(name: &str) -> String {
    typed().find_versioned(name)
}

/// Returns the typed command with `flags`, or `the same command with FLAGS` if it is private. `None` if the command does not take them.
pub fn with_flags(flags: &[String]) -> Option<String> {
    typed().extend(flags)
}

/// Returns the command that continues an operation of this process: `own` with the typed flags that fit it. A command about a file, a
/// directory or an index is repeated as typed.
pub fn continue_command(own: &str) -> String {
    typed().continue_with(own)
}

/// Returns the typed command, or `the same command` if it cannot be printed.
pub fn same_command() -> String {
    typed()
        .repeat()
        .unwrap_or_else(|| "the same command".to_owned())
}

/// Returns the typed command for one of several clusters.
pub fn command_for_place(place: &FleetClusterSource) -> String {
    let place = match place {
        FleetClusterSource::Context(name) => {
            ("context", vec!["--context".to_owned(), name.clone()])
        }
        FleetClusterSource::Namespace(name) => ("namespace", vec!["-n".to_owned(), name.clone()]),
    };
    let stays = |piece: &&CommandPiece| !piece.is_one_of(&FLEET_FLAGS) && !piece.is_flag(place.0);
    let pieces = typed().pieces().iter();
    let kept: Vec<CommandPiece> = pieces.filter(stays).cloned().collect();
    let mut line = format_command(&repeat_words(&kept));
    line.push_str(&format!(" {}", join_words(&place.1)));
    line
}

/// Returns the typed command for `rest` alone. With no clusters given, it is unchanged.
pub fn command_for_clusters(rest: &[&FleetClusterSource]) -> String {
    typed().limit_to_clusters(rest)
}

/// Adds the flags that select this process's cluster to the commands of a text, and leaves out `-n` with the default namespace of
/// installations if no namespace was typed. `place` is one of several clusters.
pub fn complete_commands(text: &str, place: Option<&FleetClusterSource>) -> String {
    typed().complete(text, place)
}

/// Returns the `diff` for what the typed command would install. `None` if `diff` does not take all its flags.
pub fn diff_command() -> Option<String> {
    typed().compare()
}

/// Returns the typed flags that say where add-ons come from and what they have to fit, with a leading blank.
pub fn source_flags() -> String {
    typed().find_flags(&["channel", "catalogue", "k8s", "kkp"])
}

/// Returns the typed flags that choose clusters, with a leading blank.
pub fn cluster_flags() -> String {
    typed().find_flags(&["clusters", "context"])
}

/// Returns the typed `--color`, or the default. For a command line that is not valid.
pub fn color_choice() -> ColorChoice {
    let pieces = typed().pieces().iter();
    let mut colors = pieces.filter(|piece| piece.is_flag("color"));
    let value = colors.next_back().and_then(|piece| piece.words.last());
    let value = value.map(|word| word.rsplit('=').next().unwrap_or_default());
    let choice = value.and_then(|value| ColorChoice::from_str(value, false).ok());
    choice.unwrap_or_default()
}

/// Whether the typed command has a flag.
pub fn takes_flag(flag: &str) -> bool {
    typed().takes(flag)
}

/// Whether the typed command has this name.
pub fn is_verb(name: &str) -> bool {
    typed().verb().is_some_and(|verb| verb.get_name() == name)
}

/// A command line, parsed when a text needs it.
#[derive(Debug, Default)]
struct TypedCommand {
    /// The name of the program, and the arguments.
    args: Vec<OsString>,
    pieces: OnceLock<Vec<CommandPiece>>,
    connection: OnceLock<Vec<CommandPiece>>,
    verb: OnceLock<Option<Command>>,
}

impl TypedCommand {
    fn new(args: &[OsString]) -> Self {
        Self {
            args: args.to_vec(),
            ..Self::default()
        }
    }

    /// Returns the words after the program's name. `None` if one is not UTF-8.
    fn words(&self) -> Option<Vec<String>> {
        let words = self.args.iter().skip(1);
        words.map(|word| word.to_str().map(str::to_owned)).collect()
    }

    /// Returns the words and flags; none if a word is not UTF-8.
    fn pieces(&self) -> &[CommandPiece] {
        self.pieces
            .get_or_init(|| parse_pieces(&self.words().unwrap_or_default()))
    }

    /// Returns the words and flags; `None` if a word is not UTF-8.
    fn readable_pieces(&self) -> Option<&[CommandPiece]> {
        self.words().map(|_| self.pieces())
    }

    /// Returns the flags that select the cluster.
    fn connection(&self) -> &[CommandPiece] {
        self.connection.get_or_init(|| {
            let is_connection = |piece: &&CommandPiece| {
                let mut flags = CONNECTION_FLAGS.iter();
                flags.any(|(flag, _)| piece.is_flag(flag))
            };
            let pieces = self.pieces().iter();
            pieces.filter(is_connection).cloned().collect()
        })
    }

    /// Adds the flags that select the cluster to the commands of a text. See [`complete_commands`].
    fn complete(&self, text: &str, place: Option<&FleetClusterSource>) -> String {
        add_flags(text, &replace_place(self.connection(), place))
    }

    /// Returns the typed flags with these names and their values.
    fn find_flags(&self, names: &[&str]) -> String {
        let found = self.pieces().iter().filter(|piece| piece.is_one_of(names));
        found
            .map(|piece| format!(" {}", join_words(&piece.words)))
            .collect()
    }

    /// Returns a name as it was typed. See [`versioned_name`].
    fn find_versioned(&self, name: &str) -> String {
        let is_it = |word: &&String| {
            let rest = word.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('@'))
        };
        let words = self.pieces().iter().filter(|piece| piece.flag.is_none());
        let mut words = words.flat_map(|piece| &piece.words);
        words
            .find(is_it)
            .cloned()
            .unwrap_or_else(|| name.to_owned())
    }

    fn takes(&self, flag: &str) -> bool {
        self.verb()
            .is_some_and(|verb| verb.get_arguments().any(|known| matches_flag(known, flag)))
    }

    /// Returns the typed subcommand. `None` if the words are not a valid command line.
    fn verb(&self) -> Option<&Command> {
        let verb = self.verb.get_or_init(|| {
            let all = command_line();
            let matches = all.clone().try_get_matches_from(&self.args).ok()?;
            all.find_subcommand(matches.subcommand_name()?).cloned()
        });
        verb.as_ref()
    }

    /// Returns the command with `flags`. See [`with_flags`].
    fn extend(&self, flags: &[String]) -> Option<String> {
        let mut words = self.words()?;
        // A flag that was typed with another value is replaced, unless it may be repeated.
        for flag in flags
            .iter()
            .filter(|flag| flag.starts_with("--") && !is_repeated(flag))
        {
            remove_flag(&mut words, flag);
        }
        let end = words.iter().position(|word| word == "--");
        let at = end.unwrap_or(words.len());
        words.splice(at..at, flags.iter().cloned());
        if check_words(&words).is_none() {
            words = convert_to_upgrade(&words)?;
        }
        Some(if is_private(&words) {
            format!("the same command with {}", join_words(flags))
        } else {
            format_command(&words)
        })
    }

    /// Returns the command as it was typed; `None` if it cannot be printed.
    fn repeat(&self) -> Option<String> {
        let words = repeat_words(self.readable_pieces()?);
        let is_input = |word: &String| word == "-";
        (!is_private(&words) && !words.iter().any(is_input)).then(|| format_command(&words))
    }

    /// Returns the command that continues an operation. See [`continue_command`].
    fn continue_with(&self, own: &str) -> String {
        let pieces = self.pieces();
        let reads_input = |piece: &CommandPiece| piece.words.iter().any(|word| word == "-");
        let is_set = pieces.iter().any(|piece| piece.is_flag("filename"));
        match command_path(pieces).as_str() {
            // The content of stdin is no longer available.
            "apply" | "channel apply" if pieces.iter().any(reads_input) => carry_flags(pieces, own),
            "apply" if is_set => format_command(&repeat_words(pieces)),
            "channel apply" | "sync" | "init" | "core restore" => {
                format_command(&repeat_words(pieces))
            }
            "install" | "upgrade" | "rollback" | "adopt" | "uninstall" | "apply" => {
                carry_flags(pieces, own)
            }
            // In a loop: the reader types another command.
            _ => own.to_owned(),
        }
    }

    /// Returns the command for `rest` alone. See [`command_for_clusters`].
    fn limit_to_clusters(&self, rest: &[&FleetClusterSource]) -> String {
        let mut words = Vec::new();
        for piece in self.pieces().iter().filter(|piece| !piece.is_flag("token")) {
            let is_chosen = match rest {
                [] => false,
                [FleetClusterSource::Namespace(_), ..] => piece.is_flag("clusters"),
                [FleetClusterSource::Context(_), ..] => piece.is_flag("context"),
            };
            if is_chosen {
                words.extend(selection_flag(rest));
            } else {
                words.extend(piece.words.iter().cloned());
            }
        }
        format_command(&words)
    }

    /// Returns the `diff` for what the command would install. See [`diff_command`].
    fn compare(&self) -> Option<String> {
        let pieces = self.readable_pieces()?;
        let words = match command_path(pieces).as_str() {
            "install" | "upgrade" => convert_command(pieces, "diff")?,
            _ => return None,
        };
        (!is_private(&words)).then(|| format_command(&words))
    }
}

/// Returns the upgrade that does what `diff` compares, or what `install` would do to an existing installation. `None` for sets and other
/// commands.
fn convert_to_upgrade(words: &[String]) -> Option<Vec<String>> {
    let pieces = parse_pieces(words);
    match command_path(&pieces).as_str() {
        "diff" if pieces.iter().any(|piece| piece.is_flag("filename")) => None,
        "diff" | "install" => convert_command(&pieces, "upgrade"),
        _ => None,
    }
}

/// Converts a command into another one for the same installations, without the flags that the new one does not take.
fn convert_command(pieces: &[CommandPiece], name: &str) -> Option<Vec<String>> {
    let is_renamed =
        |piece: &CommandPiece| piece.is_flag("name") || piece.words.iter().any(|word| word == "-");
    if pieces.iter().any(is_renamed) {
        return None;
    }
    let all = command_line();
    let verb = all.find_subcommand(name)?;
    let takes = |flag: &str| {
        let mut known = verb.get_arguments().chain(all.get_arguments());
        known.any(|one| one.get_long() == Some(flag))
    };
    let mut words = Vec::new();
    let mut is_verb = true;
    for piece in pieces {
        match &piece.flag {
            None if is_verb => {
                words.push(name.to_owned());
                is_verb = false;
            }
            Some(flag) if !takes(flag) => {}
            _ => words.extend(piece.words.iter().cloned()),
        }
    }
    check_words(&words)?;
    Some(words)
}

/// Whether a flag may be given several times.
fn is_repeated(flag: &str) -> bool {
    flag == "--recreate" || flag.starts_with("--own-access=")
}

/// Groups the words of a command line into words and flags with values.
fn parse_pieces(words: &[String]) -> Vec<CommandPiece> {
    let all = command_line();
    let mut command = all;
    let mut pieces = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let known = command.get_arguments().chain(all.get_arguments());
        let flag = known.into_iter().find(|flag| matches_flag(flag, word));
        let mut piece = CommandPiece {
            flag: flag.and_then(Arg::get_long).map(str::to_owned),
            words: vec![word.clone()],
        };
        if let Some(flag) = flag
            && takes_next(flag, word)
        {
            piece.words.extend(words.next().cloned());
        }
        if flag.is_none()
            && let Some(next) = command.find_subcommand(word)
        {
            command = next;
        }
        pieces.push(piece);
    }
    pieces
}

/// The names of the command and its subcommand: `channel apply`.
fn command_path(pieces: &[CommandPiece]) -> String {
    let all = command_line();
    let mut command = all;
    let mut path = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.flag.is_none()) {
        let next = piece.words.first();
        let Some(next) = next.and_then(|word| command.find_subcommand(word)) else {
            break;
        };
        path.push(next.get_name().to_owned());
        command = next;
    }
    path.join(" ")
}

/// Returns the words of a repeated command, without `--token` and `--dry-run`.
fn repeat_words(pieces: &[CommandPiece]) -> Vec<String> {
    let kept = pieces
        .iter()
        .filter(|piece| !piece.is_one_of(&["token", "dry-run"]));
    kept.flat_map(|piece| piece.words.clone()).collect()
}

/// Adds the typed flags that a command takes and does not have yet.
fn carry_flags(typed: &[CommandPiece], own: &str) -> String {
    let known = parse_pieces(&split_words(own.strip_prefix(PLUGIN).unwrap_or(own)));
    let all = command_line();
    let verb = command_path(&known);
    let Some(verb) = all.find_subcommand(verb) else {
        return own.to_owned();
    };
    let is_global = |name: &str| all.get_arguments().any(|arg| arg.get_long() == Some(name));
    let takes = |name: &str| verb.get_arguments().any(|arg| arg.get_long() == Some(name));
    let has = |name: &str| known.iter().any(|piece| piece.is_flag(name));
    let mut words: Vec<String> = known.iter().flat_map(|it| it.words.clone()).collect();
    for piece in typed {
        let Some(name) = piece.flag.as_deref() else {
            continue;
        };
        let is_carried = takes(name) && !is_global(name) && !has(name);
        if is_carried && !NOT_CONTINUED_FLAGS.contains(&name) {
            words.extend(piece.words.iter().cloned());
        }
    }
    match check_words(&words) {
        Some(()) => format_command(&words),
        None => own.to_owned(),
    }
}

/// Returns the flag that selects these clusters.
fn selection_flag(members: &[&FleetClusterSource]) -> [String; 2] {
    let names: Vec<&str> = members.iter().map(|member| member.name()).collect();
    let names = names.join(",");
    match members {
        [FleetClusterSource::Namespace(_)] => {
            let selector = format!("{LABEL_NAMESPACE_NAME}={names}");
            ["--clusters".to_owned(), selector]
        }
        [FleetClusterSource::Namespace(_), ..] => {
            let selector = format!("{LABEL_NAMESPACE_NAME} in ({names})");
            ["--clusters".to_owned(), selector]
        }
        _ => ["--context".to_owned(), names],
    }
}

/// Replaces the flag that selects the cluster by that for `place`.
fn replace_place(given: &[CommandPiece], place: Option<&FleetClusterSource>) -> Vec<CommandPiece> {
    let mut given = given.to_vec();
    let (flag, words) = match place {
        None => return given,
        Some(FleetClusterSource::Context(name)) => {
            ("context", vec!["--context".to_owned(), name.clone()])
        }
        Some(FleetClusterSource::Namespace(name)) => {
            ("namespace", vec!["-n".to_owned(), name.clone()])
        }
    };
    given.retain(|piece| !piece.is_flag(flag));
    given.push(CommandPiece {
        flag: Some(flag.to_owned()),
        words,
    });
    given
}

/// Adds flags to the commands of a text: those of this plugin, and those of kubectl after a label such as `look:`. Leaves out the default
/// namespace if the flags select none.
fn add_flags(text: &str, flags: &[CommandPiece]) -> String {
    let has_namespace = flags.iter().any(|flag| flag.is_one_of(&NAMESPACE_FLAGS));
    let default_namespace = format!(" -n {SYSTEM_NAMESPACE}");
    if flags.is_empty() && !text.contains(&default_namespace) {
        return text.to_owned();
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("kubectl ") {
        let (before, from) = rest.split_at(at);
        whole.push_str(before);
        let line = from.lines().next().unwrap_or_default();
        let missing = |is_known: fn(&CommandPiece) -> bool| -> String {
            let missing = flags
                .iter()
                .filter(|flag| is_known(flag) && !has_flag(line, flag));
            missing
                .map(|flag| format!(" {}", join_words(&flag.words)))
                .collect()
        };
        let end = match from.strip_prefix(PLUGIN) {
            Some(arguments) => {
                let end = PLUGIN.len() + command_length(arguments);
                let (own, _) = from.split_at(end);
                if has_namespace {
                    whole.push_str(own);
                } else {
                    whole.push_str(&remove_words(own, &default_namespace));
                }
                whole.push_str(&missing(|_| true));
                end
            }
            None => {
                whole.push_str("kubectl");
                if before.trim_end().ends_with([':', '&']) {
                    whole.push_str(&missing(is_kubectl_flag));
                }
                "kubectl".len()
            }
        };
        rest = from.get(end..).unwrap_or_default();
    }
    whole.push_str(rest);
    whole
}

/// Removes these words of a command, with the blank before them.
fn remove_words(command: &str, words: &str) -> String {
    match command.split_once(words) {
        Some((before, after)) if after.is_empty() || after.starts_with(' ') => {
            format!("{before}{after}")
        }
        _ => command.to_owned(),
    }
}

fn is_kubectl_flag(piece: &CommandPiece) -> bool {
    let mut known = CONNECTION_FLAGS.iter();
    known.any(|(flag, is_of_kubectl)| *is_of_kubectl && piece.is_flag(flag))
}

/// Whether a line already has a flag, or another one that replaces it.
fn has_flag(line: &str, flag: &CommandPiece) -> bool {
    let long = format!("--{}", flag.flag.as_deref().unwrap_or_default());
    line.split_whitespace().any(|word| {
        let name = word.split(['=', ',', ';', ')']).next().unwrap_or_default();
        let is_short = flag.words.first().is_some_and(|typed| {
            let letters = typed.get(..2).filter(|letters| !letters.starts_with("--"));
            letters.is_some_and(|letters| name.starts_with(letters) && !name.starts_with("--"))
        });
        name == long
            || is_short
            || flag.is_flag("namespace")
                && (name.starts_with("-n") || OTHER_SCOPE_FLAGS.contains(&name))
    })
}

/// Returns the length of the command at the beginning of a text. It ends with the line, at punctuation, or at a word after its flags.
fn command_length(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    let (mut has_flags, mut is_value) = (false, false);
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let word = first_word(rest);
        let bare = word.trim_end_matches([',', ';', ')', ':', '`', '"', '.']);
        let is_flag = bare.starts_with('-');
        let is_prose = bare.is_empty() || bare.starts_with(['(', '&', '|']);
        if is_prose || has_flags && !is_flag && !is_value {
            return end;
        }
        end = at + bare.len();
        is_value = is_flag && takes_value(bare);
        has_flags |= is_flag;
        at += word.len();
        let next = text.get(at..).unwrap_or_default();
        let mut next = next.chars();
        let is_single = next.next() == Some(' ') && next.next().is_some_and(|it| it != ' ');
        if bare.len() < word.len() || !is_single {
            return end;
        }
        at += 1;
    }
}

/// Returns the first word of a text, split as a shell does.
fn first_word(text: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.find(|letter: char| {
        is_quoted ^= letter == '\'' && !is_escaped;
        is_escaped = letter == '\\' && !is_quoted;
        letter.is_whitespace() && !is_quoted
    });
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// Splits a printed command into words.
fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let word = first_word(rest);
        words.push(
            word.replace(r"'\''", "\0")
                .replace('\'', "")
                .replace('\0', "'"),
        );
        rest = rest.get(word.len()..).unwrap_or_default().trim_start();
    }
    words
}

/// Whether any command has this flag with its value in the next word.
fn takes_value(word: &str) -> bool {
    fn is_in(command: &Command, word: &str) -> bool {
        let mut known = command.get_arguments();
        let mut parts = command.get_subcommands();
        known.any(|flag| matches_flag(flag, word) && takes_next(flag, word))
            || parts.any(|part| is_in(part, word))
    }
    is_in(command_line(), word)
}

/// Returns `Some` if the command line accepts the words.
fn check_words(words: &[String]) -> Option<()> {
    let args = std::iter::once("kubectl-addons").chain(words.iter().map(String::as_str));
    let args: Vec<OsString> = args.map(Into::into).collect();
    cli::parse(&args).is_ok().then_some(())
}

fn matches_flag(flag: &Arg, word: &str) -> bool {
    if let Some(name) = word.strip_prefix("--") {
        let name = name.split('=').next();
        return name.is_some() && name == flag.get_long();
    }
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    letters
        .next()
        .is_some_and(|letter| flag.get_short() == Some(letter))
}

/// Whether the value of a flag is the next word.
fn takes_next(flag: &Arg, word: &str) -> bool {
    let has_value = if word.starts_with("--") {
        word.contains('=')
    } else {
        word.len() > 2
    };
    let takes = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    takes && !has_value && !flag.is_require_equals_set()
}

fn remove_flag(words: &mut Vec<String>, flag: &str) {
    if let Some(at) = words.iter().position(|word| word == flag) {
        let has_value = matches!(flag, "--allow-prune" | "--conflicts");
        let end = at + 1 + usize::from(has_value);
        words.drain(at..words.len().min(end));
    }
    words.retain(|word| word.split_once('=').is_none_or(|(name, _)| name != flag));
}

fn is_private(words: &[String]) -> bool {
    let names = words.iter().map(|word| word.split('=').next());
    names.flatten().any(|name| PRIVATE_FLAGS.contains(&name))
}

fn join_words(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|text| shell_word(text)).collect();
    words.join(" ")
}

fn format_command(words: &[String]) -> String {
    format!("kubectl addons {}", join_words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> TypedCommand {
        let words = std::iter::once("kubectl-addons").chain(line.split(' '));
        let words: Vec<OsString> = words.map(Into::into).collect();
        TypedCommand::new(&words)
    }

    #[test]
    fn a_protection_is_accepted_by_the_command_that_was_typed() {
        for (line, flags, expected) in [
            (
                "upgrade many@1.1.0 -n shop",
                "--allow-prune 75%",
                Some("kubectl addons upgrade many@1.1.0 -n shop --allow-prune 75%"),
            ),
            (
                "upgrade web --allow-prune 60%",
                "--allow-prune 75%",
                Some("kubectl addons upgrade web --allow-prune 75%"),
            ),
            (
                "upgrade web --conflicts=fail -y",
                "--conflicts take",
                Some("kubectl addons upgrade web -y --conflicts take"),
            ),
            (
                "upgrade web --recreate Job/a",
                "--recreate Job/b",
                Some("kubectl addons upgrade web --recreate Job/a --recreate Job/b"),
            ),
            (
                "upgrade web --set password=x",
                "--allow-crd-breakage",
                Some("the same command with --allow-crd-breakage"),
            ),
            (
                "apply -f set.yaml",
                "--allow-prune 75%",
                Some("kubectl addons apply -f set.yaml --allow-prune 75%"),
            ),
            (
                "upgrade web --dry-run=server",
                "--recreate Job/b --dry-run",
                Some("kubectl addons upgrade web --recreate Job/b --dry-run"),
            ),
            (
                "install web@1.0.0 --channel i.yaml",
                "--allow-downgrade",
                Some("kubectl addons upgrade web@1.0.0 --channel i.yaml --allow-downgrade"),
            ),
            (
                "diff web@2.0.0 --channel i.yaml -o json",
                "--recreate Service/web",
                Some("kubectl addons upgrade web@2.0.0 --channel i.yaml --recreate Service/web"),
            ),
            ("diff --filename set.yaml", "--recreate Service/web", None),
            ("install web --name shop", "--allow-downgrade", None),
            ("reconcile web", "--allow-prune 75%", None),
        ] {
            let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
            assert_eq!(typed(line).extend(&flags).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_flag_is_offered_to_commands_that_have_it() {
        let flag = "--target-namespace";
        assert!(typed("-n shop install web").takes(flag));
        for line in [
            "upgrade web -n shop",
            "-n install upgrade web",
            "delete web",
            "diff web",
        ] {
            assert!(!typed(line).takes(flag), "{line}");
        }
    }

    #[test]
    fn a_source_is_repeated() {
        for (line, expected) in [
            (
                "adopt api --channel=my.yaml --dry-run",
                " --channel=my.yaml",
            ),
            ("show api --catalogue base", " --catalogue base"),
            ("show api", ""),
        ] {
            assert_eq!(typed(line).find_flags(&["channel", "catalogue"]), expected);
        }
    }

    #[test]
    fn a_name_keeps_its_version() {
        for (line, expected) in [
            ("upgrade web@1.2.0 -n shop", "web@1.2.0"),
            ("upgrade webhook@1.2.0 web", "web"),
        ] {
            assert_eq!(typed(line).find_versioned("web"), expected);
        }
    }

    #[test]
    fn what_is_compared_is_what_was_asked_for() {
        for (line, expected) in [
            (
                "upgrade many@1.1.0 -n shop --allow-downgrade --timeout 5m -y",
                Some("kubectl addons diff many@1.1.0 -n shop --allow-downgrade"),
            ),
            (
                "install web --channel index.yaml --core --values a.yaml",
                Some("kubectl addons diff web --channel index.yaml --values a.yaml"),
            ),
            (
                "upgrade web --conflicts=take --dry-run -fa.yaml",
                Some("kubectl addons diff web -fa.yaml"),
            ),
            ("upgrade web --set password=x", None),
            ("install web --name shop", None),
            ("reconcile web", None),
            ("apply plan.json", None),
        ] {
            assert_eq!(typed(line).compare().as_deref(), expected, "{line}");
        }
    }

    /// (typed, the command of the installation, what is printed)
    #[test]
    fn an_operation_is_continued_as_it_was_begun() {
        let uninstall = "kubectl addons uninstall web -n shop --delete-crds";
        let upgrade = "kubectl addons upgrade web@2.0.0 -n shop";
        for (line, own, expected) in [
            (
                "uninstall web db --delete-crds --timeout 9m -y",
                uninstall,
                "uninstall web -n shop --delete-crds --timeout 9m -y",
            ),
            (
                "install web@2.0.0 --channel=i.yaml --name web --target-namespace x --set a=b -f v.yaml --wait=false --core --dry-run=none",
                upgrade,
                "upgrade web@2.0.0 -n shop --channel=i.yaml --wait=false",
            ),
            (
                "upgrade --all --clusters tier=prod --canary 1 --soak 1m --atomic --kubeconfig k --token t",
                upgrade,
                "upgrade web@2.0.0 -n shop --atomic",
            ),
            (
                "upgrade web -n x --recreate Service/a --conflicts take",
                "kubectl addons upgrade web -n shop --recreate Service/a",
                "upgrade web -n shop --recreate Service/a",
            ),
            (
                "adopt web --force --channel i.yaml",
                "kubectl addons adopt --release web -n shop --force",
                "adopt --release web -n shop --force",
            ),
            (
                "apply plan.json -y",
                upgrade,
                "upgrade web@2.0.0 -n shop -y",
            ),
            (
                "apply -f set.yaml --set-name base --prune --token t --context b",
                upgrade,
                "apply -f set.yaml --set-name base --prune --context b",
            ),
            (
                "apply -f - --timeout 1m",
                upgrade,
                "upgrade web@2.0.0 -n shop --timeout 1m",
            ),
            (
                "channel apply i.yaml --yes --recreate Job/a",
                upgrade,
                "channel apply i.yaml --yes --recreate Job/a",
            ),
            (
                "sync . --all -y",
                "kubectl addons sync /srv",
                "sync . --all -y",
            ),
            ("init --webhook --yes", upgrade, "init --webhook --yes"),
            (
                "reconcile --timeout 1m",
                upgrade,
                "upgrade web@2.0.0 -n shop",
            ),
        ] {
            let expected = format!("kubectl addons {expected}");
            assert_eq!(typed(line).continue_with(own), expected, "{line}");
        }
    }

    #[test]
    fn words_of_a_printed_command_are_those_of_a_shell() {
        for words in [
            &["sync", "/my add-ons"][..],
            &["a", "it's b", ""],
            &["x", "-y"],
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(split_words(&join_words(&words)), words);
        }
    }

    /// (typed, one of several clusters, text, the text as it is printed)
    #[test]
    fn every_command_says_which_cluster_is_meant() {
        let context = FleetClusterSource::Context("b".to_owned());
        let namespace = FleetClusterSource::Namespace("shop-1".to_owned());
        let one = "upgrade web --kubeconfig k.yaml --context=lab -n shop --as-group a --as-group b --token t -v 6";
        let rows = [
            (
                "upgrade web",
                None,
                "fix:    kubectl addons init",
                "fix:    kubectl addons init",
            ),
            (
                one,
                None,
                "look:   kubectl addons show base\nfix:    kubectl addons install base@1.2.0, or name it in the same command",
                "look:   kubectl addons show base --kubeconfig k.yaml --context=lab -n shop --as-group a --as-group b\n\
                 fix:    kubectl addons install base@1.2.0 --kubeconfig k.yaml --context=lab -n shop --as-group a --as-group b, or name it in the same command",
            ),
            (
                "--context lab status web",
                None,
                "  again     kubectl addons upgrade web@2 -n shop --timeout 5m continues where this ended\n  x",
                "  again     kubectl addons upgrade web@2 -n shop --timeout 5m --context lab continues where this ended\n  x",
            ),
            (
                "upgrade web --context lab",
                None,
                "accept: kubectl addons upgrade web --context lab --conflicts take    (or yield, which leaves them)",
                "accept: kubectl addons upgrade web --context lab --conflicts take    (or yield, which leaves them)",
            ),
            (
                "list -n shop",
                None,
                "look:   kubectl addons list -A; kubectl addons status web -nx; (kubectl addons list)",
                "look:   kubectl addons list -A; kubectl addons status web -nx; (kubectl addons list -n shop)",
            ),
            (
                "upgrade web -s https://a",
                None,
                "once that is resolved, kubectl addons upgrade web -n shop --adopt sets them aside",
                "once that is resolved, kubectl addons upgrade web -n shop --adopt -s https://a sets them aside",
            ),
            (
                "upgrade web --context lab --system-namespace s",
                None,
                "look:   kubectl get configmap a -n shop\nhelm and kubectl apply",
                "look:   kubectl --context lab get configmap a -n shop\nhelm and kubectl apply",
            ),
            (
                "upgrade web --context a,b --kubeconfig k",
                Some(&context),
                "fix:    kubectl addons upgrade web -n shop",
                "fix:    kubectl addons upgrade web -n shop --kubeconfig k --context b",
            ),
            (
                "list --context lab",
                None,
                "run kubectl addons upgrade web -n kubectl-addons, then `kubectl addons status a -n kubectl-addons -o wide`",
                "run kubectl addons upgrade web --context lab, then `kubectl addons status a -o wide --context lab`",
            ),
            (
                "list",
                None,
                "look:   kubectl get addoninstallation a -n kubectl-addons\nfix:    kubectl addons reconcile -n kubectl-addons-2",
                "look:   kubectl get addoninstallation a -n kubectl-addons\nfix:    kubectl addons reconcile -n kubectl-addons-2",
            ),
            (
                "list --system-namespace s",
                None,
                "fix:    kubectl addons reconcile web -n kubectl-addons",
                "fix:    kubectl addons reconcile web -n kubectl-addons --system-namespace s",
            ),
            (
                "upgrade web --clusters tier=prod --context home",
                Some(&namespace),
                "look:   kubectl addons list",
                "look:   kubectl addons list --context home -n shop-1",
            ),
        ];
        for (line, place, text, expected) in rows {
            assert_eq!(typed(line).complete(text, place), expected, "{line}");
        }
    }

    /// (typed, what is left, the command).
    #[test]
    fn it_is_the_same_command_for_fewer_clusters() {
        let context = |name: &str| FleetClusterSource::Context(name.to_owned());
        let namespace = |name: &str| FleetClusterSource::Namespace(name.to_owned());
        for (line, rest, expected) in [
            (
                "upgrade web --context a,b,c -y --set a=b",
                vec![context("b"), context("c")],
                "upgrade web --context b,c -y --set a=b",
            ),
            (
                "--context=a,b uninstall web --canary 1",
                vec![context("b")],
                "--context b uninstall web --canary 1",
            ),
            (
                "install web --clusters tier=prod --context home --token=t",
                vec![namespace("b"), namespace("c")],
                "install web --clusters 'kubernetes.io/metadata.name in (b,c)' --context home",
            ),
            (
                "upgrade --clusters=tier=prod --token t --max-unavailable 10%",
                vec![namespace("b")],
                "upgrade --clusters kubernetes.io/metadata.name=b --max-unavailable 10%",
            ),
            (
                "apply plan.json --context home --token t -y",
                vec![],
                "apply plan.json --context home -y",
            ),
        ] {
            let rest: Vec<&FleetClusterSource> = rest.iter().collect();
            let expected = format!("kubectl addons {expected}");
            assert_eq!(typed(line).limit_to_clusters(&rest), expected);
        }
    }
}
