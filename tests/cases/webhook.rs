//! The real webhook, registered with a real API server of its own: what it denies, fills in and lets pass, as kubectl
//! and the plugin show it.

mod catalogues;
mod clients;
mod conformance;
mod core;
mod defaults;
mod exempt;
mod installations;
mod lifecycle;
mod live;
mod marked;
mod network;
mod plugin;
mod stale;
mod telemetry;
