//! `printf`: fmt/print.go. `%p`, and `%b` and `%x` of floats, are not supported and print as unknown verbs.

use crate::function::{Arguments, FunctionContext, FunctionError, FunctionResult};
use crate::value::Value;
use crate::value::format::FormatFlags;

/// Larger widths and precisions are ignored.
const MAX_NUMBER: usize = 1_000_000;

pub(super) fn printf(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    let mut printer = FormatPrinter {
        rest: arguments.text(0)?,
        arguments: arguments.rest(1),
        next: 0,
        reordered: false,
        good_index: true,
        never_closed: false,
        out: String::new(),
    };
    printer.print()?;
    Ok(Value::text(printer.out))
}

struct FormatPrinter<'a> {
    /// The rest of the format.
    rest: &'a str,
    arguments: &'a [Value],
    /// The argument of the next verb.
    next: usize,
    /// Whether an index like `[2]` has occurred; if so, unused arguments are not reported.
    reordered: bool,
    /// Whether the index of this verb exists.
    good_index: bool,
    /// Whether an unclosed `[` was found, so that the rest contains no `]`.
    never_closed: bool,
    out: String,
}

impl<'a> FormatPrinter<'a> {
    fn print(&mut self) -> Result<(), FunctionError> {
        while let Some((before, after)) = self.rest.split_once('%') {
            self.out.push_str(before);
            self.rest = after;
            self.print_verb()?;
        }
        self.out.push_str(self.rest);
        if self.reordered || self.next >= self.arguments.len() {
            return Ok(());
        }
        self.out.push_str("%!(EXTRA ");
        for (index, value) in self.arguments.iter().skip(self.next).enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            value.print_with_type(&mut self.out, &FormatFlags::default())?;
        }
        self.out.push(')');
        Ok(())
    }

    /// Reads and prints one verb with its flags, after the `%`.
    fn print_verb(&mut self) -> Result<(), FunctionError> {
        self.good_index = true;
        let mut format = FormatFlags::default();
        while let Some(flag) = self.rest.chars().next() {
            match flag {
                '#' => format.sharp = true,
                '0' => format.zero = true,
                '+' => format.plus = true,
                '-' => format.minus = true,
                ' ' => format.space = true,
                _ => break,
            }
            self.skip(1);
        }
        let mut indexed = self.read_index();
        format.width = self.read_number(&mut indexed, &mut format, "%!(BADWIDTH)");
        if self.rest.starts_with('.') && self.rest.len() > 1 {
            self.skip(1);
            if indexed {
                self.good_index = false;
            }
            indexed = self.read_index();
            let mut unused = FormatFlags::default();
            let is_star = self.rest.starts_with('*');
            let precision = self.read_number(&mut indexed, &mut unused, "%!(BADPREC)");
            format.precision = match precision {
                // A negative argument counts as no precision, a missing number as 0.
                Some(_) if unused.minus => {
                    self.out.push_str("%!(BADPREC)");
                    None
                }
                None if !is_star => Some(0),
                precision => precision,
            };
        }
        if !indexed {
            self.read_index();
        }
        let Some(verb) = self.rest.chars().next() else {
            self.out.push_str("%!(NOVERB)");
            return Ok(());
        };
        self.skip(verb.len_utf8());
        if verb == '%' {
            self.out.push('%');
            return Ok(());
        }
        let value = self.arguments.get(self.next);
        let (true, Some(value)) = (self.good_index, value) else {
            let problem = if self.good_index {
                "(MISSING)"
            } else {
                "(BADINDEX)"
            };
            self.out
                .extend(["%!", verb.encode_utf8(&mut [0; 4]), problem]);
            return Ok(());
        };
        self.next += 1;
        if verb == 'v' {
            format.go_syntax = std::mem::take(&mut format.sharp);
            format.names = std::mem::take(&mut format.plus);
        }
        value.print_as(&mut self.out, &format, verb, 0)
    }

    /// Reads `[2]`, the number of the next argument.
    fn read_index(&mut self) -> bool {
        let Some(after) = self.rest.strip_prefix('[') else {
            return false;
        };
        self.reordered = true;
        let closed = after.split_once(']').filter(|_| !self.never_closed);
        let Some((number, after)) = closed else {
            self.never_closed = true;
            self.good_index = false;
            self.skip(1);
            return false;
        };
        self.rest = after;
        let number = number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        match number.filter(|index| *index < self.arguments.len()) {
            Some(index) => {
                self.next = index;
                true
            }
            None => {
                self.good_index = false;
                number.is_some()
            }
        }
    }

    /// Reads `12`, or `*` for the value of the next argument; a negative value sets `minus`.
    fn read_number(
        &mut self,
        indexed: &mut bool,
        format: &mut FormatFlags,
        bad: &str,
    ) -> Option<usize> {
        if self.rest.starts_with('*') {
            self.skip(1);
            *indexed = false;
            let value = self.arguments.get(self.next).and_then(Value::integer);
            self.next += 1;
            let number = value.filter(|value| value.unsigned_abs() <= MAX_NUMBER as u128);
            let Some(number) = number else {
                self.out.push_str(bad);
                return None;
            };
            if number < 0 {
                format.minus = true;
                format.zero = false;
            }
            return usize::try_from(number.unsigned_abs()).ok();
        }
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = self.rest.split_at_checked(digits)?;
        if digits == 0 {
            return None;
        }
        self.rest = after;
        if *indexed {
            self.good_index = false;
        }
        number.parse().ok().filter(|number| *number <= MAX_NUMBER)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }
}
