//! The flags of a command, of which clap hears only once the command is named: a short run does not pay for the flags of thirty others.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The flags of one command.
#[derive(Debug)]
pub struct Late<T>(T);

impl<T> Deref for Late<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Late<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(describe::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(describe::<T>)
    }
}

/// What stands at the command in the list of commands, and not at its flags, is its help text.
fn describe<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    T::augment_args(command)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

impl<T: FromArgMatches> FromArgMatches for Late<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
