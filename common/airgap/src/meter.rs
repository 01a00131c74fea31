//! Reports the progress of copying a blob at intervals, because large ones take minutes.

use std::time::{Duration, Instant};

use super::{AirgapProgress, ReportAirgapProgress};

/// Interval between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Reports the copy of one blob.
pub(super) struct CopyMeter<'a> {
    report: ReportAirgapProgress<'a>,
    name: &'a str,
    size: u64,
    pause: Duration,
    last: Instant,
}

impl<'a> CopyMeter<'a> {
    /// Returns a meter for a blob of this size. `name`: the image that it belongs to.
    pub(super) fn new(report: ReportAirgapProgress<'a>, name: &'a str, size: u64) -> Self {
        Self {
            report,
            name,
            size,
            pause: REPORT_INTERVAL,
            last: Instant::now(),
        }
    }

    /// Reports that `done` bytes are copied, if the last report is long enough ago.
    pub(super) fn report_progress(&mut self, done: u64) {
        if self.last.elapsed() < self.pause {
            return;
        }
        self.last = Instant::now();
        (self.report)(AirgapProgress::Blob {
            name: self.name.to_owned(),
            done,
            size: self.size,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_takes_long_is_reported_and_what_is_quick_is_not() {
        for (pause, expected) in [(Duration::ZERO, &[1, 2][..]), (REPORT_INTERVAL, &[])] {
            let said = Mutex::new(Vec::new());
            let report = |progress| {
                if let AirgapProgress::Blob { done, size: 3, .. } = progress {
                    said.lock().unwrap().push(done);
                }
            };
            let mut meter = CopyMeter {
                pause,
                ..CopyMeter::new(&report, "web", 3)
            };
            meter.report_progress(1);
            meter.report_progress(2);
            assert_eq!(said.into_inner().unwrap(), expected, "{pause:?}");
        }
    }
}
