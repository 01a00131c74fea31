//! Prints requests to the API server when they are answered, as kubectl logs them from level 6 on.

use std::time::Instant;

use http::StatusCode;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Prints every request from now on.
pub fn trace_requests() {
    // Other targets may log headers, and with them tokens.
    let targets = Targets::new().with_target("kube_client", LevelFilter::DEBUG);
    // This fails only if a subscriber is already installed.
    let _ = tracing_subscriber::registry()
        .with(RequestLayer)
        .with(targets)
        .try_init();
}

struct RequestLayer;

/// A request of kube. Its span names it and receives the status of the answer.
struct TracedRequest {
    method: String,
    url: String,
    sent: Instant,
    /// Whether it was printed. Spans of errors record more than once.
    is_reported: bool,
}

impl TracedRequest {
    fn report(&mut self, answer: &str) {
        if !std::mem::replace(&mut self.is_reported, true) {
            let (method, url) = (&self.method, &self.url);
            let took = self.sent.elapsed().as_millis();
            super::note(&format!("{method} {url} {answer} in {took} milliseconds"));
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RequestLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let mut found = SpanFields::default();
        attributes.record(&mut found);
        if let (Some(span), Some(method), Some(url)) = (ctx.span(id), found.method, found.url) {
            span.extensions_mut().insert(TracedRequest {
                method,
                url,
                sent: Instant::now(),
                is_reported: false,
            });
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, ctx: Context<'_, S>) {
        let mut found = SpanFields::default();
        record.record(&mut found);
        if let Some(status) = found.status {
            report_request(&ctx, id, &status);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR
            && let Some(span) = ctx.event_span(event)
        {
            report_request(&ctx, &span.id(), "was not answered");
        }
    }
}

fn report_request<S: Subscriber + for<'a> LookupSpan<'a>>(
    ctx: &Context<'_, S>,
    id: &Id,
    answer: &str,
) {
    let Some(span) = ctx.span(id) else { return };
    if let Some(request) = span.extensions_mut().get_mut::<TracedRequest>() {
        request.report(answer);
    }
}

/// The fields that are read from a span.
#[derive(Default)]
struct SpanFields {
    method: Option<String>,
    url: Option<String>,
    status: Option<String>,
}

impl Visit for SpanFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "http.status_code" {
            let code = u16::try_from(value).ok();
            let status = code.and_then(|code| StatusCode::from_u16(code).ok());
            self.status = status.map(|status| status.to_string());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let found = match field.name() {
            "http.method" => &mut self.method,
            "http.url" => &mut self.url,
            _ => return,
        };
        *found = Some(format!("{value:?}"));
    }
}
