//! How it was measured, and the table.

use std::time::Duration;

use super::world::{ENTRIES, Layer, Taken};
use super::writes::{Measured, Times};

/// What the webhook may take with all entries.
const MEMORY: u64 = 64 << 20;
/// At how many writers the goals hold, and how much more than without admission they allow.
const WRITERS: usize = 8;
const P50: Duration = Duration::from_millis(2);
const P99: Duration = Duration::from_millis(5);

pub(crate) fn table(measured: &[Measured], taken: Option<Taken>) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "\nEach line is one API server on this machine ({cores} cores), by itself or with one layer of admission. Writers and all servers\n\
         share the machine, and the API servers take turns. In parentheses is the difference to no admission.\n\n"
    );
    text += &line([
        "", "writers", "create", "p50 ms", "p99 ms", "update", "p50 ms", "p99 ms",
    ]);
    let mut is_met = true;
    for one in measured {
        let is_bare =
            |bare: &&Measured| bare.writers == one.writers && bare.layer == Layer::Nothing;
        let Some(bare) = measured.iter().find(is_bare) else {
            continue;
        };
        let (created, updated) = (&one.creates, &one.updates);
        text += &line([
            match one.layer {
                Layer::Nothing => "no admission",
                Layer::Policies => "policies (CEL)",
                Layer::Webhook => "webhook",
            },
            &one.writers.to_string(),
            "",
            &figure(created, &bare.creates, 0.5),
            &figure(created, &bare.creates, 0.99),
            "",
            &figure(updated, &bare.updates, 0.5),
            &figure(updated, &bare.updates, 0.99),
        ]);
        if one.writers == WRITERS && one.layer == Layer::Webhook {
            is_met = [(created, &bare.creates), (updated, &bare.updates)]
                .iter()
                .all(|(with, without)| {
                    more(with, without, 0.5) <= P50 && more(with, without, 0.99) <= P99
                });
        }
    }
    text += &format!(
        "\ngoal: with the webhook, at {WRITERS} writers, at most {} ms more at p50 and {} ms more at p99: {}\n",
        P50.as_millis(),
        P99.as_millis(),
        met(is_met)
    );
    if let Some(Taken { memory, cpu }) = taken {
        text += &format!(
            "memory of the webhook, with {ENTRIES} entries in catalogues: {:.1} MiB at most (goal: {} MiB): {}\n\
             CPU of the webhook since its start: {:.1} s\n",
            memory as f64 / f64::from(1 << 20),
            MEMORY >> 20,
            met(memory <= MEMORY),
            cpu.as_secs_f64()
        );
    }
    text
}

fn met(is_met: bool) -> &'static str {
    match is_met {
        true => "met",
        false => "missed",
    }
}

fn more(with: &Times, without: &Times, share: f64) -> Duration {
    with.within(share).saturating_sub(without.within(share))
}

fn figure(times: &Times, bare: &Times, share: f64) -> String {
    let milliseconds = |times: &Times| times.within(share).as_secs_f64() * 1e3;
    let (took, bare) = (milliseconds(times), milliseconds(bare));
    format!("{took:.2} ({:+.2})", took - bare)
}

fn line(columns: [&str; 8]) -> String {
    let widths = [14, 7, 6, 15, 15, 6, 15, 15];
    let mut line = String::new();
    for (index, (column, width)) in columns.iter().zip(widths).enumerate() {
        match index {
            0 => line += &format!("{column:<width$}"),
            _ => line += &format!(" {column:>width$}"),
        }
    }
    line.trim_end().to_owned() + "\n"
}
