//! What one case is about, drawn from its number: two runs with one seed do the same.

use std::fmt;

use addons_tests::chaos::seed::next;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// How a value is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Base64,
    Quoted,
    Lines,
    FourCharacters,
    /// The name of an object of the same add-on.
    Name,
    Url,
    Unicode,
    /// Longer than a line of a report shows.
    Long,
}

/// Where a value comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// A key of a Secret of `valuesFrom`.
    Values,
    /// The same, inside of lists and maps.
    NestedValues,
    File,
    Set,
    /// The Secret beside the installation with data of templates.
    TemplateData,
    /// The password of a chart repository.
    Credentials,
    /// A Secret of the manifest.
    Manifest,
    /// A Secret that a chart makes at random.
    Generated,
    /// What another client wrote into a field of ours.
    Live,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Templates,
    Chart,
    Release,
}

/// Where a template writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Secret,
    ConfigMap,
    Environment,
    Annotation,
}

/// What happens to the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Conflict,
    /// The API server quotes a value of a field.
    Rejected,
    /// The API server quotes a value of another type than its field.
    Malformed,
    /// An admission policy quotes it.
    Denied,
    /// The template quotes it.
    Failing,
    /// The values do not fit the schema of the chart, or the form.
    Schema,
    TimedOut,
    Cut,
    /// A field that never changes.
    Fixed,
    DryRun,
    Planned,
    Compared,
    /// The plan does not hold any more.
    Moved,
}

const FORMS: [Form; 9] = [
    Form::Plain,
    Form::Base64,
    Form::Quoted,
    Form::Lines,
    Form::FourCharacters,
    Form::Name,
    Form::Url,
    Form::Unicode,
    Form::Long,
];
const STORES: [Store; 9] = [
    Store::Values,
    Store::Live,
    Store::Manifest,
    Store::TemplateData,
    Store::Set,
    Store::Generated,
    Store::NestedValues,
    Store::File,
    Store::Credentials,
];
const METHODS: [Method; 4] = [
    Method::Templates,
    Method::Templates,
    Method::Chart,
    Method::Release,
];
const PLACES: [Place; 4] = [
    Place::Secret,
    Place::ConfigMap,
    Place::Environment,
    Place::Annotation,
];
const OUTCOMES: [Outcome; 14] = [
    Outcome::Success,
    Outcome::Conflict,
    Outcome::Rejected,
    Outcome::Malformed,
    Outcome::Denied,
    Outcome::Failing,
    Outcome::Schema,
    Outcome::TimedOut,
    Outcome::Cut,
    Outcome::Fixed,
    Outcome::DryRun,
    Outcome::Planned,
    Outcome::Compared,
    Outcome::Moved,
];

/// One case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) form: Form,
    pub(super) store: Store,
    pub(super) method: Method,
    pub(super) place: Place,
    pub(super) outcome: Outcome,
    /// Of the add-on, of the installation, and of its first object.
    pub(super) name: String,
    /// The value, and what it is changed into.
    pub(super) texts: [String; 2],
    /// What is in these texts, in every spelling of them.
    pub(super) marks: [String; 2],
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            form,
            store,
            method,
            place,
            outcome,
            ..
        } = self;
        write!(
            f,
            "{form:?} from {store:?}, {method:?} → {place:?}, {outcome:?}"
        )
    }
}

impl Case {
    /// Numbers in a row have every outcome, and every store in turn.
    pub(super) fn of(number: u64) -> Self {
        let mut state = number;
        let mut turns = number;
        loop {
            let (outcome, store) = (pick(&OUTCOMES, number), pick(&STORES, turns));
            for _ in 0..40 {
                let form = pick(&FORMS, next(&mut state));
                let method = pick(&METHODS, next(&mut state));
                let place = pick(&PLACES, next(&mut state));
                let [own, first, second] = [(); 3].map(|()| mark(next(&mut state)));
                // A name is the only value that may be seen.
                let name = format!("till-{own}");
                let first = if form == Form::Name { own } else { first };
                let marks = [first, second];
                let case = Self {
                    form,
                    store,
                    method,
                    place,
                    outcome,
                    name,
                    texts: [text(form, &marks[0]), text(form, &marks[1])],
                    marks,
                };
                if case.is_possible() {
                    return case;
                }
            }
            turns += 1;
        }
    }

    fn is_possible(&self) -> bool {
        let by_form = match self.form {
            // Its second value would be another object.
            Form::Name => !self.changes() && self.store != Store::Live,
            Form::Lines => !matches!(self.store, Store::Set | Store::Credentials),
            Form::Quoted | Form::Unicode | Form::Url => self.store != Store::Credentials,
            Form::Plain | Form::Base64 | Form::FourCharacters | Form::Long => true,
        };
        let by_method = self.method != Method::Release
            || !matches!(
                self.outcome,
                Outcome::Conflict
                    | Outcome::Cut
                    | Outcome::Fixed
                    | Outcome::Compared
                    | Outcome::Moved
            );
        by_form && by_method && self.fits_store()
    }

    fn fits_store(&self) -> bool {
        let is_chart = self.method == Method::Chart;
        match self.store {
            Store::Values | Store::NestedValues | Store::File | Store::Set => true,
            Store::TemplateData => self.outcome != Outcome::Schema,
            Store::Live => {
                self.method != Method::Release
                    && matches!(self.outcome, Outcome::Conflict | Outcome::Compared)
            }
            Store::Credentials => {
                self.method != Method::Templates
                    && self.form == Form::Plain
                    && matches!(
                        self.outcome,
                        Outcome::Success | Outcome::Failing | Outcome::Planned | Outcome::DryRun
                    )
            }
            Store::Manifest => {
                self.method == Method::Templates
                    && !matches!(self.outcome, Outcome::Failing | Outcome::Schema)
            }
            Store::Generated => {
                is_chart
                    && self.form == Form::Plain
                    && matches!(
                        self.outcome,
                        Outcome::Success
                            | Outcome::Rejected
                            | Outcome::Denied
                            | Outcome::Malformed
                            | Outcome::TimedOut
                    )
            }
        }
    }

    /// Whether the value becomes another one.
    pub(super) fn changes(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Conflict | Outcome::Fixed | Outcome::Compared | Outcome::Moved
        )
    }

    /// Whether the readers of the record may read the value anyway: the user wrote it there.
    pub(super) fn is_entered(&self) -> bool {
        matches!(self.store, Store::File | Store::Set)
    }

    /// Whether the operation fails with words that quote the value.
    pub(super) fn is_quoted(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Rejected
                | Outcome::Malformed
                | Outcome::Denied
                | Outcome::Failing
                | Outcome::Schema
        )
    }
}

fn pick<T: Copy>(all: &[T], number: u64) -> T {
    let count = u64::try_from(all.len()).unwrap_or(1);
    all[usize::try_from(number % count).unwrap_or(0)]
}

/// Ten letters that no other text has.
fn mark(number: u64) -> String {
    let letters = (0..10).scan(number, |rest, _| {
        let letter = u8::try_from(*rest % 20).unwrap_or(0);
        *rest /= 20;
        Some(char::from(b'b' + letter))
    });
    letters.collect()
}

fn text(form: Form, mark: &str) -> String {
    match form {
        Form::Plain => format!("hunter-{mark}"),
        Form::Base64 => BASE64_STANDARD.encode(format!("hunter-{mark}")),
        Form::Quoted => format!("say \"{mark}\" to \\ 'her' <&> him"),
        Form::Lines => {
            let line = mark.repeat(6);
            format!("-----BEGIN KEY-----\n{line}\n{mark}\"quoted\\\n-----END KEY-----\n")
        }
        Form::FourCharacters => format!("{}!{}", &mark[..2], &mark[2..3]),
        Form::Name => format!("till-{mark}"),
        Form::Url => format!("postgres://app:p%40ss-{mark}@db:5432/x?y=1&z=2"),
        Form::Unicode => format!("пароль-{mark}-日本-ß"),
        Form::Long => mark.repeat(12),
    }
}
