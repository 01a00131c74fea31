//! Writes the script by which the linker puts functions that run often next to each other: `deploy/release/order` calls it.
//!
//! A kernel maps a program in pieces of 64 KiB and more, so of a program whose functions lie in the order of the compiler nearly all is
//! mapped, although a run needs a fifth of it. The script names functions without the hash at their end, so that it still fits after
//! most changes. A generic function has many forms of one name, most of which do not run: of these it names the hash as well, which
//! depends on the types and crates, but not on the body. What it does not name stays where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

/// Functions that this percentage of the runs call come first: they are the start of the program.
const STARTUP: usize = 80;
/// And these come next.
const OFTEN: usize = 20;
/// Functions of one name are kept together, with up to so many bytes of them that did not run.
const MOST_IDLE: u64 = 1024;

/// Where a function belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Every run calls it.
    Startup,
    /// Many runs call it.
    Often,
    /// Some runs call it.
    Seldom,
    /// No run calls it.
    Rare,
}

/// The functions of one name.
#[derive(Default)]
struct Function<'a> {
    /// Those that ran: their whole names, and in how many runs.
    ran: Vec<(&'a str, usize)>,
    /// Those that did not.
    idle: Vec<&'a str>,
    /// Bytes of those that did not.
    idle_bytes: u64,
}

fn main() -> ExitCode {
    use std::io::Write as _;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let written = match arguments.split_first() {
        Some((map, profiles)) if !profiles.is_empty() => script(Path::new(map), profiles),
        _ => Err(anyhow::anyhow!(
            "usage: generate-link-order LINK-MAP CALLGRIND-FILE…"
        )),
    };
    let written = written.and_then(|text| Ok(std::io::stdout().write_all(text.as_bytes())?));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::stderr().write_all(format!("error: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// The script for the program of a link map, by what Callgrind saw of its runs.
fn script(map: &Path, profiles: &[String]) -> Result<String> {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for profile in profiles {
        let text = fs::read_to_string(profile).with_context(|| profile.clone())?;
        for name in called(&text) {
            *runs.entry(name.to_owned()).or_default() += 1;
        }
    }
    let text = fs::read_to_string(map).with_context(|| map.display().to_string())?;
    let mut functions: BTreeMap<String, Function<'_>> = BTreeMap::new();
    for (section, bytes) in sections(&text) {
        let symbol = section.strip_prefix("unlikely.").unwrap_or(section);
        let function = functions.entry(without_hash(section)).or_default();
        if let Some(times) = runs.get(symbol) {
            function.ran.push((section, *times));
        } else {
            function.idle.push(section);
            function.idle_bytes += bytes;
        }
    }
    if functions.values().all(|function| function.ran.is_empty()) {
        bail!("none of the functions of {} ran", map.display());
    }
    let places = places(&functions, profiles.len());
    let places: Vec<(&str, Place)> = places.into_iter().collect();
    let mut patterns = Vec::new();
    shortest(&places, 0, &mut patterns);
    patterns.sort();
    Ok(text_of(&patterns))
}

/// Where the functions of each name belong; where most of a name did not run, those of each whole name.
fn places<'a>(
    functions: &'a BTreeMap<String, Function<'a>>,
    profiles: usize,
) -> BTreeMap<&'a str, Place> {
    let place = |runs: usize| match runs * 100 {
        0 => Place::Rare,
        share if share >= profiles * STARTUP => Place::Startup,
        share if share >= profiles * OFTEN => Place::Often,
        _ => Place::Seldom,
    };
    let mut places = BTreeMap::new();
    for (name, function) in functions {
        if function.idle_bytes <= MOST_IDLE || function.ran.is_empty() {
            let runs = function.ran.iter().map(|(_, runs)| *runs).max();
            places.insert(name.as_str(), place(runs.unwrap_or_default()));
        } else {
            places.extend(
                function
                    .ran
                    .iter()
                    .map(|(name, runs)| (*name, place(*runs))),
            );
            places.extend(function.idle.iter().map(|name| (*name, Place::Rare)));
        }
    }
    places
}

/// The functions that a run called: `fn=(7) NAME`, and `cfn=` of calls.
fn called(profile: &str) -> BTreeSet<&str> {
    let names = profile.lines().filter_map(|line| {
        let line = line.strip_prefix('c').unwrap_or(line);
        let (_, name) = line.strip_prefix("fn=(")?.split_once(") ")?;
        // Of one that calls itself there are several.
        Some(name.split('\'').next().unwrap_or(name))
    });
    names.collect()
}

/// The sections of functions in a map of lld, with their sizes: `VMA LMA SIZE ALIGN FILE:(.text.NAME)`.
fn sections(map: &str) -> impl Iterator<Item = (&str, u64)> {
    map.lines().filter_map(|line| {
        let (_, section) = line.split_once(":(.text.")?;
        let size = line.split_whitespace().nth(2)?;
        let bytes = u64::from_str_radix(size, 16).ok()?;
        Some((section.strip_suffix(')')?, bytes))
    })
}

/// The name of a function for the linker: `*` stands for the hash at its end, and for those of crates.
fn without_hash(name: &str) -> String {
    let name = match name.rsplit_once("17h") {
        Some((path, hash)) if hash.len() >= 17 && hash.is_char_boundary(16) => format!("{path}17h"),
        _ => name.to_owned(),
    };
    let mut parts = name.split("Cs");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('_') {
            Some((hash, rest)) if is_hash_of_crate(hash) => {
                text.push_str("Cs*_");
                text.push_str(rest);
            }
            _ => {
                text.push_str("Cs");
                text.push_str(part);
            }
        }
    }
    text
}

fn is_hash_of_crate(text: &str) -> bool {
    (8..=14).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The shortest beginnings of names that tell the places apart. `names`: sorted, with this many letters in common.
fn shortest(names: &[(&str, Place)], letters: usize, found: &mut Vec<(Place, String)>) {
    let (Some((first, place)), Some((last, _))) = (names.first(), names.last()) else {
        return;
    };
    if names.iter().all(|(_, other)| other == place) {
        if *place != Place::Rare {
            let common = first.get(..=letters).unwrap_or(first);
            found.push((*place, common.to_owned()));
        }
        return;
    }
    let both = first.bytes().zip(last.bytes());
    let letters = both.take_while(|(one, other)| one == other).count();
    let groups = names.chunk_by(|(one, _), (other, _)| {
        one.as_bytes().get(letters) == other.as_bytes().get(letters)
    });
    for group in groups {
        shortest(group, letters, found);
    }
}

fn text_of(patterns: &[(Place, String)]) -> String {
    let mut text = String::from(
        "/* Generated by deploy/release/order: functions that run often lie next to each other. */\n\
         SECTIONS\n{\n  .text.often :\n  {\n",
    );
    let mut last = None;
    for (place, pattern) in patterns {
        if last != Some(place) {
            text.push_str(match place {
                Place::Startup => "    /* In every run; the assembler of AWS-LC is in one section a file. */\n    *aws_lc_sys*(.text)\n",
                Place::Often => "    /* In many runs. */\n",
                Place::Seldom | Place::Rare => "    /* In some runs. */\n",
            });
            last = Some(place);
        }
        text.push_str("    *(.text.");
        text.push_str(pattern);
        text.push_str("*)\n");
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}
