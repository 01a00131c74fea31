//! Values on a real cluster: refused in the same words by the plugin and the webhook, asked for on a terminal, explained, and
//! rendered out of every store.

mod explained;
mod prompts;
mod rendered;
mod scoped;
mod taken_away;
mod words;
