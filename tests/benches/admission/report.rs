//! How it was measured, and the tables.

use std::time::Duration;

use super::bench::{CONNECTIONS, Measured, ROUND, Row, Side};
use super::bodies::Size;
use super::create::{CREATES, Creates};
use super::load::Answers;

pub(crate) fn table(measured: &Measured, creates: Option<&Creates>) -> String {
    let (cores, round) = (
        std::thread::available_parallelism().map_or(1, usize::from),
        ROUND.as_millis(),
    );
    let mut text = format!(
        "\nThe echo is actix-web with the TLS settings and workers of the webhook, and sends the body back. Client and servers share this\n\
         machine ({cores} cores; other programs took {:.0} % of their time meanwhile). Echo and webhook are asked in turn, for {round} ms\n\
         each, over connections that are kept; memory is VmHWM of the process since its start, after reviews of that size and all\n\
         smaller ones over {CONNECTIONS:?} connections. CPU is the server's user and system time by review.\n\n",
        measured.others * 100.0,
    );
    text += &line([
        "path", "bytes", "conns", "echo /s", "ours /s", "ratio", "p50 ms", "(echo)", "p99 ms",
        "(echo)", "CPU µs", "(echo)", "refused",
    ]);
    for row in &measured.rows {
        text += &figures(row);
    }
    text += "\nmemory MiB (goal: ours < 15 small, < 60 large)\n";
    for memory in &measured.memory {
        let ours = memory.ours.map_or("–".to_owned(), mebibytes);
        let size = match memory.size {
            Size::Small => "small",
            Size::Medium => "medium",
            Size::Large => "large",
        };
        text += &format!(
            "  {size:<7} ours {ours:>6}  echo {:>6}\n",
            mebibytes(memory.echo)
        );
    }
    if let Some(creates) = creates {
        text += &format!(
            "\n{CREATES} creates of an installation at a kube-apiserver each, one after the other, by a user that the webhooks are asked about\n\
             (/mutate, then /validate) and by one that their matchConditions leave out, in turn (goal: p99 < 2 ms more)\n"
        );
        let (with, without) = (&creates.with, &creates.without);
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let (with, without) = (with.within(share), without.within(share));
            let more = with.as_secs_f64() - without.as_secs_f64();
            text += &format!(
                "  {name}  with {} ms  without {} ms  difference {:.2} ms\n",
                milliseconds(with),
                milliseconds(without),
                more * 1e3
            );
        }
    }
    text
}

fn figures(row: &Row) -> String {
    let (echo, ours) = (&row.echo, &row.ours);
    let ratio = ours.answers.rate() / echo.answers.rate() * 100.0;
    let time = |answers: &Answers, share| milliseconds(answers.within(share));
    line([
        row.path,
        &row.bytes.to_string(),
        &row.connections.to_string(),
        &format!("{:.0}", echo.answers.rate()),
        &format!("{:.0}", ours.answers.rate()),
        &format!("{ratio:.0} %"),
        &time(&ours.answers, 0.5),
        &time(&echo.answers, 0.5),
        &time(&ours.answers, 0.99),
        &time(&echo.answers, 0.99),
        &each(ours),
        &each(echo),
        &(ours.answers.refused + echo.answers.refused).to_string(),
    ])
}

fn line(columns: [&str; 13]) -> String {
    let widths = [9, 8, 6, 8, 8, 6, 8, 8, 8, 8, 8, 8, 8];
    let mut line = String::new();
    for (index, (column, width)) in columns.iter().zip(widths).enumerate() {
        match index {
            0 => line += &format!("{column:<width$}"),
            _ => line += &format!(" {column:>width$}"),
        }
    }
    line.trim_end().to_owned() + "\n"
}

/// The processor's time by review, in microseconds.
fn each(side: &Side) -> String {
    let reviews = side.answers.times.len() + side.answers.refused;
    match side.cpu {
        Some(cpu) if reviews > 0 => format!("{:.0}", cpu.as_secs_f64() * 1e6 / reviews as f64),
        _ => "–".to_owned(),
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}
